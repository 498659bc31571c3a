import { logout } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { browser, logIn, open, visit, whoami, world } from '../support/one-world.js';
import { grantKeys } from '../support/session-entries.js';
import type { Handler } from '../support/world.js';

describe('methods of sessions and of Passport that return promises in place of calling back', () => {
  const promised = (method: (done: (error?: unknown) => void) => unknown) =>
    new Promise<void>((resolve, reject) => method((error) => (error ? reject(error) : resolve())));

  test('are waited for at a connection', async () => {
    await open({
      callback:
        ({ passport }) =>
        (req, res, next) => {
          const regenerate = req.session.regenerate.bind(req.session);
          Object.defineProperty(req.session, 'regenerate', { value: () => promised(regenerate), configurable: true });
          passport.authorize('oauth-app', {})(req, res, next);
        },
      routes: (app) => app.use('/callback', (_req, res) => res.end('connected')),
    });
    const page = await visit(await world.begin(browser));
    expect([page.status, page.text]).toEqual([200, 'connected']);
    expect((await whoami()).authorized).toBe(true);
  });

  test('are waited for where req.logOut is one of them', async () => {
    await open({
      routes: (app, { strategy }) => {
        const promiseLogOut: Handler = (req, _res, next) => {
          const { logOut } = req;
          Object.assign(req, { logOut: () => promised((done) => logOut.call(req, done)) });
          next();
        };
        app.get('/leave', promiseLogOut, logout(strategy), (_req, res) => res.end('left'));
      },
    });
    await logIn();
    expect((await visit('/leave')).text).toBe('left');
    expect((await whoami()).user).toBeUndefined();
    expect(grantKeys(world)).toEqual([]);
  });
});
