import { afterEach, beforeEach, expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { RevocationEndpoint } from '../../src/jobs/revocation-endpoint.js';
import { Secret } from '../../src/redaction.js';
import { answer, type FaultyServer, json, REFUSING_ORIGIN, startFaultyServer } from '../support/faulty-server.js';

let server: FaultyServer;
let http: HttpClient;
beforeEach(async () => {
  server = await startFaultyServer();
  http = new HttpClient();
});
afterEach(async () => {
  await http.close();
  await server.close();
});

const NOW = Date.parse('2026-01-01T00:00:00Z');

const endpoint = (authUrl = server.origin) =>
  new RevocationEndpoint({
    http,
    authUrl,
    revocationPath: '/oauth/revoke',
    tokenRequest: 'json',
    clientAuthentication: 'body',
    clientID: 'id',
    clientSecret: new Secret('secret'),
    timeoutMs: 60_000,
    clock: () => NOW,
  });

test.each([
  ['refresh_token', { accessToken: 'access', refreshToken: 'refresh' }, 'refresh'],
  ['access_token', { accessToken: 'access', refreshToken: undefined }, 'access'],
])('revokes the %s of %o', async (hint, tokens, token) => {
  server.next(answer(200, {}, ''));
  await endpoint().revoke(tokens);
  const [request] = server.requests;
  expect([request?.method, request?.target]).toEqual(['POST', '/oauth/revoke']);
  expect(JSON.parse(request?.body.toString() ?? '')).toEqual({
    token,
    token_type_hint: hint,
    client_id: 'id',
    client_secret: 'secret',
  });
});

test.each<[what: string, status: number, body: object | undefined, outcome: string]>([
  ['a success without a body', 200, undefined, 'revoked'],
  ['the last status of a success', 299, {}, 'revoked'],
  ['a refusal of what is no token', 400, { error: 'invalid_token' }, 'revoked'],
  ['a success with that error', 200, { error: 'invalid_token' }, 'revoked'],
  [
    'a success with another error',
    200,
    { error: 'invalid_client' },
    'TokenError: refused the request with status 200.',
  ],
  ['a redirect with an error', 302, { error: 'x' }, 'TokenError: refused the request with status 302.'],
  ['an error that is no text', 200, { error: 7 }, 'revoked'],
  ['a refusal', 401, { error: 'invalid_client' }, 'TokenError: refused the request with status 401.'],
  ['a refusal without a word', 400, undefined, 'TokenError: refused the request with status 400.'],
  ['the last refusal', 499, undefined, 'TokenError: refused the request with status 499.'],
  ['a redirect', 302, undefined, 'TokenResponseError: answered with status 302.'],
  ['the last redirect', 399, undefined, 'TokenResponseError: answered with status 399.'],
  ['a request that took too long', 408, { error: 'x' }, 'ServiceUnavailableError: answered with status 408.'],
  ['an overload', 429, { error: 'x' }, 'ServiceUnavailableError: answered with status 429.'],
  ['a fault', 500, { error: 'invalid_token' }, 'ServiceUnavailableError: answered with status 500.'],
])('%s: %i with %j ends as %s', async (_what, status, body, outcome) => {
  server.next(body ? json(body, status) : answer(status, {}, ''));
  const ending = await endpoint()
    .revoke({ accessToken: 'access', refreshToken: 'refresh' })
    .then(
      () => 'revoked',
      ({ name, message }: Error) => `${name}: ${message.replace('The revocation endpoint ', '')}`,
    );
  expect(ending).toBe(outcome);
});

test('a refusal has no word of the service', async () => {
  server.next(json({ error: 'a_word', error_description: 'Why' }, 400));
  await expect(endpoint().revoke({ accessToken: 'a', refreshToken: 'b' })).rejects.toMatchObject({
    error: 'unrecognized_error',
    message: expect.not.stringMatching(/a_word|Why/),
  });
});

test('tells when to try again, in seconds, if the service does', async () => {
  const tokens = { accessToken: 'access', refreshToken: undefined };
  for (const [header, seconds] of [
    ['7', 7],
    ['Thu, 01 Jan 2026 00:00:09 GMT', 9],
  ] as const) {
    server.next(answer(503, { 'retry-after': header }, ''));
    await expect(endpoint().revoke(tokens)).rejects.toMatchObject({ retryAfter: seconds });
  }
  server.next(answer(503, {}, ''));
  await expect(endpoint().revoke(tokens)).rejects.toMatchObject({ retryAfter: undefined });
});

test('does not answer where nobody listens', async () => {
  await expect(endpoint(REFUSING_ORIGIN).revoke({ accessToken: 'a', refreshToken: 'b' })).rejects.toMatchObject({
    name: 'ServiceUnavailableError',
    message: 'The revocation endpoint did not answer in full.',
    cause: { name: 'TransportError' },
  });
});

test('lets an error of the program through as it is', async () => {
  const fault = new TypeError('a fault of the dispatcher');
  http.send = () => Promise.reject(fault);
  await expect(endpoint().revoke({ accessToken: 'a', refreshToken: 'b' })).rejects.toBe(fault);
});
