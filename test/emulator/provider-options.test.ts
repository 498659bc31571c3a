import { Strategy } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import * as providers from 'passport-oauth-app/providers';
import { describe, expect, onTestFinished, test } from 'vitest';
import { resolveOptions } from '../../src/options.js';
import { threats } from '../support/threats.js';

const application = { callbackURL: 'http://localhost:3000/callback', scope: 'project' };
const services = Object.entries<unknown>(providers).flatMap(([name, value]) =>
  typeof value === 'object' && value !== null ? [[name, value] as const] : [],
);
const WIRE = ['apiPath', 'tokenRequest', 'clientAuthentication', 'scopeSeparator', 'authorizationParams'] as const;

/** The error for an address that is not the emulator's. */
const LEFT = expect.objectContaining({
  name: 'ConfigurationError',
  message: expect.stringMatching(/Spread service.options last/),
});

describe('the options of a provider and of the emulator', threats(91), () => {
  test.each(services)(
    '%s: nothing is sent to the real service, whichever is spread over the other',
    async (_name, provider) => {
      const service = await startEmulator();
      onTestFinished(() => service.close());
      const settings = resolveOptions({ ...provider, ...service.options, ...application });
      const { authUrl, baseUrl, enterpriseBaseUrl } = settings;
      expect({ authUrl, baseUrl, enterpriseBaseUrl }).toEqual({
        authUrl: service.authUrl,
        baseUrl: service.baseUrl,
        enterpriseBaseUrl: service.enterpriseBaseUrl,
      });
      expect([settings.authorizationPath, settings.tokenPath]).toEqual(['/oauth/authorize', '/oauth/token']);
      const plain = resolveOptions({ ...service.options, ...application });
      for (const option of WIRE) expect(settings[option]).toEqual(plain[option]);

      const reversed = { ...service.options, ...provider, ...application };
      if (provider === providers.emulator || !('authUrl' in provider || 'enterpriseHosts' in provider)) {
        expect(resolveOptions(reversed).authUrl).toMatch(/^http:\/\/127\.0\.0\.1:/);
        return;
      }
      expect(() => new Strategy(reversed)).toThrow(LEFT);
    },
  );

  test.each([' https://service.example', 'ht\ntps://service.example\t', '\0https://service.example'])(
    '%j is an address of another service, too',
    async (address) => {
      const service = await startEmulator();
      onTestFinished(() => service.close());
      for (const option of ['authUrl', 'baseUrl', 'origins']) {
        const spread = { ...service.options, ...application, [option]: option === 'origins' ? [address] : address };
        expect(() => new Strategy(spread)).toThrow(LEFT);
      }
    },
  );
});
