import { inspect } from 'node:util';
import { ConfigurationError, Strategy } from 'passport-oauth-app';
import { expect, test } from 'vitest';
import { BaseUrls } from '../../src/api/base-urls.js';
import { apiPath } from '../../src/api/call-request.js';
import { asOrganizationDomain } from '../../src/oauth/claims.js';
import { readTokenResponse } from '../../src/oauth/token-response.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';
import { startWorld } from '../support/world.js';

/** What fuzzing has found once, in its smallest form. */
test.each(['xn--a', 'xn--0', 'xn--99999', 'XN--A', 'xn---'.padEnd(8, '-0')])(
  'a label that no URL can be made of is refused at once, and not at the first call: %s',
  threats(27),
  (label) => {
    expect(() => asOrganizationDomain(label)).toThrow(/not a DNS label/);
  },
);

test('a label of an internationalized name is an organization as any other', threats(27), () => {
  const domain = asOrganizationDomain('XN--LS8H');
  expect(
    new BaseUrls({ baseUrl: 'https://a.example', enterpriseBaseUrl: 'https://{domain}.a.example' }).of({
      organizationDomain: domain,
    }).origin,
  ).toBe('https://xn--ls8h.a.example');
});

test.each(['.. ', '/a/.. ', '.. /b', '/a/%2e%2e%20', '/a/.%20;x', '/a/%252e.%2520'])(
  'a dot segment with spaces around it is refused as one without: %j',
  threats(25),
  (path) => {
    expect(() => apiPath(path)).toThrow(TypeError);
  },
);

test.each(['authUrl', 'baseUrl'])(
  '%s: a host that is neither a name nor an address is a ConfigurationError',
  (option) => {
    const addresses = { authUrl: 'https://a.example', baseUrl: 'https://b.example', [option]: 'https://"\u00ff' };
    const others = { clientID: 'id', clientSecret: 's', callbackURL: '/callback', scope: 'tm' };
    expect(() => new Strategy({ ...addresses, ...others })).toThrow(ConfigurationError);
  },
);

test(
  'a request whose target is a whole URL is answered as any other, and its host goes nowhere',
  threats(15),
  async () => {
    const world = await startWorld({ strategy: { callbackURL: '/callback' } });
    const headers = { host: 'app.example' };
    const { status, headers: answer } = await rawRequest(world.url, 'http://evil.example/login', { headers });
    expect(status).toBe(302);
    const location = new URL(answer.location ?? '');
    expect(location.searchParams.get('redirect_uri')).toBe('http://app.example/callback');
    expect(location.href).not.toContain('evil');
    await world.close();
  },
);

test('a refusal whose error is a token that was never sent does not show it', threats(24), async () => {
  const error = 'A9f3c0d1e2b4a5968778695a4b3c2d1e0f';
  const request = { now: 0, secrets: () => ['another'] };
  const read = async () =>
    readTokenResponse({ status: 400, headers: {}, body: Buffer.from(JSON.stringify({ error })) }, {}, request);
  const refusal = await read().catch((reason: unknown) => reason);
  expect(refusal).toHaveProperty('message', expect.stringMatching(/unrecognized_error/));
  expect(inspect(refusal, { showHidden: true, depth: 10 })).not.toContain(error);
});
