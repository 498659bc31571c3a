import { apiClient, logout, requireAuthorization } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { listen } from '../support/event-log.js';
import { withoutPauses } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { hold } from '../support/hold.js';
import { HoldingAgent } from '../support/holding-agent.js';
import { browser, clock, loggedIn, logOut, projects, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { grantKeys } from '../support/session-entries.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { byUser, type WorldOptions } from '../support/world.js';

const HOURS = 3600;

/** Logs in, and starts a refresh that ends once `end` is called, which returns what came of it. */
async function startRefresh(options: WorldOptions = {}) {
  const dispatcher = new HoldingAgent();
  await loggedIn({ ...options, strategy: { dispatcher, ...options.strategy } });
  const { grantId } = await whoami();
  const events = listen('refresh', 'grant-lost');
  clock.advance(2 * HOURS);
  const release = dispatcher.hold();
  const late = projects();
  await dispatcher.asked.opened;
  const end = async (): Promise<unknown[]> => {
    release();
    release();
    await late;
    return events.events.map(({ name, event }) => [name, event.outcome ?? event.reason]);
  };
  return { grantId, late, end };
}

const DISCARDED = [['refresh', 'discarded']];

describe('a logout during a refresh', () => {
  test(
    'ends the grant for good, and is answered before the refresh: the late result is discarded',
    threats(49, 77),
    async () => {
      const store = new TroubledStore();
      const { grantId, late, end } = await startRefresh({ strategy: { tokenStore: store } });
      expect((await logOut()).status).toBe(200);
      expect(await end()).toEqual(DISCARDED);
      expect((await late).status).not.toBe(200);
      expect(await store.inner.get(storeId(world.service.options, grantId))).toBeUndefined();
      await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
    },
  );

  test.for([false, true])('is not overtaken by a save that is slow (and fails: %s)', threats(49), async (fails) => {
    const store = new TroubledStore();
    const { grantId, end } = await startRefresh({ strategy: { tokenStore: store } });
    const saving = gate();
    store.before = async (method) => {
      if (method !== 'update') return;
      await saving.opened;
      if (fails) throw new Error('The store is down');
    };
    const ended = end();
    await until(() => expect(store.calls).toContain('update'));
    const leaving = world.strategy.deleteGrant(grantId);
    saving.open();
    await leaving;
    // The save came first where it works, and the logout after it.
    expect(await ended).toEqual(fails ? DISCARDED : [['refresh', 'refreshed']]);
    store.recover();
    await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
    expect(await store.inner.get(storeId(world.service.options, grantId))).toBeUndefined();
  });

  test('is not undone by a slow request of the same user that still uses its client', threats(21), async () => {
    const held = gate();
    const { grantId, end } = await startRefresh({
      routes: (app) =>
        app.post('/slow', async (req, res) => {
          const token = req.apiClient.accessToken().then(
            () => 'a token',
            (error) => error.code,
          );
          held.open();
          res.end(JSON.stringify(await token));
        }),
    });
    const slow = visit('/slow', { method: 'POST' });
    await held.opened;
    await logOut();
    expect(await end()).toEqual(DISCARDED);
    expect((await slow).json()).toBe('ERR_NOT_AUTHORIZED');
    expect(grantKeys(world)).toEqual([]);
    await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });
});

describe('a logout with a token endpoint that hangs, and a client that is attached before it,', () => {
  const ways: Readonly<Record<string, readonly [method: string, path: string, secondsLeft: number]>> = {
    'by a form': ['POST', '/logout', 0],
    'by a link': ['GET', '/leave/sign-out?now', 0],
    "by Passport's own method": ['POST', '/leave/passport', 0],
    'behind a guard': ['POST', '/guarded/logout', 0],
    'by a link to a mounted client': ['GET', '/mounted/logout', 0],
    'with a token that is due': ['POST', '/logout', 200],
  };
  test.for(Object.entries(ways))(
    '%s: neither starts a refresh nor waits for one',
    threats(77),
    async ([, [method, path, secondsLeft]]) => {
      await loggedIn({
        routes: (app, world) => {
          app.get('/leave/sign-out', logout(world.strategy), (_req, res) => void res.end());
          app.post('/leave/passport', (req, res) => req.logout(() => res.end()));
          app.use('/guarded', requireAuthorization({ login: '/login' }));
          app.use('/mounted/logout', apiClient(world.strategy));
          app.post('/guarded/logout', logout(world.strategy), (_req, res) => void res.end());
          app.get('/mounted/logout', logout(world.strategy), (_req, res) => void res.end());
        },
      });
      // Behind what refreshes grants, a route is known from its first logout on.
      const other = new Browser();
      await world.logIn(other);
      await other.visit(world.url + path, { method });
      world.service.requests.length = 0;
      clock.advance(2 * HOURS - secondsLeft);
      world.service.fail('token', { hang: true });
      expect((await browser.visit(`${world.url}${path}`, { method })).status).toBe(200);
      expect(world.tokenRequests()).toEqual([]);
      expect(grantKeys(world)).toEqual([]);
      expect((await whoami()).authorized).toBe(false);
    },
  );
});

describe('a request that may be a logout', () => {
  test('refreshes the token for the guard of its route, and for the first call of its client', async () => {
    await loggedIn({
      routes: (app) => {
        app.post('/guarded', requireAuthorization(), (_req, res) => void res.end('let in'));
        app.post('/token', async (req, res) => void res.end(await req.apiClient.accessToken()));
      },
    });
    const post = async (path: string) => (await visit(path, { method: 'POST' })).status;
    clock.advance(2 * HOURS);
    expect(await post('/token')).toBe(200);
    clock.advance(2 * HOURS);
    expect(await post('/guarded')).toBe(200);
    expect(world.tokenRequests()).toHaveLength(2);
    clock.advance(2 * HOURS);
    world.service.revoke('1');
    expect(await withoutPauses(() => post('/guarded'), world.service.authUrl)).toBe(401);
  });
});

test('a request target that names a logout passes no guard with a grant that has ended', threats(105), async () => {
  await loggedIn({ routes: (app) => app.use('/', requireAuthorization(), (_req, res) => void res.end('let in')) });
  clock.advance(2 * HOURS);
  world.service.revoke('1');
  const headers = { cookie: browser.cookieHeader(world.url), accept: '*/*' };
  for (const target of ['http://logout/local/7', '/7-logout', '/x?logout', '/sign-out'])
    for (const method of ['GET', 'POST'])
      expect(
        (await withoutPauses(() => rawRequest(world.url, target, { method, headers }), world.service.authUrl)).status,
      ).toBe(401);
});

describe('a grant that is deleted during a refresh', () => {
  test('stays deleted, and the event says that the new pair was discarded', threats(49), async () => {
    await loggedIn();
    const { grantId } = await whoami();
    const events = listen('refresh');
    clock.advance(2 * HOURS);
    const release = hold(world.service, 'token');
    const late = projects();
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    await world.strategy.deleteGrant(grantId);
    release();
    await late;
    expect(events.events).toMatchObject([{ event: { outcome: 'discarded' } }]);
    expect(events.events[0]?.event).not.toHaveProperty('reason');
    expect(grantKeys(world)).toEqual([]);
  });
});

describe('a login during a refresh', () => {
  test('under the same id is not overwritten by the late result', threats(49), async () => {
    const tokenStore = new TroubledStore();
    await loggedIn({ strategy: { tokenStore, grantId: byUser } });
    clock.advance(2 * HOURS);
    const release = hold(world.service, 'token');
    const late = projects();
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    const again = new Browser();
    await world.logIn(again);
    const token = await world.strategy.client('1').accessToken();
    release();
    await late;
    expect(await world.strategy.client('1').accessToken()).toBe(token);
    clock.advance(2 * HOURS);
    expect((await again.visit(`${world.url}/projects`)).status).toBe(200);
  });
});

describe('a logout that the store cannot carry out', () => {
  test('ends the Passport login, and says what went wrong', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    store.fail('delete');
    expect((await logOut()).status).toBe(503);
    const me = await whoami();
    expect(me).toMatchObject({ authorized: false });
    expect(me.user).toBeUndefined();
  });
});
