import { expect, test } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { ClientRequest, type ClientRequestOptions } from '../../src/oauth/client-request.js';
import { Secret } from '../../src/redaction.js';

const requestOf = (changes: Partial<ClientRequestOptions> = {}, path = '/oauth/token?tenant=1') =>
  new ClientRequest(
    {
      authUrl: 'https://login.example:8443/base',
      tokenRequest: 'json',
      clientAuthentication: 'body',
      clientID: 'id',
      clientSecret: new Secret('secret'),
      timeoutMs: 7_000,
      ...changes,
    },
    path,
  );

const COMMON = { accept: 'application/json', 'user-agent': 'passport-oauth-app' };
const BODY = { 'content-type': 'application/json', ...COMMON };
const FORM = { ...BODY, 'content-type': 'application/x-www-form-urlencoded' };

const headersOf = (headers: readonly unknown[] = []) =>
  Object.fromEntries(headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1]]] : [])));

const basic = (credentials: string) => ({ authorization: `Basic ${Buffer.from(credentials).toString('base64')}` });

test('is a POST to the endpoint, with its limits of time and size', () => {
  expect(requestOf().with({})).toMatchObject({
    origin: 'https://login.example:8443',
    path: '/base/oauth/token?tenant=1',
    method: 'POST',
    timeoutMs: 7_000,
    maxBytes: 1_048_576,
  });
  expect(requestOf({}, 'https://other.example/token').with({})).toMatchObject({
    origin: 'https://other.example',
    path: '/token',
  });
});

test.for([
  ['json', 'body', BODY, '{"grant_type":"x","client_id":"id","client_secret":"secret","scope":"a b","user":7}'],
  ['form', 'body', FORM, 'grant_type=x&client_id=id&client_secret=secret&scope=a+b&user=7'],
  ['json', 'basic', { ...BODY, ...basic('id:secret') }, '{"grant_type":"x","scope":"a b","user":7}'],
  ['form', 'basic-raw', { ...FORM, ...basic('id:secret') }, 'grant_type=x&scope=a+b&user=7'],
] as const)('%s with the credentials as %s', ([tokenRequest, clientAuthentication, headers, body]) => {
  const request = requestOf({ tokenRequest, clientAuthentication });
  const { headers: sent, body: sentBody } = request.with({ grant_type: 'x' }, { scope: 'a b', user: 7 });
  expect(headersOf(sent as readonly unknown[])).toEqual(headers);
  expect(sentBody).toBe(body);
  expect(request.isAmbiguous).toBe(false);
});

test.for([
  ['basic', 'i:d', 'a b+%ü', 'i%3Ad:a+b%2B%25%C3%BC', true],
  ['basic-raw', 'id', 'a b+%ü', 'id:a b+%ü', true],
  ['basic-raw', 'id', 'secret', 'id:secret', false],
] as const)(
  '%s of %s and %s is %s, which servers read in two ways: %s',
  ([how, clientID, secret, credentials, isAmbiguous]) => {
    const request = requestOf({ clientAuthentication: how, clientID, clientSecret: new Secret(secret) });
    expect(headersOf(request.with({}).headers as readonly unknown[])).toMatchObject(basic(credentials));
    expect(request.isAmbiguous).toBe(isAmbiguous);
  },
);

test('a body has any secret, and is read in one way', () => {
  expect(requestOf({ clientSecret: new Secret('a b+%ü') }).isAmbiguous).toBe(false);
});

test('a colon in the client ID is refused where nothing escapes it', () => {
  const message = "clientID: expected no colon with clientAuthentication 'basic-raw' (RFC 7617, 2)";
  const error = new ConfigurationError(message, { option: 'clientID' });
  expect(() => requestOf({ clientAuthentication: 'basic-raw', clientID: 'i:d' })).toThrow(error);
  expect(requestOf({ clientID: 'i:d' }).with({}).body).toContain('"i:d"');
});
