import fc from 'fast-check';
import { asOwnProperties, base64urlOfJson, hostileJson, hostileText } from './hostile.js';

/** What answers quote, and errors must not. */
export const SECRETS = ['canary-client-secret-0123456789', 'canary-code', 'canary-refresh-token-9876543210'];
/** An access token that was never sent, and may stand anywhere in an answer. */
export const TOKEN = 'canaryAccessTokenOfTheAnswer0123456789';

const secret = fc.constantFrom(...SECRETS, TOKEN);
const quoting = fc.tuple(hostileText, secret, hostileText).map((parts) => parts.join(''));
const jwt = hostileJson(['sub', 'domain', 'exp']).map((claims) => `e30.${base64urlOfJson(claims)}.x`);
const fields = {
  access_token: fc.oneof(fc.constant(TOKEN), jwt, quoting, fc.anything()),
  token_type: fc.oneof(fc.constantFrom('bearer', 'Bearer', 'mac', undefined, null), quoting),
  expires_in: fc.oneof(fc.constantFrom(7200, '7200', 0, -1, 1e300, Number.NaN), hostileText, fc.double()),
  refresh_token: fc.oneof(fc.constantFrom(undefined, null, '', 'canary-refresh-token-9876543210'), fc.anything()),
  error: fc.oneof(fc.constantFrom(undefined, 'invalid_grant', 'invalid_client'), quoting, fc.anything()),
  error_description: fc.oneof(quoting, hostileText),
};
const names = Object.keys(fields) as (keyof typeof fields)[];
const entry = fc.oneof(...names.map((name) => fc.tuple(fc.constant(name), fields[name] as fc.Arbitrary<unknown>)));
const object = fc.array(entry, { maxLength: 6 }).map(asOwnProperties);
/** Bodies of the token endpoint: sound, odd, cut off, or full of secrets. */
export const tokenBody: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: object.map(toJson), weight: 6 },
  { arbitrary: hostileJson(names).map(toJson), weight: 2 },
  { arbitrary: quoting, weight: 1 },
  { arbitrary: fc.tuple(object.map(toJson), fc.nat(200)).map(([text, at]) => text.slice(0, at)), weight: 1 },
);
/** Statuses of the token endpoint. */
export const tokenStatus: fc.Arbitrary<number> = fc.oneof(
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
