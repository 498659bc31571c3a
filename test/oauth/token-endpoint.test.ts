import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { TokenEndpoint } from '../../src/oauth/token-endpoint.js';
import { Secret } from '../../src/redaction.js';
import {
  answer,
  type FaultyServer,
  hangUp,
  json,
  REFUSING_ORIGIN,
  reset,
  startFaultyServer,
} from '../support/faulty-server.js';
import { threats } from '../support/threats.js';

const good = { access_token: 'token', token_type: 'bearer', expires_in: 7200, refresh_token: 'refresh' };

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

const endpoint = (authUrl = server.origin) =>
  new TokenEndpoint({
    tokenPath: '/oauth/token',
    tokenRequest: 'json',
    clientAuthentication: 'body',
    http,
    authUrl,
    clientID: 'id',
    clientSecret: new Secret('secret "\\ ü'),
    timeoutMs: 60_000,
    organizationDomain: () => undefined,
    clock: Date.now,
  });

const lastBody = () => JSON.parse(server.requests.at(-1)?.body.toString() ?? '');

const ADVICE = ' If that means that the refresh token is dead, set the option endsGrant.';

test.each<[string, 'code' | 'refresh', number, object, string]>([
  [
    'of the client',
    'code',
    401,
    { error: 'invalid_client' },
    'invalid_client. Check the options clientID and clientSecret.',
  ],
  ['of a code', 'code', 400, { error: 'expired' }, 'expired.'],
  ['of a refresh token', 'refresh', 400, { error: 'expired' }, `expired.${ADVICE}`],
  ['of the client at a refresh', 'refresh', 400, { error: 'unauthorized_client' }, 'unauthorized_client.'],
  ['without an error at a refresh', 'refresh', 404, {}, 'Nothing of it was kept.'],
])('a refusal %s says what to do', async (_what, grant, status, body, end) => {
  server.next(json(body, status));
  const client = endpoint();
  const sent = grant === 'code' ? client.exchangeCode({ code: 'c' }) : client.refresh('refresh');
  const { message } = await sent.then(
    () => expect.unreachable(),
    (error: Error) => error,
  );
  expect(message.endsWith(` ${end}`), message).toBe(true);
});

describe('a code exchange', () => {
  test('is sent at once, whatever is under way, and takes no turn of a refresh', async () => {
    const held: (() => void)[] = [];
    server.always((socket, request) => void held.push(() => json(good)(socket, request)));
    const client = endpoint();
    const exchanges = Array.from({ length: 20 }, () => client.exchangeCode({ code: 'c' }));
    const turn = client.turn(true);
    await turn.wait();
    const refresh = client.refresh('refresh', { turn });
    await server.received(21);
    for (const answer of held) answer();
    expect(await Promise.all([...exchanges, refresh])).toHaveLength(21);
  });

  test('sends JSON with exactly the fields of service.md, 4.2', async () => {
    server.next(json(good));
    await endpoint(`${server.origin}/base`).exchangeCode({ code: 'c', redirectUri: 'https://app.example/callback' });
    const [request] = server.requests;
    expect([request?.method, request?.target]).toEqual(['POST', '/base/oauth/token']);
    expect(request?.headers).toMatchObject({ 'content-type': 'application/json', accept: 'application/json' });
    expect(request?.headers).not.toHaveProperty('authorization');
    expect(lastBody()).toEqual({
      grant_type: 'authorization_code',
      client_id: 'id',
      client_secret: 'secret "\\ ü',
      redirect_uri: 'https://app.example/callback',
      code: 'c',
    });
  });

  test('sends the code verifier where there is one', async () => {
    server.next(json(good));
    await endpoint().exchangeCode({ code: 'c', redirectUri: 'r', codeVerifier: 'v' });
    expect(lastBody()).toMatchObject({ code_verifier: 'v' });
  });
});

test('a refresh sends JSON with exactly the fields of service.md, 4.3', async () => {
  server.next(json(good));
  await endpoint().refresh('old');
  expect(lastBody()).toEqual({
    grant_type: 'refresh_token',
    client_id: 'id',
    client_secret: 'secret "\\ ü',
    refresh_token: 'old',
  });
});

test.each([
  ['a reset', reset()],
  ['a connection that ends', hangUp()],
  ['a fault', answer(500, {}, '')],
  ['an overload', answer(503, { 'retry-after': '1' }, '')],
])('%s after the request left is not followed by a second try', threats(38), async (_what, behaviour) => {
  server.always(behaviour);
  await expect(endpoint().refresh('old')).rejects.toMatchObject({ name: 'ServiceUnavailableError', status: 503 });
  expect(server.requests).toHaveLength(1);
});

test('a refused connection ends in a ServiceUnavailableError that names the cause', threats(36), async () => {
  await expect(endpoint(REFUSING_ORIGIN).refresh('old')).rejects.toMatchObject({
    name: 'ServiceUnavailableError',
    message: expect.stringContaining('could not be reached'),
  });
});

test.each([
  [true, 2],
  [false, 1],
])('a request that could not be sent is made again only if the caller still may: %s', async (mayRepeat, tries) => {
  let connections = 0;
  const dispatcher = new Agent({
    connect: (_options, callback) => {
      connections += 1;
      callback(Object.assign(new Error('refused'), { code: 'ECONNREFUSED' }), null);
    },
  });
  http = new HttpClient({ dispatcher });
  const refreshed = endpoint('http://127.0.0.1:9').refresh('old', { mayRepeat: () => mayRepeat });
  await expect(refreshed).rejects.toMatchObject({ name: 'ServiceUnavailableError' });
  expect(connections).toBe(tries);
  await dispatcher.close();
});

test('a redirect is not followed', threats(26), async () => {
  server.always(answer(308, { location: `${server.origin}/elsewhere` }, ''));
  await expect(endpoint().refresh('old')).rejects.toMatchObject({ name: 'TokenResponseError' });
  expect(server.requests).toHaveLength(1);
});

test('64 KiB are read, and one byte more is not', threats(31), async () => {
  const padded = (size: number) => {
    const text = JSON.stringify({ ...good, padding: '' });
    return answer(200, {}, text.replace('"padding":""', `"padding":"${'x'.repeat(size - text.length)}"`));
  };
  server.next(padded(65_536));
  await expect(endpoint().refresh('old')).resolves.toMatchObject({ accessToken: 'token' });
  server.next(padded(65_537));
  await expect(endpoint().refresh('old')).rejects.toMatchObject({ name: 'TokenResponseError' });
});
