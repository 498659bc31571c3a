import session from 'express-session';
import { describe, expect, test } from 'vitest';
import { apiClient, logout, type Strategy } from '../../src/index.js';
import { addStrategy } from '../support/add-strategy.js';
import { Browser } from '../support/browser.js';
import { FlakyStore, isGrantKey } from '../support/flaky-store.js';
import { browser, logIn, logOut, open, visit, whoami, world } from '../support/one-world.js';
import { grantKeys, references, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { byUser, type Framework, type Handler, sendJson } from '../support/world.js';

const store = new session.MemoryStore();

describe.each<Framework>(['express', 'connect'])('logout under %s', (framework) => {
  test('deletes the grant, ends the Passport login, and calls the next handler', async () => {
    await open({ framework });
    await logIn();
    const { grantId } = await whoami(browser);
    const sid = browser.cookies(world.url).get('connect.sid') ?? '';
    expect((await logOut(browser)).status).toBe(200);
    const me = await whoami(browser);
    expect([me.user, me.authorized]).toEqual([undefined, false]);
    expect([grantKeys(world), references(world)]).toEqual([[], []]);
    const thief = new Browser();
    thief.cookies(world.url).set('connect.sid', sid);
    expect((await whoami(thief)).authorized).toBe(false);
    await expect(world.strategy.client(grantId).projects()).rejects.toMatchObject({ name: 'NotAuthorizedError' });
  });

  test('of a user who is not logged in, or of a form of another site, changes no session', threats(127), async () => {
    await open({ framework });
    await logIn();
    const [before, stranger] = [stored(world), new Browser()];
    // A form of another site comes without the cookie, and its answer could set another one.
    for (const headers of [{}, { 'sec-fetch-site': 'cross-site' }] as const) {
      const answer = await stranger.visit(`${world.url}/logout`, { method: 'POST', headers });
      expect([answer.status, answer.headers.getSetCookie()]).toEqual([200, []]);
    }
    expect(stored(world)).toEqual(before);
    expect((await whoami(browser)).authorized).toBe(true);
  });
});

test('logout leaves the client of the same request without authorization', async () => {
  await open({
    routes: (app, { strategy }) => {
      app.use('/leave', logout(strategy));
      app.use('/leave', (req, res) => sendJson(res, { authorized: Reflect.get(req, 'apiClient').authorized }));
    },
  });
  await logIn();
  expect((await whoami(browser)).authorized).toBe(true);
  expect((await visit('/leave')).json()).toEqual({ authorized: false });
});

test.each([{}, { grantId: byUser }])(
  'a Passport older than 0.6, whose logout takes no callback, gets an error that says so (%j)',
  async (options) => {
    await open({
      withoutApiClient: true,
      strategy: options,
      routes: (app, { strategy }) => {
        app.use((req, _res, next) => {
          const old = { _sessionManager: { logOut: (_req: unknown, _done: unknown) => {} }, logOut: () => {} };
          Object.assign(req, old).logout = old.logOut;
          next();
        });
        app.use(apiClient(strategy));
        app.get('/leave', logout(strategy));
      },
    });
    await logIn();
    expect((await visit('/leave')).json()).toMatchObject({
      code: 'ERR_CONFIGURATION',
      message: expect.stringContaining('Install passport@0.7'),
    });
  },
);

test('logout keeps the grants of other users, and other logins of the same user', async () => {
  await open();
  const [here, there, other] = [new Browser(), new Browser(), new Browser()];
  await world.logIn(here, '1');
  await world.logIn(there, '1');
  await world.logIn(other, '2');
  await logOut(here);
  expect((await whoami(there)).authorized).toBe(true);
  expect((await whoami(other)).authorized).toBe(true);
});

test('logout with grantId deletes the grant of the user', async () => {
  await open({ strategy: { grantId: byUser } });
  await logIn();
  await logOut(browser);
  expect(grantKeys(world)).toEqual([]);
});

test('logout ends the login although grantId throws, and passes the error on', async () => {
  let broken = false;
  await open({
    strategy: {
      grantId: (_req: unknown, user: { id: string }) => {
        if (broken) throw new Error('no tenant');
        return user.id;
      },
    },
  });
  await logIn();
  broken = true;
  expect((await logOut(browser)).status).toBe(500);
  broken = false;
  expect((await whoami(browser)).user).toBeUndefined();
});

test('logout ends the login although the grant cannot be deleted, and passes the error on', async () => {
  const store = new FlakyStore();
  await open({ session: { store } });
  await logIn();
  store.fail('destroy', isGrantKey);
  const page = await logOut(browser);
  expect([page.status, page.json().name]).toEqual([503, 'TokenStoreError']);
  const me = await whoami(browser);
  expect([me.user, me.authorized]).toEqual([undefined, false]);
});

test('logout without a session and without Passport calls the next handler', async () => {
  await open({
    session: false,
    routes: (app, { strategy }) => app.get('/bare', logout(strategy), (_req, res) => sendJson(res, { on: true })),
  });
  expect((await new Browser().visit(`${world.url}/bare`)).json()).toEqual({ on: true });
});

test('logout while a slow request of the same user runs: nothing brings the grant back', threats(21), async () => {
  const reached: (() => void)[] = [];
  const released: (() => void)[] = [];
  const slow: Handler = async (req, res) => {
    await new Promise<void>((resolve) => {
      released.push(resolve);
      for (const tell of reached) tell();
    });
    // The old session, saved late, and a call with the old client.
    Object.assign(req.session, { touched: true });
    const outcome = await req.apiClient.projects().then(
      () => 'worked',
      (error: Error) => error.name,
    );
    sendJson(res, { outcome });
  };
  await open({ routes: (app) => app.get('/slow', slow) });
  await logIn();
  const atWork = new Promise<void>((resolve) => reached.push(resolve));
  const page = visit('/slow');
  await atWork;
  const sid = browser.cookies(world.url).get('connect.sid') ?? '';
  await logOut(browser);
  for (const release of released) release();
  expect((await page).json()).toEqual({ outcome: 'NotAuthorizedError' });
  expect(grantKeys(world)).toEqual([]);
  const old = new Browser();
  old.cookies(world.url).set('connect.sid', sid);
  expect((await whoami(old)).authorized).toBe(false);
  expect(world.tokenRequests()).toHaveLength(1);
});

test.each([[undefined], [null], [{}], ['oauth-app'], [{ authenticate() {} }]])(
  'logout(%j) is refused when it is set up',
  async (given) => {
    await open();
    expect(() => logout(given as unknown as Strategy)).toThrow(
      expect.objectContaining({ name: 'ConfigurationError', option: 'strategy' }),
    );
  },
);

test('logout of two strategies in one route deletes the grants of both', async () => {
  await open({
    routes: (app, world) => {
      const { passport, strategy } = world;
      const second = addStrategy(world, 'second', '/callback-two');
      app.use(apiClient(second, { property: 'secondClient' }));
      app.get('/login-two', passport.authorize('second') as Handler);
      app.get('/callback-two', passport.authorize('second') as Handler, (_req, res) => sendJson(res, {}));
      app.get('/leave-both', logout(strategy), logout(second), (_req, res) => sendJson(res, {}));
    },
  });
  await logIn();
  await visit(await world.begin(browser, {}, '/login-two'));
  expect(grantKeys(world)).toHaveLength(2);
  expect((await visit('/leave-both')).status).toBe(200);
  expect(grantKeys(world)).toEqual([]);
});

test('logout ends the Passport login also in a request that Passport has not seen', async () => {
  await open({
    before: (app) => {
      app.use(
        '/early',
        session({ secret: 'session secret', resave: false, saveUninitialized: false, store }) as unknown as Handler,
      );
      app.use('/early', (req, res, next) => logout(world.strategy)(req, res, next));
      app.use('/early', (_req, res) => sendJson(res, {}));
    },
    session: { store },
  });
  await logIn();
  expect((await visit('/early')).status).toBe(200);
  const me = await whoami(browser);
  expect([me.user, me.authorized, grantKeys(world)]).toEqual([undefined, false, []]);
});
