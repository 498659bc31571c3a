import fc from 'fast-check';
import { expect, it } from 'vitest';
import { OAuthAppError } from '../../src/index.js';
import { readTokenResponse } from '../../src/service/token-response.js';
import { shownOf } from '../security/shown.js';
import { holds } from './fuzz.js';
import { arePrototypesUntouched, asOwnProperties, base64url, hostileJson, hostileText } from './hostile.js';

const SECRETS = ['canary-client-secret-0123456789', 'canary-code', 'canary-refresh-token-9876543210'];
const TOKEN = 'canaryAccessTokenOfTheAnswer0123456789';

const secret = fc.constantFrom(...SECRETS, TOKEN);
const quoting = fc.tuple(hostileText, secret, hostileText).map((parts) => parts.join(''));
const jwt = hostileJson(['sub', 'domain', 'exp']).map((claims) => `e30.${base64url(JSON.stringify(claims) ?? '')}.x`);
const fields = {
  access_token: fc.oneof(fc.constant(TOKEN), jwt, quoting, fc.anything()),
  token_type: fc.oneof(fc.constantFrom('bearer', 'Bearer', 'mac', undefined, null), quoting),
  expires_in: fc.oneof(fc.constantFrom(7200, '7200', 0, -1, 1e300, Number.NaN), hostileText, fc.double()),
  refresh_token: fc.oneof(fc.constantFrom(undefined, null, '', 'canary-refresh-token-9876543210'), fc.anything()),
  error: fc.oneof(fc.constantFrom(undefined, 'invalid_grant', 'invalid_client'), quoting, fc.anything()),
  error_description: fc.oneof(quoting, hostileText),
};
const names = Object.keys(fields) as (keyof typeof fields)[];
const entry = fc
  .constantFrom(...names)
  .chain((name) => fc.tuple(fc.constant(name), fields[name] as fc.Arbitrary<unknown>));
const object = fc.array(entry, { maxLength: 6 }).map(asOwnProperties);
const body = fc.oneof(
  { arbitrary: object.map(toJson), weight: 6 },
  { arbitrary: hostileJson(names).map(toJson), weight: 2 },
  { arbitrary: quoting, weight: 1 },
  { arbitrary: fc.tuple(object.map(toJson), fc.nat(200)).map(([text, at]) => text.slice(0, at)), weight: 1 },
);
const status = fc.oneof(
  fc.constantFrom(200, 201, 302, 400, 401, 403, 404, 408, 429, 500, 503),
  fc.integer({ min: 200, max: 599 }),
);

function toJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return '{}';
  }
}

it('an answer of the token endpoint is a sound token set or a typed error, which shows nothing that was sent', async () => {
  const context = {
    organizationDomain: ({ domain }: Readonly<Record<string, unknown>>) => domain,
    now: 0,
    secrets: SECRETS,
  };
  await holds(
    'token answers',
    0.1,
    fc.property(status, body, fc.option(hostileText, { nil: undefined }), (code, text, retryAfter) => {
      try {
        const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
        const tokens = readTokenResponse({ status: code, headers, body: Buffer.from(text) }, context);
        if (code > 299 || !/^[\x21-\x7e]{1,16384}$/.test(tokens.accessToken)) throw new Error('no token');
        if (!(tokens.lifetimeMs >= 1000 && tokens.lifetimeMs <= 86_400_000)) throw new Error('no lifetime');
        if (tokens.refreshToken === '') throw new Error('an empty refresh token');
      } catch (error) {
        if (!(error instanceof OAuthAppError)) throw error;
        const shown = shownOf(error);
        for (const hidden of [...SECRETS, TOKEN]) if (shown.includes(hidden)) throw new Error(`shows ${hidden}`);
      }
    }),
  );
  expect(arePrototypesUntouched()).toBe(true);
});
