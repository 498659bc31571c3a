import { Agent } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { HttpClient } from '../../src/http/http-client.js';
import { TokenEndpoint, type TokenEndpointOptions } from '../../src/oauth/token-endpoint.js';
import { Secret } from '../../src/redaction.js';
import { hangUp } from '../support/broken-answers.js';
import { answer, type FaultyServer, json, REFUSING_ORIGIN, startFaultyServer } from '../support/faulty-server.js';
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

const endpoint = (authUrl = server.origin, changes: Partial<TokenEndpointOptions> = {}) =>
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
    ...changes,
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
  ['without an error at a refresh', 'refresh', 404, {}, `unrecognized_error.${ADVICE}`],
  ['with a 401 of no words', 'code', 401, [], 'Check the options clientID and clientSecret.'],
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
  test('is sent at once, whatever is under way, and takes no slot of a refresh', async () => {
    const held: (() => void)[] = [];
    server.always((socket, request) => void held.push(() => json(good)(socket, request)));
    const client = endpoint();
    const exchanges = Array.from({ length: 20 }, () => client.exchangeCode({ code: 'c' }));
    const turn = { isAwaited: true };
    await client.queue.wait(turn);
    const refresh = client.refresh('refresh', { turn });
    await server.received(21);
    for (const answer of held) answer();
    expect(await Promise.all([...exchanges, refresh])).toHaveLength(21);
  });
});

test('a refused connection ends in a ServiceUnavailableError that names the cause', threats(36), async () => {
  await expect(endpoint(REFUSING_ORIGIN).refresh('old')).rejects.toMatchObject({
    name: 'ServiceUnavailableError',
    message: expect.stringContaining('Could not reach the token endpoint at 127.0.0.1:1.'),
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

test('a mebibyte is read, and one byte more is not', threats(31), async () => {
  const padded = (size: number) => {
    const text = JSON.stringify({ ...good, padding: '' });
    return answer(200, {}, text.replace('"padding":""', `"padding":"${'x'.repeat(size - text.length)}"`));
  };
  server.next(padded(1_048_576));
  await expect(endpoint().refresh('old')).resolves.toMatchObject({ accessToken: 'token' });
  server.next(padded(1_048_577));
  await expect(endpoint().exchangeCode({ code: 'c' })).rejects.toMatchObject({ name: 'TokenResponseError' });
});

/** The error of a call that fails. */
const errorOf = (call: Promise<unknown>): Promise<Error & { error?: string }> =>
  call.then(
    () => expect.unreachable(),
    (error) => error,
  );

describe('the scope of a token response', () => {
  test('that states none is the one that was asked for', async () => {
    server.always(json(good));
    const scope = ['project'];
    expect((await endpoint().exchangeCode({ code: 'c', scope })).scope).toEqual(scope);
    const asked = { grant_type: 'client_credentials', scope: 'project tm' };
    expect((await endpoint().requestTokens(asked)).scope).toEqual(['project', 'tm']);
    expect((await endpoint().refresh('old'))?.scope).toBeUndefined();
  });

  test('that states one is that one', async () => {
    server.always(json({ ...good, scope: 'tm' }));
    expect((await endpoint().exchangeCode({ code: 'c', scope: ['project'] })).scope).toEqual(['tm']);
    expect((await endpoint().requestTokens({ grant_type: 'x', scope: 'project' })).scope).toEqual(['tm']);
  });
});

test('a request for the application keeps no refresh token, and shows no parameter that may be a secret', async () => {
  server.next(json({ ...good, refresh_token_expires_in: 10 }));
  const asked = { grant_type: 'x', user: 1234567, key: 'a-secret', scope: 'the-code' };
  const tokens = await endpoint().requestTokens(asked);
  expect(tokens).toMatchObject({ refreshToken: undefined, refreshTokenLifetimeMs: undefined });
  expect(lastBody()).toEqual({ ...asked, client_id: 'id', client_secret: 'secret "\\ ü' });
  server.next(json({ error: 'a', error_description: '1234567, a-secret, the-code, secret "\\ ü' }, 400));
  const { message } = await errorOf(endpoint().requestTokens(asked));
  expect(message).toContain('1234567');
  expect(message).toContain('the-code');
  expect(message).not.toMatch(/a-secret|secret "/);
});

test('a refresh has the new refresh token, or the one that was sent where the answer has none', async () => {
  server.next(json(good));
  expect((await endpoint().refresh('old'))?.refreshToken).toBe('refresh');
  server.next(json({ ...good, refresh_token: undefined }));
  expect((await endpoint().refresh('old'))?.refreshToken).toBe('old');
});

test('a form has no parameter that there is no value for', async () => {
  server.next(json(good));
  await endpoint(undefined, { tokenRequest: 'form' }).exchangeCode({ code: 'c' });
  const body = new URLSearchParams(server.requests.at(-1)?.body.toString());
  expect([...body.keys()]).toEqual(['grant_type', 'client_id', 'client_secret', 'code']);
});

test.for([
  ['basic', 'secret "\\ ü', true],
  ['basic', 'plain', false],
  ['body', 'secret "\\ ü', false],
] as const)(
  'a client that is refused with %s and the secret %s is told of two readings: %s',
  async ([how, secret, isTold]) => {
    server.next(json({ error: 'invalid_client' }, 401));
    const client = endpoint(undefined, { clientAuthentication: how, clientSecret: new Secret(secret) });
    const { message } = await errorOf(client.refresh('old'));
    expect(message.endsWith("'basic-raw' does not, for servers that do not decode.")).toBe(isTold);
  },
);

test.for(['json', 'form'] as const)('a refusal that quotes a %s request shows no secret', async (tokenRequest) => {
  server.always((...sent) => json({ error: 'a', error_description: `${sent[1].body}` }, 400)(...sent));
  const client = endpoint(undefined, { tokenRequest, clientSecret: new Secret('Ab"3(\\dE') });
  const exchanged = await errorOf(client.exchangeCode({ code: '4/0A"V+b', codeVerifier: 'the-verifier' }));
  const refreshed = await errorOf(client.refresh('r"0A=\\7'));
  expect(`${exchanged.message}${refreshed.message}`).not.toMatch(/0A|the-verifier|Ab|dE/);
  server.next(json({ error: 'a', error_description: 'of pa\nss 1, https://a.example' }, 400));
  const asked = endpoint().requestTokens({ grant_type: 'x', password: 'pa ss 1', redirect_uri: 'https://a.example' });
  expect((await errorOf(asked)).message).toContain('(of […], […])');
  const redirectUri = 'https://a.example/cb';
  server.next(json({ error: 'a', error_description: `not ${redirectUri}` }, 400));
  expect((await errorOf(client.exchangeCode({ code: '#', redirectUri }))).message).toContain(`(not ${redirectUri})`);
});

describe('a refresh that is refused', () => {
  const refused = (error: string, client = endpoint()) => {
    server.next(json({ error, error_description: 'Why' }, 400));
    return client.refresh('refresh');
  };

  test('where endsGrant throws is an error of the configuration', async () => {
    const cause = new Error('Its own');
    const client = endpoint(undefined, {
      endsGrant: () => {
        throw cause;
      },
    });
    expect(await errorOf(refused('expired', client))).toMatchObject({
      ...{ option: 'endsGrant', code: 'ERR_CONFIGURATION' },
      ...{ message: expect.stringContaining('endsGrant: the function threw'), cause: { message: 'Its own' } },
    });
    server.next(answer(500, {}, ''));
    expect(await errorOf(client.refresh('refresh'))).toMatchObject({ name: 'ServiceUnavailableError' });
  });

  test('again with a word that nobody knows is warned of once, with the word', async () => {
    const warnings: (Error & { code?: string })[] = [];
    const listen = (warning: Error) => void warnings.push(warning);
    process.on('warning', listen);
    const client = endpoint();
    const ask = async (token: string, error: string) => {
      server.next(json({ error, error_description: 'Why' }, 400));
      await errorOf(client.refresh(token));
      await new Promise((resolve) => setImmediate(resolve));
      return warnings.length;
    };
    try {
      for (const error of ['unauthorized_client', 'unauthorized_client', 'expired'])
        expect(await ask('a', error)).toBe(0);
      // It is remembered until a hundred others have come.
      for (let other = 0; other < 100; other += 1) await ask(`${other}`, 'expired');
      expect(await ask('a', 'expired')).toBe(0);
      const decided = endpoint(undefined, { endsGrant: () => false });
      for (let times = 0; times < 2; times += 1) {
        await errorOf(refused('expired', decided));
        expect(await ask('1', 'expired')).toBe(1);
      }
      expect(warnings[0]?.code).toBe('ERR_REFRESH_REFUSED');
    } finally {
      process.off('warning', listen);
    }
  });
});

test('a damaged answer and half of one are told apart', async () => {
  const errorAt = (status: number) => {
    server.next(answer(status, { 'content-encoding': 'gzip', 'retry-after': '600' }, 'no gzip'));
    return errorOf(endpoint().refresh('old'));
  };
  expect((await errorAt(200)).message).toContain('with a damaged content encoding;');
  expect((await errorAt(400)).message).toContain('with status 400 and a damaged content encoding;');
  expect(await errorAt(429)).toMatchObject({ name: 'ServiceUnavailableError', retryAfter: 600 });
  server.next(answer(200, {}, 'x'.repeat(1_048_577)));
  expect((await errorOf(endpoint().refresh('old'))).message).toContain('with more than 1048576 bytes;');
  server.next(hangUp());
  expect(await errorOf(endpoint().refresh('old'))).toMatchObject({
    message: `No complete response from the token endpoint at 127.0.0.1:${server.port}.`,
    cause: expect.any(Error),
  });
});
