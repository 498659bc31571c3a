import { type IncomingHttpHeaders, type IncomingMessage, ServerResponse } from 'node:http';
import { MemoryStore } from 'express-session';
import { describe, expect, vi } from 'vitest';
import { LoginRounds } from '../../src/advice/login-rounds.js';
import { type ApiClient, createApiClient, sourceOf } from '../../src/api/api-client.js';
import { createApiContext } from '../../src/api/api-context.js';
import { ConfigurationError, NotAuthorizedError } from '../../src/errors.js';
import { randomGrantId } from '../../src/grants/grant.js';
import { HttpClient } from '../../src/http/http-client.js';
import { Secret } from '../../src/redaction.js';
import { CookieSeal } from '../../src/session/cookie-seal.js';
import { NoGrantSource } from '../../src/session/credential-sources.js';
import { GrantManagers } from '../../src/session/grant-managers.js';
import {
  ANONYMOUS,
  connectionKey,
  RequestGrants,
  type RequestGrantsOptions,
  StrategyName,
} from '../../src/session/grant-reference.js';
import { loginHelpOf, RequestClients } from '../../src/session/request-clients.js';
import { ReturnCookie } from '../../src/session/return-cookie.js';
import { StepUps } from '../../src/step-up/step-ups.js';
import { test as base, type Grants, LIFETIME_S, tokens } from '../refresh/fixture.js';
import { Jar, requestOf, setCookies, turns } from './fixture.js';

const NAME = 'oauth-app';
const ID = randomGrantId();

/** What a strategy has for its requests. */
class Strategy {
  readonly managers: GrantManagers;
  readonly clients: RequestClients;
  readonly rounds: LoginRounds;
  readonly returnCookie = new ReturnCookie('return-to');
  readonly stepUps: StepUps;
  readonly name = new StrategyName(NAME, 'a');

  constructor({ clock, another, store }: Grants, http: HttpClient, options: StrategyOptions) {
    const { grantId, tokenStore = store, strategyName = NAME } = options;
    this.managers = new GrantManagers(tokenStore ?? undefined, (one) => another({ store: one }));
    const grants = new RequestGrants({ name: NAME, grantId, strategyName: this.name }, this.managers);
    const seal = new CookieSeal('of this test', [new Secret('the secret')]);
    this.rounds = new LoginRounds('rounds', seal, clock.now);
    this.stepUps = new StepUps('step-up', seal, '', clock.now);
    const { managers, returnCookie, rounds, stepUps } = this;
    const api = createApiContext({ http, baseUrl: 'http://api.example', timeoutMs: 60_000, strategyName });
    this.clients = new RequestClients({ api, grants, managers, returnCookie, rounds, stepUps });
  }

  /** Attaches a client to a request, and returns it once it is ready. */
  async attach(req: IncomingMessage, property = 'apiClient', res = new ServerResponse(req)): Promise<ApiClient> {
    await this.clients.attach(req, res, property);
    return Reflect.get(req, property) as ApiClient;
  }
}

interface StrategyOptions {
  readonly grantId?: RequestGrantsOptions['grantId'];
  readonly tokenStore?: Grants['store'] | null;
  readonly strategyName?: string;
}

const test = base.extend<{
  readonly start: (options?: StrategyOptions) => Strategy;
  readonly strategy: Strategy;
  /** With a grant in the store that this process has not read. */
  readonly stored: Strategy;
}>({
  start: async ({ grants }, use) => {
    const http = new HttpClient();
    const started: Strategy[] = [];
    await use((options = {}) => {
      const strategy = new Strategy(grants, http, options);
      started.push(strategy);
      return strategy;
    });
    for (const { name } of started) name.release();
    await http.close();
  },
  strategy: async ({ start }, use) => use(start()),
  stored: async ({ strategy, grants }, use) => {
    await grants.manager.put(ID, tokens('a'));
    await use(strategy);
  },
});

const ofGrant = (added: object = {}, content: object = {}) =>
  requestOf({}, { session: { [NAME]: ID, ...content } as Record<string, unknown>, ...added });
const codeOf = (client: ApiClient) =>
  client.accessToken().then(
    (token) => token,
    (error: { code: string }) => error.code,
  );

describe('a client that is attached', () => {
  test('has the grant of the session, from the cache at once', async ({ stored }) => {
    const req = ofGrant();
    const pending = stored.clients.attach(req, new ServerResponse(req), 'apiClient');
    expect(pending).toBeInstanceOf(Promise);
    await pending;
    const client = Reflect.get(req, 'apiClient') as ApiClient;
    expect([client.authorized, client.grantId, await client.accessToken()]).toEqual([true, ID, 'access-a']);
    const next = ofGrant();
    expect(stored.clients.attach(next, new ServerResponse(next), 'mine')).toBeUndefined();
    expect(await (Reflect.get(next, 'mine') as ApiClient).accessToken()).toBe('access-a');
    expect(next).not.toHaveProperty('apiClient');
  });

  test('has none without a session, or where the store has none', async ({ strategy }) => {
    const req = requestOf();
    expect(strategy.clients.attach(req, new ServerResponse(req), 'apiClient')).toBeUndefined();
    const client = Reflect.get(req, 'apiClient') as ApiClient;
    expect([client.authorized, client.grantId, await codeOf(client)]).toEqual([false, undefined, 'ERR_NOT_AUTHORIZED']);
    expect(sourceOf(client)).toBeInstanceOf(NoGrantSource);
    const lost = await strategy.attach(ofGrant());
    expect([lost.authorized, lost.grantId]).toEqual([false, ID]);
  });

  const own = new NotAuthorizedError('of the application');
  test.for<[what: string, grantId: () => unknown, error: object]>([
    [
      'throws',
      () => {
        throw new Error('of the function');
      },
      {
        name: 'ConfigurationError',
        message: 'grantId: the function threw instead of returning an id',
        option: 'grantId',
        cause: { message: 'of the function' },
      },
    ],
    [
      'throws an error of this package',
      () => {
        throw own;
      },
      { name: 'NotAuthorizedError', message: 'of the application' },
    ],
    ['returns no valid id', () => 7, { name: 'ConfigurationError', option: 'grantId' }],
  ])('fails where the option grantId %s', async ([, grantId, error], { start }) => {
    const client = await start({ grantId }).attach(requestOf({}, { user: 'ada' }));
    expect(client.authorized).toBe(true);
    await expect(client.accessToken()).rejects.toMatchObject(error);
  });

  test('fails without a store of grants', async ({ start }) => {
    const client = await start({ tokenStore: null }).attach(ofGrant());
    expect(await codeOf(client)).toBe('ERR_NO_TOKEN_STORE');
  });

  test('shares its source with the others of the request', async ({ stored }) => {
    const [req, other] = [ofGrant(), ofGrant()];
    const client = await stored.attach(req);
    const sources = [await stored.attach(req), await stored.attach(req, 'second')].map(sourceOf);
    expect(sources).toEqual([sourceOf(client), sourceOf(client)]);
    expect(sources[0]).toBe(sourceOf(client));
    expect(sources[1]).toBe(sourceOf(client));
    expect(sourceOf(await stored.attach(other))).not.toBe(sourceOf(client));
    req.session[NAME] = randomGrantId();
    expect(sourceOf(await stored.attach(req))).not.toBe(sourceOf(client));
  });

  test('has its own source beside that of another strategy', async ({ stored, start }) => {
    const req = ofGrant();
    const [first, second] = [await stored.attach(req), await start().attach(req)];
    expect(sourceOf(second)).not.toBe(sourceOf(first));
  });

  test('loses the user whom Passport refuses later', async ({ stored }) => {
    const refuse = (req: IncomingMessage) => Object.assign(Reflect.get(req, 'session'), { passport: {} });
    const req = ofGrant({}, { passport: { user: 7 } });
    const client = await stored.attach(req);
    expect(client.authorized).toBe(true);
    refuse(req);
    expect([client.authorized, await codeOf(client)]).toEqual([false, 'ERR_NOT_AUTHORIZED']);
    const early = ofGrant({}, { passport: { user: 7 } });
    const ofEarly = await stored.attach(early);
    Reflect.set(early, 'session', undefined);
    expect(ofEarly.authorized).toBe(true);
    for (const kept of [
      ofGrant({ user: 'ada' }, { passport: { user: 7 } }),
      ofGrant({}, { passport: { user: 7 }, [connectionKey(NAME)]: ANONYMOUS }),
      ofGrant(),
    ]) {
      const ofKept = await stored.attach(kept);
      Reflect.set(kept, 'user', undefined);
      refuse(kept);
      expect(ofKept.authorized).toBe(true);
    }
  });
});

describe('a grant that has expired', () => {
  test.for<[method: string, url: string | undefined, isPage: boolean]>([
    ['GET', '/', true],
    ['HEAD', '/', true],
    ['POST', '/', false],
    ['GET', undefined, true],
    ['GET', '/logout', false],
    ['GET', '/auth/Sign-Out?x', false],
    ['GET', '/log_off', false],
    ['GET', '/user_logout', false],
    ['GET', '/userLogout', false],
    ['GET', '/mobileSignOff/now', false],
    ['GET', '/logoutAll', false],
    ['GET', '/sso/ssologout', false],
    ['GET', '/oidc/logoutcallback', false],
    ['GET', '/log-me-out', false],
    ['GET', '/logMeOut', false],
    ['GET', '/signed-out', false],
    ['GET', '/loggedOut', false],
    ['GET', '/userLogOffNow', false],
    ['GET', '/logOffAll', false],
    ['GET', '/connect/endsession', false],
    ['GET', '/end-session', false],
    ['GET', '/catalogOffers', true],
    ['GET', '/designOffice', true],
    ['GET', '/dialogOutput', true],
    ['GET', '/catalogOutlets', true],
    ['GET', '/weekend-sessions', true],
    ['GET', '/backendSession', true],
    ['GET', '/catalog-outlets', true],
    ['GET', '/blog-out', true],
    ['GET', '/sign-offers', true],
    ['GET', '/blog/outlook', true],
    ['GET', '/?after=/logout&userLogout', true],
    ['GET', '/?then=/log-out', true],
    ['GET', '/?end-session', true],
    ['GET', '/signin', true],
  ])('is refreshed for a page alone: %s %s', async ([method, url, isPage], { stored, grants }) => {
    grants.clock.advance(LIFETIME_S);
    const client = await stored.attach(ofGrant({ method, url }));
    expect([client.authorized, grants.service.requests.length]).toEqual([true, isPage ? 1 : 0]);
    await sourceOf(client).prepareFully?.();
    expect(grants.service.requests).toHaveLength(1);
    expect(await client.accessToken()).toBe('access-1');
    expect(grants.service.requests).toHaveLength(1);
  });
});

describe('a browser that has logged in', () => {
  const visit = async (strategy: Strategy, added: object, headers: IncomingHttpHeaders = { accept: 'text/html' }) => {
    const jar = new Jar();
    jar.visit((req, res) => strategy.rounds.count(req, res, 'ada', '', strategy.managers.only()));
    const req = jar.request(headers, added);
    const res = new ServerResponse(req);
    await strategy.attach(req, 'apiClient', res);
    jar.take(res);
    if (strategy.rounds.hasLost(jar.request())) return 'lost';
    if (setCookies(res).length === 0) return 'as before';
    return jar.header === undefined ? 'grant' : 'none';
  };
  const session = { [NAME]: ID };

  test.for<[what: string, added: object, found: string, headers?: IncomingHttpHeaders]>([
    ['with its grant', { session }, 'grant'],
    ['with a grant that is not there', { session: { [NAME]: randomGrantId() } }, 'lost'],
    ['without a session', {}, 'none'],
    ['without a grant', { session: {} }, 'none'],
    ['for no page', {}, 'as before', {}],
  ])('has come back %s', async ([, added, found, headers], { stored }) => {
    expect(await visit(stored, added, headers)).toBe(found);
    // From the cache.
    expect(await visit(stored, added, headers)).toBe(found);
  });

  test('is not known to have come back where the grant cannot be found', async ({ start }) => {
    const strategy = start({ grantId: () => 7 });
    expect(await visit(strategy, { user: 'ada' })).toBe('as before');
  });

  test('has come back at once if the grant is cached', async ({ stored }) => {
    await stored.attach(ofGrant());
    const jar = new Jar();
    jar.visit((req, res) => stored.rounds.count(req, res, 'ada', '', stored.managers.only()));
    const req = jar.request({}, { session });
    const res = new ServerResponse(req);
    expect(stored.clients.attach(req, res, 'apiClient')).toBeUndefined();
    expect(setCookies(res)).toHaveLength(1);
  });

  test('without the cookie of rounds has no other', async ({ stored }) => {
    for (const req of [ofGrant(), ofGrant(), requestOf({ accept: 'text/html' })]) {
      const res = new ServerResponse(req);
      await stored.attach(req, 'apiClient', res);
      expect(setCookies(res)).toEqual([]);
    }
  });
});

type LogOut = (this: IncomingMessage, options: unknown, done?: (error?: unknown) => void) => unknown;
interface WithLogOut {
  logOut: LogOut & ((done: (error?: unknown) => void) => unknown);
  logout: LogOut;
}

describe('req.logout()', () => {
  const isThere = ({ managers }: Strategy) => managers.only().has(ID);
  /** A request with a client, and what the log-out before it was called with. */
  async function loggedIn(strategy: Strategy, error?: unknown, content: object = {}, added: object = {}) {
    const calls: unknown[] = [];
    const logOut: LogOut = function (options, done) {
      calls.push([this === req, options, typeof done, NAME in (Reflect.get(req, 'session') ?? {})]);
      done?.(error);
      return 'returned';
    };
    const req = ofGrant({ logOut, ...added }, content) as IncomingMessage & WithLogOut & { session: object };
    await strategy.attach(req);
    return { req, calls, logOut };
  }
  const ended = (run: (done: (error?: unknown) => void) => unknown) =>
    Promise.race([new Promise<unknown>((resolve) => void run(resolve)), turns().then(() => 'never')]);

  test('deletes the grant, and the reference to it before', async ({ stored }) => {
    const { req, calls, logOut } = await loggedIn(stored);
    expect([req.logOut === logOut, req.logout === req.logOut]).toEqual([false, true]);
    const options = { keepSessionInfo: false };
    expect(await ended((done) => req.logout(options, done))).toBeUndefined();
    expect(calls).toEqual([[true, options, 'function', false]]);
    expect(await isThere(stored)).toBe(false);
    expect(await ended((done) => req.logOut(done))).toBeUndefined();
    expect(calls[1]).toEqual([true, {}, 'function', false]);
  });

  test('keeps both where Passport fails', async ({ stored }) => {
    const fault = new Error('of Passport');
    const { req } = await loggedIn(stored, fault);
    expect(await ended((done) => req.logOut(done))).toBe(fault);
    expect([req.session, await isThere(stored)]).toEqual([expect.objectContaining({ [NAME]: ID }), true]);
  });

  test('fails with the store', async ({ stored, grants }) => {
    const { req } = await loggedIn(stored);
    grants.store.fail();
    expect(await ended((done) => req.logOut(done))).toMatchObject({ name: 'TokenStoreError' });
  });

  test('without a callback is left to Passport', async ({ stored }) => {
    const { req, calls } = await loggedIn(stored);
    expect(req.logout({ a: 1 })).toBe('returned');
    expect(calls).toEqual([[true, { a: 1 }, 'undefined', true]]);
    expect(await isThere(stored)).toBe(true);
  });

  test.for([
    [undefined, []],
    [{ keepSessionInfo: true }, ['kept']],
    [{ keepSessionInfo: 1 }, []],
  ] as const)('with the options %j works in a session without methods', async ([options, left], { stored }) => {
    const { req } = await loggedIn(stored, undefined, { kept: 1 });
    await ended((done) => req.logout(options, done));
    const { session } = req as { session: { regenerate?: (done: () => void) => void } };
    await ended((done) => session.regenerate?.(done));
    expect(Object.keys(session)).toEqual(left);
  });

  test('is wrapped once, for all clients of a request, and in each request', async ({ stored }) => {
    const { req, calls, logOut } = await loggedIn(stored);
    const wrapped = req.logOut;
    await stored.attach(req, 'second');
    expect(req.logOut).toBe(wrapped);
    await ended((done) => req.logOut(done));
    expect(calls).toHaveLength(1);
    const next = Object.assign(ofGrant(), { logOut });
    await stored.attach(next);
    expect(next.logOut).toBe(wrapped);
  });

  test('is left alone where there is none, or the application names its grants itself', async ({ stored, start }) => {
    const { req } = await loggedIn(stored, undefined, {}, { logOut: 'text' });
    expect(req).toMatchObject({ logOut: 'text' });
    expect(req).not.toHaveProperty('logout');
    const named = await loggedIn(start({ grantId: () => ID }), undefined, {}, { user: 'ada' });
    expect(named.req.logOut).toBe(named.logOut);
  });
});

describe('req.login() of the application', () => {
  type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: (error?: unknown) => void) => unknown;
  const anonymous = { [connectionKey(NAME)]: ANONYMOUS };
  interface WithLogIn {
    logIn: LogIn;
    login: LogIn;
    session: object;
  }
  /** A request whose log-in gives the user this session. */
  async function connected(
    strategy: Strategy,
    session: object | undefined,
    error?: unknown,
    content: object = anonymous,
  ) {
    const calls: unknown[] = [];
    const logIn: LogIn = function (user, options, done) {
      calls.push([this === req, user, options]);
      if (session) req.session = session;
      done?.(error);
      return 'returned';
    };
    const req = ofGrant({ logIn }, content) as IncomingMessage & WithLogIn;
    await strategy.attach(req);
    return { req, calls, logIn };
  }

  test('deletes the grant that was connected before it', async ({ stored }) => {
    const { req, calls } = await connected(stored, {});
    expect(req.login).toBe(req.logIn);
    const done = vi.fn();
    expect(req.logIn('ada', { a: 1 }, done)).toBe('returned');
    expect(req.logIn('ada', done)).toBe('returned');
    expect(done.mock.calls).toEqual([[undefined], [undefined]]);
    expect(calls).toEqual([
      [true, 'ada', { a: 1 }],
      [true, 'ada', {}],
    ]);
    await turns();
    expect(await stored.managers.only().has(ID)).toBe(false);
  });

  test.for<[what: string, session: object | undefined, error?: unknown]>([
    ['that fails', {}, new Error('of Passport')],
    ['that keeps the reference', undefined],
  ])('%s keeps it', async ([, session, error], { stored, grants }) => {
    const { req } = await connected(stored, session, error);
    grants.store.calls.length = 0;
    const done = vi.fn();
    req.login('ada', done);
    expect(done.mock.calls).toEqual([[error]]);
    expect(() => req.login('ada', {})).not.toThrow();
    expect(grants.store.calls).toEqual([]);
  });

  test('does not fail with the store', async ({ stored, grants }) => {
    const { req } = await connected(stored, {});
    grants.store.fail();
    const done = vi.fn();
    req.login('ada', done);
    await turns();
    expect(grants.store.calls).toContain('delete');
    expect(done.mock.calls).toEqual([[undefined]]);
  });

  test('discards nothing where the session has no reference any more', async ({ stored, grants }) => {
    const { req } = await connected(stored, { [NAME]: randomGrantId() });
    req.session = {};
    grants.store.calls.length = 0;
    req.login('ada', () => undefined);
    expect(grants.store.calls).toEqual([]);
  });

  test('is left alone where nothing was connected before a login, or there is none', async ({ stored }) => {
    const { req, logIn } = await connected(stored, {}, undefined, {});
    expect(req.logIn).toBe(logIn);
    const bare = ofGrant({}, anonymous);
    await stored.attach(bare);
    expect(bare).not.toHaveProperty('logIn');
    expect(bare).not.toHaveProperty('login');
  });
});

test('a strategy knows the requests that have a client of its own', async ({ stored, start }) => {
  const another = start({ strategyName: 'another' });
  const req = ofGrant();
  expect(stored.clients.isAttached(req)).toBe(false);
  await stored.attach(req);
  await another.attach(requestOf());
  expect([stored, another].map(({ clients }) => clients.isAttached(req))).toEqual([true, false]);
  Reflect.set(req, 'apiClient', 'text');
  expect(stored.clients.isAttached(req)).toBe(false);
  await stored.attach(req, 'second');
  expect(stored.clients.isAttached(req)).toBe(true);
});

test('a client that was attached before the session came is told of', async ({ stored, start }) => {
  const message =
    'apiClient(strategy) is mounted before the session and Passport, so it finds no grant: mount express-session, then passport.session(), then apiClient(strategy).';
  const error = expect.objectContaining({ name: 'ConfigurationError', message, code: 'ERR_MIDDLEWARE_ORDER' });
  const req = requestOf();
  await stored.attach(req);
  expect(() => stored.clients.requireOrder(req)).not.toThrow();
  Object.assign(req, { session: {} });
  expect(() => stored.clients.requireOrder(req)).toThrow(error);
  for (const inTime of [ofGrant(), requestOf({}, { session: {} })]) {
    await stored.attach(inTime);
    expect(() => stored.clients.requireOrder(inTime)).not.toThrow();
  }
  const named = start({ grantId: () => ID });
  const ofUser = requestOf({}, { session: {} });
  await named.attach(ofUser);
  expect(() => named.clients.requireOrder(ofUser)).not.toThrow();
  Object.assign(ofUser, { user: 'ada' });
  expect(() => named.clients.requireOrder(ofUser)).toThrow(error);
});

describe('switchTo', () => {
  const other = randomGrantId();

  test('gives all clients of a request the new grant', async ({ stored }) => {
    const req = Object.assign(ofGrant(), { third: 'text' });
    const manager = stored.managers.only();
    const former = [await stored.attach(req), await stored.attach(req, 'second')];
    await stored.attach(ofGrant(), 'third');
    const grant = await manager.put(other, tokens('b'));
    const source = stored.clients.switchTo(req, manager, other, grant);
    expect(source.grantId).toBe(other);
    for (const property of ['apiClient', 'second']) {
      const client = Reflect.get(req, property) as ApiClient;
      expect(sourceOf(client)).toBe(source);
      expect(former).not.toContain(client);
      expect(await client.accessToken()).toBe('access-b');
    }
    expect(req.third).toBe('text');
  });

  test('keeps the source of the same grant, and takes what it is given', async ({ stored }) => {
    const req = ofGrant();
    const manager = stored.managers.only();
    const source = sourceOf(await stored.attach(req));
    expect(stored.clients.switchTo(req, manager, ID, undefined)).toBe(source);
    const grant = await manager.put(ID, tokens('b', { organizationDomain: 'acme' }));
    expect(source.organizationDomain).toBeUndefined();
    expect(stored.clients.switchTo(req, manager, ID, grant)).toBe(source);
    expect(source.organizationDomain).toBe('acme');
    stored.clients.switchTo(req, manager, ID, undefined);
    expect(source.organizationDomain).toBe('acme');
  });

  test('attaches nothing to a request without a client', async ({ stored }) => {
    await stored.attach(ofGrant());
    const req = ofGrant();
    const source = stored.clients.switchTo(req, stored.managers.only(), other, undefined);
    expect([source.grantId, 'apiClient' in req]).toEqual([other, false]);
  });
});

test('the clients of a request end with its logout', async ({ stored, start }) => {
  const req = ofGrant();
  const clients = [await stored.attach(req), await stored.attach(req, 'second')];
  expect(stored.clients.end(req)).toBe(ID);
  expect(clients.map(({ authorized }) => authorized)).toEqual([false, false]);
  expect(stored.clients.end(req)).toBeUndefined();
  const again = await stored.attach(req);
  expect([again.authorized, clients[0]?.authorized]).toEqual([true, false]);
  const without = start({ tokenStore: null });
  expect(without.clients.end(req)).toBeUndefined();
  const ofSession = requestOf({}, { session: { [NAME]: ID }, sessionStore: new MemoryStore() });
  await without.attach(ofSession);
  expect(without.clients.end(ofSession)).toBe(ID);
  const bare = requestOf();
  await stored.attach(bare);
  expect(stored.clients.end(bare)).toBeUndefined();
});

test('a client leads to what sends its browser to the login', async ({ strategy }) => {
  const client = await strategy.attach(requestOf());
  const { returnCookie, stepUps } = strategy;
  expect(loginHelpOf(client)).toMatchObject({ returnCookie, stepUps });
  const api = createApiContext({
    http: new HttpClient(),
    baseUrl: 'http://a.example',
    timeoutMs: 1,
    strategyName: NAME,
  });
  expect(loginHelpOf(createApiClient(new NoGrantSource(), api))).toBeUndefined();
});

describe('the response of a request', () => {
  const response = () => new ServerResponse(requestOf());
  const double = { appendHeader: () => {}, setHeader: () => {}, end: () => {} };
  const codeOfResponse = ({ clients }: Strategy, req: IncomingMessage) => {
    try {
      return clients.responseOf(req);
    } catch (error) {
      return error instanceof ConfigurationError && error.code;
    }
  };

  test('is the one that the framework has linked, else that of the client', async ({ strategy }) => {
    const [linked, attached] = [response(), response()];
    const req = requestOf({}, { res: linked });
    await strategy.attach(req, 'apiClient', attached);
    expect(strategy.clients.responseOf(req)).toBe(linked);
    const ofConnect = requestOf();
    await strategy.attach(ofConnect, 'apiClient', attached);
    expect(strategy.clients.responseOf(ofConnect)).toBe(attached);
    await strategy.attach(Object.assign(ofConnect, { res: linked }), 'apiClient', response());
    Reflect.deleteProperty(ofConnect, 'res');
    expect(strategy.clients.responseOf(ofConnect)).toBe(attached);
  });

  test.for<[what: string, req: object, code: string | undefined]>([
    ['has the methods that are needed', requestOf({}, { res: double }), undefined],
    ['is of Node, of a request with a raw body', requestOf({}, { raw: 'body', res: response() }), undefined],
    ['is of a double of a request', { res: double }, undefined],
    ['has none of the methods', requestOf({}, { res: {} }), 'ERR_FRAMEWORK'],
    ['is missing', requestOf(), 'ERR_NO_RESPONSE'],
    ['is linked and missing', requestOf({}, { res: undefined }), 'ERR_NO_RESPONSE'],
    ['is of Fastify', { raw: {} }, 'ERR_FRAMEWORK'],
    ['is of Node, of a request of Fastify', { raw: {}, res: response() }, 'ERR_FRAMEWORK'],
  ])('is refused unless it can be used: it %s', ([, req, code], { strategy }) => {
    expect(codeOfResponse(strategy, req as IncomingMessage)).toBe(code ?? Reflect.get(req, 'res'));
  });

  test('that is missing is explained', ({ strategy }) => {
    expect(() => strategy.clients.responseOf(requestOf())).toThrow(
      'The strategy cannot find the response of this request: under Connect, mount apiClient(strategy) before the routes of login and callback.',
    );
  });
});
