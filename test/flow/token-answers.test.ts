import { gzipSync } from 'node:zlib';
import { describe, expect, onTestFinished, test } from 'vitest';
import { fastForward } from '../support/fast-forward.js';
import { answer, type Behaviour, hang, json, startFaultyServer } from '../support/faulty-server.js';
import { browser, logIn, open, openWithEndpoint, visit, whoami, world } from '../support/one-world.js';
import type { World } from '../support/world.js';

const jwt = (claims: object) =>
  `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`;
const good = { access_token: jwt({ sub: '1' }), token_type: 'bearer', expires_in: 7200, refresh_token: 'r' };

/** Logs in while the token endpoint gives this answer. */
async function logInWith(fault: Parameters<World['service']['fail']>[1]) {
  await open({ strategy: { userProfile: async () => ({ id: '1' }) } });
  const callback = await world.begin(browser);
  world.service.fail('token', fault);
  return visit(callback);
}

async function expectNoLogin(): Promise<void> {
  expect(world.tokenRequests()).toHaveLength(1);
  expect(world.stored()).toEqual([]);
  const me = await whoami();
  expect([me.user, me.authorized]).toEqual([undefined, false]);
  expect((await logIn()).status).toBe(302);
}

describe('a login fails, nothing is stored, and the next one works, after', {
  meta: { threats: [26, 30, 31, 32, 33] },
}, () => {
  const unusable: readonly [string, Parameters<World['service']['fail']>[1]][] = [
    ['an error in a 200', { status: 200, body: { error: 'invalid_grant' } }],
    ['a page', { status: 200, body: '<!doctype html><title>Gateway</title>' }],
    ['nothing', { status: 200, body: '' }],
    ['null', { status: 200, body: null }],
    ['a list', { status: 200, body: [good] }],
    ['a text', { status: 200, body: '"text"' }],
    ['half an object', { status: 200, body: JSON.stringify(good).slice(0, -9) }],
    ['a status that nobody expects', { status: 404, body: '<h1>Not here</h1>' }],
    ['more than 64 KiB', { status: 200, body: { ...good, padding: 'x'.repeat(65_536) } }],
    ['no access_token', { status: 200, body: { ...good, access_token: undefined } }],
    ['an empty access_token', { status: 200, body: { ...good, access_token: '' } }],
    ['an access_token that is a number', { status: 200, body: { ...good, access_token: 7 } }],
    ['an access_token that is an object', { status: 200, body: { ...good, access_token: {} } }],
    ['an access_token with CR and LF', { status: 200, body: { ...good, access_token: 'a\r\nX: y' } }],
    ['an access_token with a space', { status: 200, body: { ...good, access_token: 'a b' } }],
    ['an access_token beyond ASCII', { status: 200, body: { ...good, access_token: 'ä' } }],
    ['an access_token over 16 KiB', { status: 200, body: { ...good, access_token: 'a'.repeat(16_385) } }],
    ['a token_type of another kind', { status: 200, body: { ...good, token_type: 'mac' } }],
    ['a token_type that is no text', { status: 200, body: { ...good, token_type: ['bearer'] } }],
    ['a token_type with more to it', { status: 200, body: { ...good, token_type: 'bearer x' } }],
    ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:1/' }, body: good }],
    ['a refresh_token that is no text', { status: 200, body: { ...good, refresh_token: { r: 1 } } }],
  ];
  test.each(unusable)('%s', async (_what, fault) => {
    const page = await logInWith(fault);
    expect([page.status, page.json().name]).toEqual([502, 'TokenResponseError']);
    await expectNoLogin();
  });

  test.each(['invalid_grant', 'invalid_client', 'unauthorized_client', 'a_code_of_their_own'])(
    'a refusal, whose error it tells: %s',
    async (error) => {
      const page = await logInWith({ body: { error, error_description: 'No.' } });
      expect([page.status, page.json().name]).toEqual([502, 'TokenError']);
      expect(world.errors[0]).toMatchObject({ error });
      await expectNoLogin();
    },
  );

  test.each([
    ['a fault', { status: 500 }],
    ['an overload', { status: 503, headers: { 'retry-after': '7' } }],
    ['too many requests', { status: 429 }],
    ['a bad gateway', { status: 502, body: '<h1>Bad gateway</h1>' }],
    ['a reset after it took effect', { afterEffect: true }],
  ])('%s, with a single token request', async (_what, fault) => {
    const page = await logInWith(fault);
    expect([page.status, page.json().name]).toEqual([503, 'ServiceUnavailableError']);
    if ('headers' in fault) expect(world.errors[0]?.retryAfter).toBe(7);
    await expectNoLogin();
  });
});

describe('a token endpoint that does not keep to HTTP', { meta: { threats: [26, 31, 37] } }, () => {
  const bomb = gzipSync(Buffer.alloc(50_000_000));
  const floods: readonly [string, Behaviour, string][] = [
    ['100 MB', (socket) => pour(socket, 100_000_000), 'TokenResponseError'],
    ['a gzip bomb', answer(200, { 'content-encoding': 'gzip' }, bomb), 'TokenResponseError'],
    ['chained encodings', answer(200, { 'content-encoding': 'gzip, gzip' }, gzipSync(bomb)), 'TokenResponseError'],
    ['no answer', hang(), 'ServiceUnavailableError'],
    ['an answer that drips', dripSmall, 'ServiceUnavailableError'],
  ];
  test.each(floods)('%s ends the login', async (_what, behaviour, name) => {
    const { server, callback } = await openWithEndpoint(behaviour);
    const isWaiting = () => name === 'ServiceUnavailableError' && server.requests.length > 0;
    const page = await fastForward(() => visit(callback), isWaiting);
    expect(page.json().name).toBe(name);
    expect(server.requests).toHaveLength(1);
    expect(world.stored()).toEqual([]);
  });

  test('answers in gzip are read', async () => {
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const { callback } = await openWithEndpoint(answer(200, headers, gzipSync(JSON.stringify(good))));
    expect((await visit(callback)).status).toBe(302);
  });

  test('a redirect is not followed, to any host', async () => {
    const evil = await startFaultyServer();
    onTestFinished(() => evil.close());
    evil.always(json(good));
    const { callback } = await openWithEndpoint(answer(307, { location: `${evil.origin}/oauth/token` }));
    expect((await visit(callback)).json().name).toBe('TokenResponseError');
    expect(evil.requests).toHaveLength(0);
  });
});

describe('a login works with', { meta: { threats: [33, 34] } }, () => {
  test.each<[string, object]>([
    ...['bearer', 'Bearer', 'BEARER', 'bEaReR'].map((token_type): [string, object] => [
      `the token_type ${token_type}`,
      { token_type },
    ]),
    ['no refresh_token', { refresh_token: undefined }],
    ['a refresh_token that is null', { refresh_token: null }],
    ['an access token that is no JWT', { access_token: 'opaque' }],
    ['fields that nobody knows', { scope: 'tm', __proto__x: 1 }],
    ['an access token of 16 KiB', { access_token: 'a'.repeat(16_384) }],
  ])('%s', async (_what, change) => {
    expect((await logInWith({ status: 200, body: { ...good, ...change } })).status).toBe(302);
    expect((await whoami()).authorized).toBe(true);
  });

  test.each([
    ['0', 0],
    ['a negative number', -5],
    ['a numeric text', '7200'],
    ['NaN', 'NaN'],
    ['1e300', 1e300],
    ['a fraction of a second', 1e-9],
    ['nothing', undefined],
    ['null', null],
    ['an object', {}],
  ])('expires_in of %s, and no refresh loop comes of it', async (_what, expires_in) => {
    expect((await logInWith({ status: 200, body: { ...good, expires_in } })).status).toBe(302);
    for (let count = 0; count < 5; count++) expect((await whoami()).authorized).toBe(true);
    expect(world.tokenRequests()).toHaveLength(1);
  });
});

/** Headers of a huge answer, and as much of it as the reader takes. */
function pour(socket: Parameters<Behaviour>[0], bytes: number): void {
  socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${bytes}\r\n\r\n`);
  const block = Buffer.alloc(65_536, ' ');
  const more = () => {
    while (!socket.destroyed && socket.write(block));
  };
  socket.on('drain', more);
  more();
}

/** Headers of an answer of a usual size, and then a byte now and then. */
function dripSmall(socket: Parameters<Behaviour>[0]): void {
  socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n');
  const timer = setInterval(() => socket.write(' '), 10);
  socket.on('close', () => clearInterval(timer));
}
