import { apiClient, memoryTokenStore, type Profile } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { addStrategy } from '../support/add-strategy.js';
import { logInLocally } from '../support/application-parts.js';
import { Browser, type Page } from '../support/browser.js';
import { FlakyStore } from '../support/flaky-store.js';
import { hold } from '../support/hold.js';
import { browser, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { grantKeys, references } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { byUser, type Handler, type Req, sendJson, type World, type WorldOptions } from '../support/world.js';

/** An application in which users log in locally, and connect accounts of the service. */
const connecting: WorldOptions = {
  routes: (app, { passport, register, url }) => {
    register(`${url}/connect/callback`);
    const options = { callbackURL: `${url}/connect/callback` } as object;
    app.get('/connect', passport.authorize('oauth-app', options) as Handler);
    app.get('/connect/callback', passport.authorize('oauth-app', options) as Handler, (req, res) =>
      sendJson(res, { account: Reflect.get(req, 'account'), user: req.user }),
    );
    app.get('/local-login/:id', logInLocally());
    app.get('/cart', (req, res) => sendJson(res, Object.assign(req.session, { cart: ['book'] })));
  },
};

describe('passport.authorize', threats(57), () => {
  test('gives an anonymous session a new id, and keeps its content', async () => {
    await open(connecting);
    await visit('/cart');
    const planted = browser.cookies(world.url).get('connect.sid') ?? '';
    const page = await visit(await world.begin(browser, {}, '/connect'));
    expect(page.json()).toEqual({ account: { id: '1' } });
    const me = await whoami();
    expect(me).toMatchObject({ authorized: true, session: { cart: ['book'] } });
    expect(browser.cookies(world.url).get('connect.sid')).not.toBe(planted);
    const attacker = new Browser();
    attacker.cookies(world.url).set('connect.sid', planted);
    expect((await attacker.visit(`${world.url}/whoami`)).json().authorized).toBe(false);
    expect((await attacker.visit(`${world.url}/projects`)).status).toBe(302);
  });

  test('keeps the session id of a user who is logged in', async () => {
    await open(connecting);
    await visit('/local-login/ada');
    const sid = browser.cookies(world.url).get('connect.sid');
    await visit(await world.begin(browser, {}, '/connect'));
    expect(browser.cookies(world.url).get('connect.sid')).toBe(sid);
    expect(await whoami()).toMatchObject({ user: { id: 'ada' }, authorized: true });
  });

  test.for<[string, string | undefined, string]>([
    ['another user has logged in', 'ada', 'ben'],
    ['a user has logged in who was not when it began', undefined, 'ben'],
  ])('finishes no connection after %s, and sends no request', async ([, first, second]) => {
    await open(connecting);
    if (first) await visit(`/local-login/${first}`);
    const callback = await world.begin(browser, {}, '/connect');
    await visit(`/local-login/${second}`);
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await whoami()).authorized).toBe(false);
  });

  test('finishes no connection for a user who has logged out', async () => {
    await open(connecting);
    await visit('/local-login/ada');
    const callback = await world.begin(browser, {}, '/connect');
    await visit('/logout', { method: 'POST' });
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test('is never finished as a login, and still good at its own route', async () => {
    await open(connecting);
    await visit('/local-login/ada');
    const callback = await world.begin(browser, {}, '/connect');
    const { search } = new URL(callback);
    expect((await visit(`/callback${search}`)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await whoami()).user).toEqual({ id: 'ada' });
    expect((await visit(callback)).json()).toEqual({ account: { id: '1' }, user: { id: 'ada' } });
  });

  test('with another account than that of the login is refused, and the grant of the login stays', async () => {
    await open(connecting);
    await logIn('1');
    const page = await visit(await world.begin(browser, { user: '2' }, '/connect'));
    expect([page.status, page.json().code]).toEqual([500, 'ERR_OTHER_ACCOUNT']);
    expect(await whoami()).toMatchObject({ user: { id: '1' }, authorized: true });
    expect((await projects()).status).toBe(200);
    expect(grantKeys(world)).toHaveLength(1);
  });

  test('with the account of the login renews its grant', async () => {
    await open(connecting);
    await logIn('1');
    const before = references(world);
    const page = await visit(await world.begin(browser, { user: '1' }, '/connect'));
    expect(page.status).toBe(200);
    expect(references(world)).not.toEqual(before);
    expect((await projects()).status).toBe(200);
  });
});

describe('passport.authorize with grantId', threats(69), () => {
  /** Local users have the ids that users of the service have. */
  const keyed: WorldOptions = {
    ...connecting,
    callback: ({ passport }) => passport.authorize('oauth-app', {}) as Handler,
    strategy: { grantId: byUser, tokenStore: memoryTokenStore() },
  };

  test('is refused at its start when nobody is logged in, and the service is not asked', async () => {
    await open(keyed);
    const page = await visit('/connect');
    expect([page.status, page.headers.get('location')]).toEqual([403, null]);
    expect([...browser.cookies(world.url).keys()]).toEqual([]);
    expect(world.service.requests).toEqual([]);
  });

  test('is refused at its start for a user without an id, and the service is not asked', async () => {
    const grantId = (req: object) => `user_${Reflect.get(Object(Reflect.get(req, 'user')), 'id')}`;
    const named: WorldOptions = {
      before: (app) => app.use((req, _res, next) => next(void Object.assign(req, { user: { name: 'Ada' } }))),
    };
    await open({ ...keyed, ...named, strategy: { grantId, tokenStore: memoryTokenStore() } });
    const page = await visit('/connect');
    expect([page.status, page.json().message]).toEqual([500, expect.stringMatching(/^grantId: .*missing user\.id/)]);
    expect(world.service.requests).toEqual([]);
  });

  test('overwrites no grant of another user with a login that passport.authenticate has begun', async () => {
    await open(keyed);
    const victim = new Browser();
    await victim.visit(`${world.url}/local-login/2`);
    await victim.visit(await world.begin(victim, { user: '1' }, '/connect'));
    const before = await world.strategy.client('2').accessToken();
    const callback = await world.begin(browser, { user: '2' });
    world.service.requests.length = 0;
    expect((await visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect(await world.strategy.client('2').accessToken()).toBe(before);
  });

  test('with another account than that of the login is refused', async () => {
    await open({ ...connecting, strategy: keyed.strategy ?? {} });
    await logIn('1');
    const before = await world.strategy.client('1').accessToken();
    const page = await visit(await world.begin(browser, { user: '2' }, '/connect'));
    expect([page.status, page.json().code]).toEqual([500, 'ERR_OTHER_ACCOUNT']);
    expect(await world.strategy.client('1').accessToken()).toBe(before);
  });
});

describe('who has begun a connection', threats(57, 69), () => {
  /** Users as a JWT, a lean document, or whatever else says who they are: with each request anew, in no session. */
  const users = (make: (name: string) => object, options: WorldOptions = {}): WorldOptions => ({
    ...connecting,
    ...options,
    before: (app) =>
      app.use((req, _res, next) => {
        const name = req.headers['x-user'];
        if (name) Object.assign(req, { user: make(String(name)) });
        next();
      }),
  });
  class ObjectId {
    readonly #hex: string;
    constructor(hex: string) {
      this.#hex = hex;
    }
    toJSON() {
      return this.#hex;
    }
  }
  const by = (name: string) => ({ headers: { 'x-user': name } });

  test.for<[string, WorldOptions]>([
    ['id, which may be a BigInt', users((name) => Object.defineProperty({}, 'id', { value: BigInt(name.length) }))],
    ['_id, as in lean documents of MongoDB', users((name) => ({ _id: new ObjectId(name), seenAt: Math.random() }))],
    ['sub, as in a JWT', users((name) => ({ sub: name, iat: Math.random() }))],
    ['username', users((name) => ({ username: name }))],
    [
      'what the option grantId returns',
      users((name) => ({ tenant: name }), { strategy: { grantId: (_req, user) => Reflect.get(user, 'tenant') } }),
    ],
  ])('is known by %s', async ([, options]) => {
    await open(options);
    const begin = async () => {
      const { headers } = await visit('/connect', by('ada'));
      return world.service.approve(String(headers.get('location')));
    };
    expect((await visit(await begin(), by('benjamin'))).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await visit(await begin(), by('ada'))).status).toBe(200);
  });

  test('cannot be told without any of these: refused at its start, with what to do', async () => {
    await open(users((name) => ({ email: name })));
    const page = await visit('/connect', by('ada'));
    expect([page.status, page.json().code]).toEqual([500, 'ERR_NO_USER_ID']);
    expect(page.json().message).toContain('id, _id, sub and username');
    expect(world.service.requests).toEqual([]);
  });
});

describe('a connection whose code exchange is slow', threats(75), () => {
  /** Sends a callback; resolves when the token endpoint is being asked. */
  async function slow(
    world: World,
    browser: Browser,
    callback: string,
  ): Promise<{ readonly page: Promise<Page>; release(): void }> {
    const { length } = world.tokenRequests();
    const release = hold(world.service, 'token');
    const page = browser.visit(callback);
    await until(() => expect(world.tokenRequests()).toHaveLength(length + 1));
    return { page, release };
  }

  test.for<[string, WorldOptions]>([
    ['a random id', connecting],
    ['an id of the application', { ...connecting, strategy: { grantId: byUser } }],
  ])('undoes no logout, and stores nothing, with %s', async ([, options]) => {
    await open(options);
    await browser.visit(`${world.url}/local-login/ada`);
    const callback = await world.begin(browser, {}, '/connect');
    const sid = String(browser.cookies(world.url).get('connect.sid'));
    const { page, release } = await slow(world, browser, callback);
    await browser.visit(`${world.url}/logout`, { method: 'POST' });
    release();
    expect((await page).status).toBe(403);
    browser.cookies(world.url).set('connect.sid', sid);
    expect((await browser.visit(`${world.url}/whoami`)).json().user).toBeUndefined();
    await until(() => expect([grantKeys(world), references(world)]).toEqual([[], []]));
  });

  test('keeps what other requests of the browser, and its own handlers, have written meanwhile', async () => {
    await open({
      ...connecting,
      strategy: { passReqToCallback: true },
      verify: (req: Req, _a: string, _r: string, profile: object, done: (error: null, user: object) => void) => {
        Object.assign(req.session, { linked: 'tracker' });
        done(null, profile);
      },
    });
    await browser.visit(`${world.url}/local-login/ada`);
    const callback = await world.begin(browser, {}, '/connect');
    const { page, release } = await slow(world, browser, callback);
    await browser.visit(`${world.url}/cart`);
    release();
    expect((await page).status).toBe(200);
    const { session, authorized } = (await browser.visit(`${world.url}/whoami`)).json();
    expect(session).toMatchObject({ cart: ['book'], linked: 'tracker', passport: { user: { id: 'ada' } } });
    expect(authorized).toBe(true);
  });

  test('loses none of three services that are connected at once', async () => {
    const names = ['one', 'two', 'three'];
    await open({
      routes: (app, world) => {
        connecting.routes?.(app, world);
        const { passport } = world;
        for (const name of names) {
          addStrategy(world, name, `/${name}/callback`);
          app.get(`/${name}`, passport.authorize(name) as Handler);
          app.get(`/${name}/callback`, passport.authorize(name) as Handler, (_req, res) => sendJson(res, {}));
        }
      },
    });
    await browser.visit(`${world.url}/local-login/ada`);
    const callbacks: string[] = [];
    for (const name of names) callbacks.push(await world.begin(browser, {}, `/${name}`));
    const answers = await Promise.all(callbacks.map((callback) => browser.visit(callback)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    const { session } = (await browser.visit(`${world.url}/whoami`)).json();
    expect(Object.keys(session)).toEqual(expect.arrayContaining(names));
  });
});

describe('a connection whose session fails', threats(11), () => {
  test('when it is read again ends in 503, and leaves no grant', async () => {
    const store = new FlakyStore();
    const tokenStore = memoryTokenStore();
    await open({
      ...connecting,
      session: { store },
      strategy: { tokenStore },
      verify: (_a: string, _r: string, profile: Profile, done: (error: null, user: object) => void) => {
        store.fail('get');
        done(null, profile);
      },
    });
    await visit('/local-login/ada');
    const page = await visit(await world.begin(browser, {}, '/connect'));
    expect([page.status, page.json().code]).toEqual([503, 'ERR_SESSION_STORE']);
    await until(async () => {
      for await (const { grantId } of world.strategy.grants()) expect.fail(`There is the grant ${grantId}`);
    });
  });

  test('when it is saved leaves the login what it was: another account is refused', async () => {
    const store = new FlakyStore();
    await open({ ...connecting, session: { store } });
    await logIn('1');
    const before = await whoami();
    const callback = await world.begin(browser, { user: '1' }, '/connect');
    store.fail('set', (_key, entry) => {
      const isSession = 'passport' in Object(entry);
      if (isSession) store.recover();
      return isSession;
    });
    expect((await visit(callback)).status).toBe(503);
    expect(await whoami()).toEqual(before);
    const page = await visit(await world.begin(browser, { user: '2' }, '/connect'));
    expect([page.status, page.json().code]).toEqual([500, 'ERR_OTHER_ACCOUNT']);
  });
});

describe('connections of several users', () => {
  test('do not wait for each other where sessions have no id, as in cookie-session', async () => {
    const tokenStore = new TroubledStore();
    const locked: string[] = [];
    tokenStore.before = (method, id) => void (method === 'lock' && locked.push(id.split(':', 1).join()));
    await open({
      ...connecting,
      session: false,
      before: (app) => app.use((req, _res, next) => next(void Object.assign(req, { session: {} }))),
      strategy: { tokenStore },
    });
    for (const visitor of [new Browser(), new Browser()])
      expect((await visitor.visit(await world.begin(visitor, {}, '/connect'))).status).toBe(200);
    expect(locked).toEqual(['login', 'login']);
  });

  test('keep two strategies apart, one of which has the name of the other and a mark', async () => {
    await open({
      ...connecting,
      routes: (app, world) => {
        connecting.routes?.(app, world);
        const { passport } = world;
        const name = 'oauth-app.connected';
        const other = addStrategy(world, name, '/other/callback');
        app.use(apiClient(other, { property: 'other' }) as Handler);
        app.get('/other', passport.authorize(name) as Handler);
        app.get('/other/callback', passport.authorize(name) as Handler, (_req, res) => sendJson(res, {}));
        app.get('/both', (req, res) => sendJson(res, [req.apiClient.authorized, Reflect.get(req, 'other').authorized]));
      },
    });
    await visit('/local-login/ada');
    for (const route of ['/other', '/connect']) await visit(await world.begin(browser, {}, route));
    expect((await visit('/both')).json()).toEqual([true, true]);
  });
});

describe('a link that the application refuses', threats(97), () => {
  test('stores nothing, and overwrites nothing', async () => {
    await open({
      ...connecting,
      verify: (_a: string, _r: string, profile: Profile, done: (error: null, user: unknown) => void) =>
        done(null, profile.id === '1' && { id: profile.id }),
    });
    await visit('/local-login/ada');
    await visit(await world.begin(browser, { user: '1' }, '/connect'));
    const before = [grantKeys(world), references(world)];
    const page = await visit(await world.begin(browser, { user: '2' }, '/connect'));
    expect(page.status).toBe(401);
    expect([grantKeys(world), references(world)]).toEqual(before);
    expect((await projects()).status).toBe(200);
  });
});
