import { describe, expect, test, vi } from 'vitest';
import { apiClient, requireAuthorization, type Strategy } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { clock, loggedIn, logIn, open, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { TroubledStore } from '../support/troubled-store.js';
import { type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

const behind = (guard: Handler): WorldOptions => ({
  routes: (app) => {
    app.use('/private', guard, (_req, res) => sendJson(res, { passed: true }));
  },
});

describe('requireAuthorization under Express', () => {
  const guarded = behind(requireAuthorization({ login: '/login' }));

  test('lets a request pass that has a grant', async () => {
    await open(guarded);
    await logIn();
    expect((await visit('/private')).json()).toEqual({ passed: true });
    expect((await visit('/private', { method: 'POST' })).json()).toEqual({ passed: true });
  });

  test.each<[string, string, Record<string, string>]>([
    ['GET', 'of a page', { accept: 'text/html,application/xhtml+xml' }],
    ['HEAD', 'of a page', { accept: 'text/html' }],
    ['GET', "of a page by Node's fetch", { accept: 'text/html', 'sec-fetch-mode': 'cors' }],
    ['GET', 'by navigation', { 'sec-fetch-mode': 'navigate', accept: '*/*' }],
  ])('sends a %s %s to log in', async (method, _what, headers) => {
    await open(guarded);
    const answer = await rawRequest(world.url, '/private/x?y=1', { method, headers });
    expect([answer.status, answer.headers.location]).toEqual([302, '/login?returnTo=%2Fprivate%2Fx%3Fy%3D1']);
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test.each<[string, string, Record<string, string>]>([
    ['POST', 'of a form', { accept: 'text/html' }],
    ['GET', 'for JSON', { accept: 'application/json' }],
    ['GET', 'for anything', { accept: '*/*' }],
    ['GET', 'by fetch', { accept: 'text/html', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' }],
    ['GET', 'for an image', { accept: 'text/html', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }],
    ['GET', 'by XMLHttpRequest', { accept: 'text/html', 'x-requested-with': 'XMLHttpRequest' }],
    ['DELETE', 'whatever it accepts', { accept: 'text/html' }],
  ])('answers a %s %s with NotAuthorizedError', async (method, _what, headers) => {
    await open(guarded);
    const answer = await rawRequest(world.url, '/private', { method, headers });
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.text)).toMatchObject({ name: 'NotAuthorizedError', code: 'ERR_NOT_AUTHORIZED' });
    expect(answer.headers['set-cookie']).toBeUndefined();
  });

  test('without login answers a page request with NotAuthorizedError too', async () => {
    await open(behind(requireAuthorization()));
    expect((await rawRequest(world.url, '/private')).status).toBe(401);
  });

  test('sends back to the page after the login, once', async () => {
    await open(guarded);
    await visit('/private/x?y=1');
    expect((await logIn()).headers.get('location')).toBe('/private/x?y=1');
    expect((await logIn()).headers.get('location')).toBe('/');
  });
});

describe('requireAuthorization', () => {
  test('without apiClient before it throws an error that names apiClient', async () => {
    await open({ withoutApiClient: true, ...behind(requireAuthorization({ login: '/login' })) });
    const answer = await rawRequest(world.url, '/private');
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.text)).toMatchObject({ name: 'ConfigurationError', code: 'ERR_NO_API_CLIENT' });
  });

  test.each([
    ['requireAuthorization', requireAuthorization(), { apiClient: { authorized: true } }, /emulator/],
    [
      'a response that is a plain object',
      requireAuthorization(),
      {},
      /without appendHeader, setHeader, end.*node-mocks-http/,
    ],
  ])('tells a unit test what a double needs: %s', (_what, middleware, req, message) => {
    const next = vi.fn();
    middleware(req as never, {} as never, next);
    expect(next.mock.calls).toEqual([[expect.objectContaining({ message: expect.stringMatching(message) })]]);
  });

  test('needs of a double of a response what the documents say', async () => {
    const { strategy } = await open();
    const req = { method: 'GET', url: '/private', headers: { accept: 'text/html' }, socket: {} } as never;
    const res = { statusCode: 0, setHeader: vi.fn(), appendHeader: vi.fn(), end: vi.fn() };
    const next = vi.fn();
    apiClient(strategy)(req, res as never, next);
    requireAuthorization({ login: '/login' })(req, res as never, next);
    expect(next).toHaveBeenCalledOnce();
    expect([res.statusCode, res.end.mock.calls.length]).toEqual([302, 1]);
  });

  test('is not passed by an object that only looks like a client', async () => {
    await open({
      withoutApiClient: true,
      before: (app) =>
        app.use((req, _res, next) => {
          Object.assign(req, { apiClient: { authorized: true } });
          next();
        }),
      ...behind(requireAuthorization()),
    });
    expect((await rawRequest(world.url, '/private')).status).toBe(500);
  });

  test('looks at the property that apiClient was told', async () => {
    await open({
      routes: (app, { strategy }) => {
        app.use(apiClient(strategy, { property: 'crowdin' }));
        const guard = requireAuthorization({ property: 'crowdin' });
        app.get('/private', guard, (req, res) => sendJson(res, { authorized: Reflect.get(req, 'crowdin').authorized }));
      },
    });
    expect((await visit('/private')).status).toBe(401);
    await logIn();
    expect((await visit('/private')).json()).toEqual({ authorized: true });
  });

  test.for<[outage: string, code: string, fail: (world: World, store: TroubledStore) => () => void]>([
    [
      'the service is down',
      'ERR_SERVICE_UNAVAILABLE',
      ({ service }) => service.fail('token', { status: 503, times: Number.POSITIVE_INFINITY }),
    ],
    [
      'the store is down',
      'ERR_TOKEN_STORE',
      (_world, store) => {
        store.before = () => {
          throw new Error('down');
        };
        return () => {
          store.before = () => undefined;
        };
      },
    ],
  ])('passes nobody whose scopes are not known, as long as %s', async ([, code, fail]) => {
    const store = new TroubledStore();
    const strategy = { tokenStore: store, cache: { ttl: 0 }, scope: ['project', 'tm'] };
    await loggedIn({ strategy, ...behind(requireAuthorization({ login: '/login', scope: 'tm' })) });
    clock.advance(7_200);
    const recover = fail(world, store);
    const page = await visit('/private', { headers: { accept: 'text/html' } });
    expect([page.status, page.json().code]).toEqual([503, code]);
    recover();
    clock.advance(31);
    expect((await visit('/private')).json()).toEqual({ passed: true });
  });

  test.each([[7], [''], ['/log in'], ['/x\r\nSet-Cookie: a=b'], [null]])(
    'is refused when it is set up with login: %j',
    async (login) => {
      await open();
      expect(() => requireAuthorization({ login } as never)).toThrow(
        expect.objectContaining({ name: 'ConfigurationError', option: 'login' }),
      );
    },
  );
});

describe('apiClient', () => {
  test('attaches a client that is not authorized if there is no grant, and whose calls reject', async () => {
    await open({
      routes: (app) =>
        app.get('/try', (req, res) => {
          const { authorized, grantId } = req.apiClient;
          const calls = [req.apiClient.projects(), req.apiClient.accessToken(), req.apiClient.post('/x', { json: {} })];
          return Promise.allSettled(calls).then((results) =>
            sendJson(res, {
              authorized,
              grantId,
              names: results.map((r) => r.status === 'rejected' && [r.reason.name, r.reason.status]),
            }),
          );
        }),
    });
    const page = await new Browser().visit(`${world.url}/try`);
    expect(page.json()).toEqual({
      authorized: false,
      names: Array.from({ length: 3 }, () => ['NotAuthorizedError', 401]),
    });
    expect(world.service.requests).toEqual([]);
  });

  test('with a good token makes no request of its own, to the service or to the token store on a cache hit', async () => {
    const tokenStore = new TroubledStore();
    await open({ strategy: { tokenStore } });
    await logIn();
    tokenStore.calls.length = 0;
    const before = world.service.requests.length;
    for (let count = 0; count < 5; count++) expect((await whoami()).authorized).toBe(true);
    expect(world.service.requests).toHaveLength(before);
    expect(tokenStore.calls).toEqual([]);
  });

  test.each([[undefined], [{}], ['oauth-app']])('apiClient(%j) is refused when it is set up', async (given) => {
    await open();
    expect(() => apiClient(given as unknown as Strategy)).toThrow(expect.objectContaining({ option: 'strategy' }));
  });

  test('left out under Connect, the login route answers with an error that names it', async () => {
    await open({ framework: 'connect', withoutApiClient: true });
    const answer = await rawRequest(world.url, '/login');
    expect(JSON.parse(answer.text)).toMatchObject({ name: 'ConfigurationError', code: 'ERR_NO_RESPONSE' });
    expect(answer.text).toContain('apiClient(strategy)');
  });

  test('left out under Express, logins still work', async () => {
    await open({ withoutApiClient: true });
    expect((await world.logIn(new Browser())).status).toBe(302);
  });
});
