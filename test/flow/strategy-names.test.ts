import { once } from 'node:events';
import session from 'express-session';
import { apiClient, memoryTokenStore, requireAuthorization, Strategy } from 'passport-oauth-app';
import { type Emulator, startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { browser, logIn, open, projects, visit, world } from '../support/one-world.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { type App, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

/** Starts an application with one more strategy of the same name, for a service of its own with the same credentials. */
async function startTwins(options: WorldOptions = {}): Promise<Emulator> {
  const other = await startEmulator();
  const routes = (app: App, { passport, service, url }: World) => {
    expect(other.options).toMatchObject({ clientID: service.options.clientID });
    other.register({ clientID: other.options.clientID, redirectUrls: [`${url}/callback-b`] });
    const twin = new Strategy({ ...other.options, callbackURL: `${url}/callback-b`, scope: 'project' });
    onTestFinished(async () => {
      await twin.close();
      await other.close();
    });
    passport.use('b', twin as never);
    app.get('/b/whoami', apiClient(twin) as Handler, async (req, res) => {
      const code = await req.apiClient.accessToken().then(
        () => undefined,
        (error) => error.code,
      );
      sendJson(res, { authorized: req.apiClient.authorized, code });
    });
    app.get('/b/guarded', apiClient(twin) as Handler, requireAuthorization(), (_req, res) => sendJson(res, {}));
    app.get('/login-b', passport.authenticate('b') as Handler);
    app.get('/callback-b', passport.authenticate('b', { successRedirect: '/' }) as Handler);
  };
  await open({ ...options, routes });
  return other;
}

describe('two strategies of one name for two services', threats(55), () => {
  test('are reported to the developer by the first login of the one in a session of the other', async () => {
    const other = await startTwins();
    const warned = once(process, 'warning');
    await logIn();
    expect((await projects()).status).toBe(200);
    const page = await visit('/b/whoami');
    expect(page.json()).toEqual({ authorized: false, code: 'ERR_NOT_AUTHORIZED' });
    expect((await visit('/login-b')).status).toBe(302);
    const [warning] = await warned;
    const message = expect.stringContaining('Set the option name');
    expect(warning).toMatchObject({ code: 'ERR_STRATEGY_NAME', message });
    expect((await visit('/b/guarded')).status).toBe(401);
    expect(other.requests).toEqual([]);
    expect((await projects()).status).toBe(200);
  });

  test('show no token of the one to the service of the other, also in another process', async () => {
    const [store, tokenStore] = [new session.MemoryStore(), memoryTokenStore()];
    const first = await open({ session: { store }, strategy: { tokenStore } });
    await first.logIn(browser);
    const second = await open({ session: { store }, strategy: { tokenStore } });
    await first.strategy.close();
    const other = new Browser();
    for (const [name, value] of browser.cookies(first.url)) other.cookies(second.url).set(name, value);
    second.service.requests.length = 0;
    const me = (await other.visit(`${second.url}/whoami`)).json();
    expect(me).toMatchObject({ user: { id: '1' }, authorized: false });
    expect((await other.visit(`${second.url}/projects`)).status).toBe(302);
    expect(second.service.requests).toEqual([]);
    // And the grant of the first one is where it was.
    expect(await tokenStore.get(storeId(first.service.options, me.session['oauth-app']))).toBeDefined();
  });

  test("refuse each other's callbacks, with equal credentials as well", async () => {
    const other = await startTwins({ withoutApiClient: true });
    const { search } = new URL(await world.begin(browser));
    expect((await visit(`/callback-b${search}`)).status).toBe(403);
    expect(other.requests).toEqual([]);
    expect((await visit(`/callback${search}`)).status).toBe(302);
  });

  test('do not disturb each other in sessions of their own', async () => {
    const other = await startTwins({ withoutApiClient: true });
    await world.logIn(new Browser());
    const none = { authorized: false, code: 'ERR_NOT_AUTHORIZED' };
    expect((await visit('/b/whoami')).json()).toEqual(none);
    const login = await visit('/login-b');
    const callback = await other.approve(String(login.headers.get('location')));
    expect((await visit(callback)).status).toBe(302);
    expect((await visit('/b/whoami')).json()).toEqual({ authorized: true });
  });
});
