import cookieSession from 'cookie-session';
import { memoryTokenStore } from 'passport-oauth-app';
import { afterEach, describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { rawRequest } from '../support/raw-request.js';
import { type Handler, sendJson, startWorld, type World, type WorldOptions } from '../support/world.js';

let world: World;
const open = async (options?: WorldOptions) => {
  world = await startWorld(options);
  return world;
};
afterEach(() => world.close());

const whoami = async (browser: Browser) => (await browser.visit(`${world.url}/whoami`)).json();

describe('cookie-session, which has no store', () => {
  test('leads to an error that says to set tokenStore', async () => {
    await open({
      session: false,
      before: (app) => app.use(cookieSession({ name: 'c', secret: 'x' }) as unknown as Handler),
    });
    const answer = await rawRequest(world.url, '/login');
    expect(answer.status).toBe(500);
    expect(JSON.parse(answer.text)).toMatchObject({ name: 'ConfigurationError', code: 'ERR_NO_TOKEN_STORE' });
    expect(answer.text).toContain('Set tokenStore');
  });

  describe('with the option tokenStore', () => {
    const options: WorldOptions = {
      session: false,
      strategy: { tokenStore: memoryTokenStore() },
      before: (app) => {
        app.use(cookieSession({ name: 'c', secret: 'x' }) as unknown as Handler);
        app.use('/cart', (req, res) => sendJson(res, Object.assign(req.session, { cart: 'full' })));
      },
    };

    test('a login works, and its cookie holds no token and nothing from before', async () => {
      await open(options);
      const browser = new Browser();
      await browser.visit(`${world.url}/cart`);
      await world.logIn(browser);
      expect(Object.keys((await whoami(browser)).session).sort()).toEqual(['oauth-app', 'passport']);
      expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    });

    test('a login keeps the data of the session with keepSessionInfo', async () => {
      await open({ ...options, authenticate: { keepSessionInfo: true } });
      const browser = new Browser();
      await browser.visit(`${world.url}/cart`);
      await world.logIn(browser);
      expect((await whoami(browser)).session).toMatchObject({ cart: 'full', passport: { user: { id: '1' } } });
    });

    test('a logout takes everything out of the cookie', async () => {
      await open(options);
      const browser = new Browser();
      await world.logIn(browser);
      await browser.visit(`${world.url}/cart`);
      expect((await browser.visit(`${world.url}/logout`, { method: 'POST' })).status).toBe(200);
      const me = await whoami(browser);
      expect([me.user, me.authorized, me.session]).toEqual([undefined, false, {}]);
    });

    test('its attributes are those of the cookies of a login', async () => {
      const inFrames = cookieSession({ keys: ['key'], sameSite: 'none' }) as unknown as Handler;
      await open({ ...options, before: (app) => app.use(inFrames) });
      const [cookie] = (await new Browser().visit(`${world.url}/login`)).headers.getSetCookie();
      expect(cookie).toMatch(/^oauth-app\..*; HttpOnly; SameSite=None; Secure$/);
    });
  });
});
