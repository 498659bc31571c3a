import { request } from 'node:http';
import { memoryTokenStore } from 'passport-oauth-app';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { pause } from '../../src/waiting.js';
import { Browser } from '../support/browser.js';
import { fastForward } from '../support/fast-forward.js';
import { hold } from '../support/hold.js';
import {
  browser,
  clock,
  loggedIn,
  open,
  openAtCallback,
  projects,
  visit,
  whoami,
  world,
} from '../support/one-world.js';
import { grantKeys, references } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import type { App, Handler, World } from '../support/world.js';

describe('the callback of a browser that is logged in already', () => {
  test('leads to the page that the route names, for the back button, a bookmark and a forged state', async () => {
    const callback = await openAtCallback({ authenticate: { successReturnToOrRedirect: '/home' } });
    await visit(callback);
    const before = [grantKeys(world), references(world)];
    const { length } = world.service.requests;
    const forged = `${world.url}/callback?code=x&state=${'A'.repeat(43)}`;
    for (const url of [
      callback,
      callback,
      forged,
      `${world.url}/callback?error=access_denied&state=${'B'.repeat(43)}`,
    ]) {
      const page = await visit(url);
      expect([page.status, page.headers.get('location')]).toEqual([302, '/home']);
    }
    expect([grantKeys(world), references(world)]).toEqual(before);
    expect(world.service.requests).toHaveLength(length);
    expect((await projects()).status).toBe(200);
  });

  test('leads to a page whose path is not ASCII, as the login itself does', async () => {
    const callback = await openAtCallback({ authenticate: { successReturnToOrRedirect: '/ホーム' } });
    const first = await visit(callback);
    const again = await visit(callback);
    expect([again.status, again.headers.get('location')]).toEqual([302, first.headers.get('location')]);
  });

  test('is refused where the route names no page', async () => {
    const callback = await openAtCallback({
      callback: ({ passport }: World) => passport.authenticate('oauth-app', {}) as Handler,
    });
    await visit(callback);
    expect((await visit(callback)).status).toBe(403);
  });

  test('is refused once the user has logged out, or the grant is gone', async () => {
    const callback = await openAtCallback({ strategy: { tokenStore: memoryTokenStore(), cache: false } });
    await visit(callback);
    const { grantId } = await whoami();
    await world.strategy.deleteGrant(grantId);
    expect((await visit(callback)).status).toBe(403);
    await visit('/logout', { method: 'POST' });
    expect((await visit(callback)).status).toBe(403);
  });

  test('leads there during an outage of the service as well', async () => {
    await loggedIn();
    clock.advance(7_200);
    world.service.fail('token', { status: 503, times: 10 });
    const page = await visit(`/callback?code=x&state=${'A'.repeat(43)}`);
    expect([page.status, page.headers.get('location')]).toEqual([302, '/']);
  });
});

describe('a reload of a slow callback', () => {
  const arrived = vi.fn();
  const dropped = vi.fn();
  const before = (app: App) =>
    app.use((_req, res, next) => {
      arrived();
      res.once('close', () => res.writableEnded || dropped());
      next();
    });
  beforeEach(() => vi.clearAllMocks());

  /** Sends a request and drops it when it has arrived, and the token endpoint is being asked. */
  async function drop(world: World, browser: Browser, callback: string): Promise<void> {
    const headers = { cookie: browser.cookieHeader(world.url) };
    const [before, droppedBefore] = [arrived.mock.calls.length, dropped.mock.calls.length];
    const first = request(callback, { headers }).on('error', () => {});
    first.end();
    await until(() => expect(arrived).toHaveBeenCalledTimes(before + 1));
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    first.destroy();
    await until(() => expect(dropped).toHaveBeenCalledTimes(droppedBefore + 1));
  }

  test.for([
    ['once', 1],
    ['several times', 3],
  ] as const)('%s ends logged in, with one token request and one grant', async ([, times]) => {
    await open({ before });
    const callback = await world.begin(browser, {}, '/login?returnTo=/reports');
    const release = hold(world.service, 'token');
    for (let dropped = 0; dropped < times; dropped++) await drop(world, browser, callback);
    arrived.mockClear();
    const again = browser.visit(callback);
    await until(() => expect(arrived).toHaveBeenCalledOnce());
    release();
    const page = await again;
    expect([page.status, page.headers.get('location')]).toEqual([302, '/reports']);
    expect(world.tokenRequests()).toHaveLength(1);
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    expect([grantKeys(world).length, references(world).length]).toEqual([1, 1]);
  });

  test('ends logged in too where it comes after the exchange has ended', async () => {
    const verified = vi.fn((_accessToken, _refreshToken, profile, done) => done(null, { id: profile.id }));
    const callback = await openAtCallback({ before, verify: verified });
    const release = hold(world.service, 'token');
    await drop(world, browser, callback);
    release();
    await until(() => expect(verified).toHaveBeenCalledOnce());
    expect((await browser.visit(callback)).status).toBe(302);
    expect((await browser.visit(callback)).headers.get('location')).toBe('/');
    expect(world.tokenRequests()).toHaveLength(1);
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
  });

  test('is good for the browser that began the login alone', threats(6), async () => {
    const callback = await openAtCallback({ before });
    const release = hold(world.service, 'token');
    await drop(world, browser, callback);
    expect((await new Browser().visit(callback)).status).toBe(403);
    release();
    expect((await browser.visit(callback)).status).toBe(302);
  });
});

describe('a token store with locks', () => {
  const marksIn = (calls: string[]) => calls.filter((id) => id.startsWith('login:'));

  test('keeps a mark of each used login', threats(59), async () => {
    const tokenStore = new TroubledStore();
    const ids: string[] = [];
    tokenStore.before = (method, id) => void (method === 'set' && ids.push(id));
    const callback = await openAtCallback({ strategy: { tokenStore } });
    await visit(callback);
    const [mark = '', ...others] = marksIn(ids);
    expect(others).toEqual([]);
    expect(mark).toMatch(/^login:oauth-app\.[\w-]{11}\+[\w-]{43}$/);
    expect(callback).not.toContain(mark.slice(-43));
    expect(await tokenStore.inner.get(mark)).toMatchObject({ expiresAt: expect.any(Number), sealed: 'used' });
  });

  test('keeps no mark of an expired login once the strategy is closed', async () => {
    const tokenStore = new TroubledStore();
    const ids: string[] = [];
    tokenStore.before = (method, id) => void (method === 'set' && ids.push(id));
    await loggedIn({ strategy: { tokenStore } });
    const [mark = ''] = marksIn(ids);
    clock.advance(12 * 60);
    expect(await tokenStore.inner.get(mark)).toBeDefined();
    tokenStore.before = (method) => (method === 'delete' ? pause(1_000) : undefined);
    await fastForward(() => world.strategy.close());
    expect(await tokenStore.inner.get(mark)).toBeUndefined();
  });

  test.for<[string, (store: TroubledStore) => void]>([
    ['is down', (store) => store.fail('lock')],
    [
      'does not answer for a mark that it has taken',
      (store) => {
        const { set } = store.inner;
        vi.spyOn(store.inner, 'set').mockImplementationOnce(async (...args) => {
          await set.apply(store.inner, args);
          throw new Error('No answer');
        });
      },
    ],
  ])('that %s ends the callback in 503 and sends no code; the login is still good', async ([, fail]) => {
    const tokenStore = new TroubledStore();
    const callback = await openAtCallback({ strategy: { tokenStore } });
    const cookie = browser.cookieHeader(world.url);
    fail(tokenStore);
    const page = await visit(callback, { headers: { cookie } });
    expect([page.status, page.json().name]).toEqual([503, 'TokenStoreError']);
    expect(world.tokenRequests()).toEqual([]);
    tokenStore.recover();
    expect((await visit(callback)).status).toBe(302);
    expect((await visit('/projects')).status).toBe(200);
  });
});
