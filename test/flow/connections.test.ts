import { memoryTokenStore } from 'passport-oauth-app';
import { describe, expect } from 'vitest';
import { Browser } from '../support/browser.js';
import { test } from '../support/fixture.js';
import { type Handler, sendJson, type WorldOptions } from '../support/world.js';

/** An application in which users log in locally, and connect accounts of the service. */
const connecting: WorldOptions = {
  routes: (app, { passport, service, url }) => {
    service.register({ clientID: service.options.clientID, redirectUrls: [`${url}/connect/callback`] });
    const options = { callbackURL: `${url}/connect/callback` } as object;
    app.get('/connect', passport.authorize('oauth-app', options) as Handler);
    app.get('/connect/callback', passport.authorize('oauth-app', options) as Handler, (req, res) =>
      sendJson(res, { account: Reflect.get(req, 'account'), user: req.user }),
    );
    app.get('/local-login/:id', (req, res, next) =>
      req.logIn({ id: String(Reflect.get(req, 'params').id) } as Express.User, (error) =>
        error ? next(error) : sendJson(res, {}),
      ),
    );
    app.get('/cart', (req, res) => sendJson(res, Object.assign(req.session, { cart: ['book'] })));
  },
};

describe('passport.authorize', { meta: { threats: [57] } }, () => {
  test('gives an anonymous session a new id, and keeps its content', async ({ startWorld, browser }) => {
    const world = await startWorld(connecting);
    await browser.visit(`${world.url}/cart`);
    const planted = browser.cookies(world.url).get('connect.sid') ?? '';
    const page = await browser.visit(await world.begin(browser, {}, '/connect'));
    expect(page.json()).toEqual({ account: { id: '1' } });
    const me = (await browser.visit(`${world.url}/whoami`)).json();
    expect(me).toMatchObject({ authorized: true, session: { cart: ['book'] } });
    expect(browser.cookies(world.url).get('connect.sid')).not.toBe(planted);
    const attacker = new Browser();
    attacker.cookies(world.url).set('connect.sid', planted);
    expect((await attacker.visit(`${world.url}/whoami`)).json().authorized).toBe(false);
    expect((await attacker.visit(`${world.url}/projects`)).status).toBe(302);
  });

  test('keeps the session id of a user who is logged in', async ({ startWorld, browser }) => {
    const world = await startWorld(connecting);
    await browser.visit(`${world.url}/local-login/ada`);
    const sid = browser.cookies(world.url).get('connect.sid');
    await browser.visit(await world.begin(browser, {}, '/connect'));
    expect(browser.cookies(world.url).get('connect.sid')).toBe(sid);
    expect((await browser.visit(`${world.url}/whoami`)).json()).toMatchObject({
      user: { id: 'ada' },
      authorized: true,
    });
  });

  test.for<[string, string | undefined, string]>([
    ['another user has logged in', 'ada', 'ben'],
    ['a user has logged in who was not when it began', undefined, 'ben'],
  ])('finishes no connection after %s, and sends no request', async ([, first, second], { startWorld, browser }) => {
    const world = await startWorld(connecting);
    if (first) await browser.visit(`${world.url}/local-login/${first}`);
    const callback = await world.begin(browser, {}, '/connect');
    await browser.visit(`${world.url}/local-login/${second}`);
    expect((await browser.visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await browser.visit(`${world.url}/whoami`)).json().authorized).toBe(false);
  });

  test('finishes no connection for a user who has logged out', async ({ startWorld, browser }) => {
    const world = await startWorld(connecting);
    await browser.visit(`${world.url}/local-login/ada`);
    const callback = await world.begin(browser, {}, '/connect');
    await browser.visit(`${world.url}/logout`, { method: 'POST' });
    expect((await browser.visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
  });

  test('is never finished as a login, and still good at its own route', async ({ startWorld, browser }) => {
    const world = await startWorld(connecting);
    await browser.visit(`${world.url}/local-login/ada`);
    const callback = await world.begin(browser, {}, '/connect');
    const { search } = new URL(callback);
    expect((await browser.visit(`${world.url}/callback${search}`)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect((await browser.visit(`${world.url}/whoami`)).json().user).toEqual({ id: 'ada' });
    expect((await browser.visit(callback)).json()).toEqual({ account: { id: '1' }, user: { id: 'ada' } });
  });

  test('with another account than that of the login is refused, and the grant of the login stays', async ({
    startWorld,
    browser,
  }) => {
    const world = await startWorld(connecting);
    await world.logIn(browser, '1');
    const page = await browser.visit(await world.begin(browser, { user: '2' }, '/connect'));
    expect([page.status, page.json().code]).toEqual([500, 'ERR_OTHER_ACCOUNT']);
    expect((await browser.visit(`${world.url}/whoami`)).json()).toMatchObject({ user: { id: '1' }, authorized: true });
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    expect(world.grantKeys()).toHaveLength(1);
  });

  test('with the account of the login renews its grant', async ({ startWorld, browser }) => {
    const world = await startWorld(connecting);
    await world.logIn(browser, '1');
    const before = world.references();
    const page = await browser.visit(await world.begin(browser, { user: '1' }, '/connect'));
    expect(page.status).toBe(200);
    expect(world.references()).not.toEqual(before);
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
  });
});

describe('passport.authorize with grantId', { meta: { threats: [69] } }, () => {
  /** Local users have the ids that users of the service have. */
  const keyed: WorldOptions = {
    ...connecting,
    callback: ({ passport }) => passport.authorize('oauth-app', {}) as Handler,
    strategy: { grantId: (_req, user) => Reflect.get(user, 'id'), tokenStore: memoryTokenStore() },
  };

  test('is refused at its start when nobody is logged in, and the service is not asked', async ({
    startWorld,
    browser,
  }) => {
    const world = await startWorld(keyed);
    const page = await browser.visit(`${world.url}/connect`);
    expect([page.status, page.headers.get('location')]).toEqual([403, null]);
    expect([...browser.cookies(world.url).keys()]).toEqual([]);
    expect(world.service.requests).toEqual([]);
  });

  test('overwrites no grant of another user with a login that passport.authenticate has begun', async ({
    startWorld,
    browser,
  }) => {
    const world = await startWorld(keyed);
    const victim = new Browser();
    await victim.visit(`${world.url}/local-login/2`);
    await victim.visit(await world.begin(victim, { user: '1' }, '/connect'));
    const before = await world.strategy.client('2').accessToken();
    const callback = await world.begin(browser, { user: '2' });
    world.service.requests.length = 0;
    expect((await browser.visit(callback)).status).toBe(403);
    expect(world.tokenRequests()).toEqual([]);
    expect(await world.strategy.client('2').accessToken()).toBe(before);
  });
});
