import session from 'express-session';
import passportModule from 'passport';
import { apiClient } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test } from 'vitest';
import { memoryTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import { logInLocally } from '../support/application-parts.js';
import { Browser } from '../support/browser.js';
import { browser, clock, loggedIn, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { references } from '../support/session-entries.js';
import { storeId } from '../support/store-id.js';
import { TestClock } from '../support/test-clock.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser, type Handler, sendJson } from '../support/world.js';

const HOURS = 3600;

/** Promises that were rejected and nobody handled. */
function unhandledRejections(): unknown[] {
  const seen: unknown[] = [];
  const listen = (reason: unknown) => void seen.push(reason);
  process.on('unhandledRejection', listen);
  onTestFinished(() => void process.off('unhandledRejection', listen));
  return seen;
}

describe('a function of the application that is async', () => {
  const options = ['grantId', 'authorizationParams', 'organizationDomain', 'enterpriseBaseUrl'];
  const functions = [async () => '1', () => Promise.reject(new Error('the directory is down'))];

  test.each(options.flatMap((option) => functions.map((fn) => [option, fn] as const)))(
    'in the option %s ends the login in an error that says so, and not the process',
    async (option, fn) => {
      const seen = unhandledRejections();
      const hosts =
        option === 'enterpriseBaseUrl' ? { enterpriseBaseUrl: undefined, enterpriseHosts: ['*.localhost'] } : {};
      await open({ strategy: { ...hosts, [option]: fn } });
      const begun = await visit('/login');
      const location = begun.headers.get('location');
      const page = location ? await visit(await world.service.approve(location)) : begun;
      expect([page.status, page.json().message]).toEqual([
        500,
        expect.stringMatching(`^${option}: .*must not be async`),
      ]);
      expect(world.errors[0]).toMatchObject({ name: 'ConfigurationError', option });
      await new Promise(setImmediate);
      expect(seen).toEqual([]);
    },
  );
});

describe('a user whom deserializeUser refuses', threats(73), () => {
  test.each([
    ['logged in', () => logIn()],
    [
      'connected an account',
      () => visit('/local-login').then(async () => visit(await world.begin(browser, {}, '/connect'))),
    ],
  ])('after they have %s has no grant: nothing passes, and nothing is refreshed', async (_how, prepare) => {
    let isBlocked = false;
    const clock = new TestClock();
    await open({
      service: { clock: clock.now },
      strategy: { clock: clock.now },
      routes: (app, { passport, register, url }) => {
        Reflect.set(passport, '_deserializers', []);
        passport.deserializeUser((user: Express.User, done) => done(null, isBlocked ? false : user));
        const options = { callbackURL: `${url}/connected` } as object;
        register(`${url}/connected`);
        app.get('/connect', passport.authorize('oauth-app', options) as Handler);
        app.get('/connected', passport.authorize('oauth-app', options) as Handler);
        app.get('/local-login', logInLocally('local'));
      },
    });
    await prepare();
    expect((await projects()).status).toBe(200);
    isBlocked = true;
    clock.advance(2 * HOURS);
    world.service.requests.length = 0;
    for (let time = 0; time < 2; time++) {
      const headers = { accept: 'application/json' };
      expect((await visit('/projects', { headers })).status).toBe(401);
      expect(await whoami()).toMatchObject({ authorized: false });
    }
    expect(world.service.requests).toEqual([]);
  });

  test('has none in a client that was attached before passport.session()', async () => {
    let attach: Handler = (_req, _res, next) => next();
    let isBlocked = false;
    await open({
      before: (app) => {
        app.use(session({ secret: 'of this test', resave: false, saveUninitialized: false }) as unknown as Handler);
        app.use((req, res, next) => attach(req, res, next));
      },
      withoutApiClient: true,
      routes: (app, { passport, strategy }) => {
        attach = apiClient(strategy) as Handler;
        Reflect.set(passport, '_deserializers', []);
        passport.deserializeUser((user: Express.User, done) => done(null, isBlocked ? false : user));
        app.get('/call', (req, res, next) => req.apiClient.projects().then((list) => sendJson(res, list), next));
      },
    });
    await logIn();
    expect((await visit('/call')).status).toBe(200);
    expect(await whoami()).toMatchObject({ authorized: true });
    isBlocked = true;
    expect(await whoami()).toMatchObject({ authorized: false });
    isBlocked = false;
    await visit('/logout', { method: 'POST' });
    await logIn();
    isBlocked = true;
    expect((await visit('/call')).status).toBe(401);
    expect(world.errors.at(-1)).toMatchObject({ code: 'ERR_NOT_AUTHORIZED' });
  });
});

describe('the option grantId', threats(20), () => {
  test('keys grants by the id of the application, with nothing in the session', async () => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { tokenStore, grantId: byUser } });
    const me = await whoami();
    expect(me.grantId).toBe('1');
    expect(references(world)).toEqual([]);
    expect(await tokenStore.inner.get(storeId(world.service.options, '1'))).toBeDefined();
  });

  test('finds the user under the name that passport.initialize was told', async () => {
    await loggedIn({
      strategy: { tokenStore: memoryTokenStore(), grantId: byUser },
      before: (app) => app.use(new passportModule.Passport().initialize({ userProperty: 'account' }) as Handler),
    });
    expect((await projects()).status).toBe(200);
  });

  test('gives all browsers of a user one grant, which is refreshed once for all', async () => {
    await loggedIn({ strategy: { tokenStore: memoryTokenStore(), grantId: byUser } });
    const another = new Browser();
    await world.logIn(another);
    world.service.requests.length = 0;
    clock.advance(2 * HOURS);
    await Promise.all([projects(), another.visit(`${world.url}/projects`)]);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('is kept apart by strategy, and escaped in the keys of the store', async () => {
    const tokenStore = new TroubledStore();
    const ids: string[] = [];
    // Marks of used logins lie beside the grants.
    tokenStore.before = (_method, id) => void (id.startsWith('login:') || ids.push(id));
    const grantId = () => 'a+b/../ü %2F';
    await loggedIn({ strategy: { tokenStore, grantId } });
    const other = await another({ strategy: { name: 'another', tokenStore, grantId } });
    await expect(other.strategy.client(grantId()).accessToken()).rejects.toMatchObject({ status: 401 });
    await other.logIn(new Browser(), '2');
    // Used logins are marked in the same store.
    const ofGrants = ids.filter((id) => !id.startsWith('login:'));
    expect(new Set(ofGrants)).toEqual(
      new Set(['oauth-app', 'another'].map((name) => storeId(world.service.options, grantId(), name))),
    );
    for (const id of ids) expect(id).toMatch(/^[\x21-\x7e]{1,1024}$/);
    const tokens = await Promise.all([world, other].map(({ strategy }) => strategy.client(grantId()).accessToken()));
    expect(new Set(tokens).size).toBe(2);
  });
});

describe('a client outside of a request', () => {
  test('asks again with its next call, after a success and after a failure', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store, grantId: byUser, cache: false } });
    const client = world.strategy.client('1');
    store.fail('get');
    await expect(client.projects()).rejects.toMatchObject({ name: 'TokenStoreError' });
    store.recover();
    await client.projects();
    const stranger = world.strategy.client('2');
    await expect(stranger.projects()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
    await world.logIn(new Browser(), '2');
    await stranger.projects();
    expect(stranger.authorized).toBe(true);
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 401, body: { error: 'invalid_client' } });
    await expect(client.projects()).rejects.toMatchObject({ name: 'TokenError' });
    // The pause after invalid_client.
    clock.advance(2);
    await client.projects();
  });

  test('shares lock, cache and store with the requests', async () => {
    await loggedIn({ strategy: { tokenStore: memoryTokenStore() } });
    const { grantId } = await whoami();
    clock.advance(2 * HOURS);
    const client = world.strategy.client(grantId);
    const [page, direct] = await Promise.all([projects(), client.projects()]);
    expect(page.json()).toEqual(direct);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('works across refreshes for as long as it lives', async () => {
    await loggedIn({ strategy: { tokenStore: memoryTokenStore() } });
    const client = world.strategy.client((await whoami()).grantId);
    const tokens = new Set<string>();
    for (let day = 0; day < 5; day++) {
      tokens.add(await client.accessToken());
      clock.advance(24 * HOURS);
    }
    expect(tokens.size).toBe(5);
  });

  test('works over the store of the sessions, once a request has led to it', async () => {
    await loggedIn();
    const { grantId } = await whoami();
    expect(await world.strategy.client(grantId).projects()).toEqual((await projects()).json());
  });

  test('of an unknown id rejects with NotAuthorizedError', async () => {
    await loggedIn();
    const client = world.strategy.client('nobody');
    await expect(client.projects()).rejects.toMatchObject({ name: 'NotAuthorizedError', status: 401 });
    expect(client.authorized).toBe(false);
  });
});
