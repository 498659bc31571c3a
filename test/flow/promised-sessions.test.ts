import { logout } from 'passport-oauth-app';
import { describe, expect } from 'vitest';
import { test } from '../support/fixture.js';
import type { Handler } from '../support/world.js';

describe('methods of sessions and of Passport that return promises in place of calling back', () => {
  const promised = (method: (done: (error?: unknown) => void) => unknown) =>
    new Promise<void>((resolve, reject) => method((error) => (error ? reject(error) : resolve())));

  test('are waited for at a connection', async ({ startWorld, browser }) => {
    const world = await startWorld({
      callback:
        ({ passport }) =>
        (req, res, next) => {
          const regenerate = req.session.regenerate.bind(req.session);
          Object.defineProperty(req.session, 'regenerate', { value: () => promised(regenerate), configurable: true });
          passport.authorize('oauth-app', {})(req, res, next);
        },
      routes: (app) => app.use('/callback', (_req, res) => res.end('connected')),
    });
    const page = await browser.visit(await world.begin(browser));
    expect([page.status, page.text]).toEqual([200, 'connected']);
    expect((await browser.visit(`${world.url}/whoami`)).json().authorized).toBe(true);
  });

  test('are waited for where req.logOut is one of them', async ({ startWorld, browser }) => {
    const world = await startWorld({
      routes: (app, { strategy }) => {
        const promiseLogOut: Handler = (req, _res, next) => {
          const { logOut } = req;
          Object.assign(req, { logOut: () => promised((done) => logOut.call(req, done)) });
          next();
        };
        app.get('/leave', promiseLogOut, logout(strategy), (_req, res) => res.end('left'));
      },
    });
    await world.logIn(browser);
    expect((await browser.visit(`${world.url}/leave`)).text).toBe('left');
    expect((await browser.visit(`${world.url}/whoami`)).json().user).toBeUndefined();
    expect(world.grantKeys()).toEqual([]);
  });
});
