import { logout, requireAuthorization } from 'passport-oauth-app';
import { afterEach, describe, expect, test } from 'vitest';
import { gate } from '../refresh/fixture.js';
import { Browser } from '../support/browser.js';
import { EventLog } from '../support/event-log.js';
import { hold } from '../support/hold.js';
import { HoldingAgent } from '../support/holding-agent.js';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { storeId } from '../support/store-id.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';

const HOURS = 3600;

let flow: LoggedIn;
afterEach(() => flow.world.close());

const logOut = (browser = flow.browser) => browser.visit(`${flow.world.url}/logout`, { method: 'POST' });

/** Logs in, and starts a refresh that ends once `end` is called, which returns what came of it. */
async function startRefresh(options: Parameters<typeof logInto>[0] = {}) {
  const dispatcher = new HoldingAgent();
  flow = await logInto({ ...options, strategy: { dispatcher, ...options.strategy } });
  const { grantId } = await flow.whoami();
  const events = new EventLog('refresh', 'grant-lost');
  flow.clock.advance(2 * HOURS);
  const release = dispatcher.hold();
  const late = flow.projects();
  await dispatcher.asked.opened;
  const end = async (): Promise<unknown[]> => {
    release();
    release();
    await late;
    events.stop();
    return events.events.map(({ name, event }) => [name, event.outcome ?? event.reason]);
  };
  return { grantId, late, end };
}

const DISCARDED = [['refresh', 'discarded']];

describe('a logout during a refresh', () => {
  test('ends the grant for good, and is answered before the refresh: the late result is discarded', {
    meta: { threats: [49, 77] },
  }, async () => {
    const store = new TroubledStore();
    const { grantId, late, end } = await startRefresh({ strategy: { tokenStore: store } });
    expect((await logOut()).status).toBe(200);
    expect(await end()).toEqual(DISCARDED);
    expect((await late).status).not.toBe(200);
    expect(await store.inner.get(storeId(flow.world.service.options, grantId))).toBeUndefined();
    await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });

  test.for([false, true])(
    'is not overtaken by a save that is slow (and fails: %s)',
    {
      meta: { threats: [49] },
    },
    async (fails) => {
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
      const leaving = flow.world.strategy.deleteGrant(grantId);
      saving.open();
      await leaving;
      // The save came first where it works, and the logout after it.
      expect(await ended).toEqual(fails ? DISCARDED : [['refresh', 'refreshed']]);
      store.recover();
      await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
      expect(await store.inner.get(storeId(flow.world.service.options, grantId))).toBeUndefined();
    },
  );

  test('is not undone by a slow request of the same user that still uses its client', {
    meta: { threats: [21] },
  }, async () => {
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
    const slow = flow.browser.visit(`${flow.world.url}/slow`, { method: 'POST' });
    await held.opened;
    await logOut();
    expect(await end()).toEqual(DISCARDED);
    expect((await slow).json()).toBe('ERR_NOT_AUTHORIZED');
    expect(flow.world.grantKeys()).toEqual([]);
    await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });
});

describe('a logout with a token endpoint that hangs, and a client that is attached before it,', () => {
  const ways: Readonly<Record<string, readonly [method: string, path: string, secondsLeft: number]>> = {
    'by a form': ['POST', '/logout', 0],
    'by a link': ['GET', '/leave/sign-out?now', 0],
    "by Passport's own method": ['POST', '/leave/passport', 0],
    'with a token that is due': ['POST', '/logout', 200],
  };
  test.for(Object.entries(ways))(
    '%s: neither starts a refresh nor waits for one',
    {
      meta: { threats: [77] },
    },
    async ([, [method, path, secondsLeft]]) => {
      flow = await logInto({
        routes: (app, world) => {
          app.get('/leave/sign-out', logout(world.strategy), (_req, res) => void res.end());
          app.post('/leave/passport', (req, res) => req.logout(() => res.end()));
        },
      });
      flow.clock.advance(2 * HOURS - secondsLeft);
      flow.world.service.fail('token', { hang: true });
      expect((await flow.browser.visit(`${flow.world.url}${path}`, { method })).status).toBe(200);
      expect(flow.world.tokenRequests()).toEqual([]);
      expect(flow.world.grantKeys()).toEqual([]);
      expect((await flow.whoami()).authorized).toBe(false);
    },
  );
});

describe('a request that may be a logout', () => {
  test('refreshes the token for the guard of its route, and for the first call of its client', async () => {
    flow = await logInto({
      routes: (app) => {
        app.post('/guarded', requireAuthorization(), (_req, res) => void res.end('let in'));
        app.post('/token', async (req, res) => void res.end(await req.apiClient.accessToken()));
      },
    });
    const post = async (path: string) =>
      (await flow.browser.visit(`${flow.world.url}${path}`, { method: 'POST' })).status;
    flow.clock.advance(2 * HOURS);
    expect(await post('/token')).toBe(200);
    flow.clock.advance(2 * HOURS);
    expect(await post('/guarded')).toBe(200);
    expect(flow.world.tokenRequests()).toHaveLength(2);
    flow.clock.advance(2 * HOURS);
    flow.world.service.revoke('1');
    expect(await post('/guarded')).toBe(401);
  });
});

describe('a grant that is deleted during a refresh', () => {
  test('stays deleted, and the event says that the new pair was discarded', { meta: { threats: [49] } }, async () => {
    flow = await logInto();
    const { grantId } = await flow.whoami();
    const events = new EventLog('refresh');
    flow.clock.advance(2 * HOURS);
    const release = hold(flow.world.service, 'token');
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    await flow.world.strategy.deleteGrant(grantId);
    release();
    await late;
    events.stop();
    expect(events.events).toMatchObject([{ event: { outcome: 'discarded' } }]);
    expect(events.events[0]?.event).not.toHaveProperty('reason');
    expect(flow.world.grantKeys()).toEqual([]);
  });
});

describe('a login during a refresh', () => {
  test('under the same id is not overwritten by the late result', { meta: { threats: [49] } }, async () => {
    const tokenStore = new TroubledStore();
    flow = await logInto({ strategy: { tokenStore, grantId: (_req, user: { id: string }) => user.id } });
    flow.clock.advance(2 * HOURS);
    const release = hold(flow.world.service, 'token');
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    const again = new Browser();
    await flow.world.logIn(again);
    const token = await flow.world.strategy.client('1').accessToken();
    release();
    await late;
    expect(await flow.world.strategy.client('1').accessToken()).toBe(token);
    flow.clock.advance(2 * HOURS);
    expect((await again.visit(`${flow.world.url}/projects`)).status).toBe(200);
  });
});

describe('a logout that the store cannot carry out', () => {
  test('ends the Passport login, and says what went wrong', async () => {
    const store = new TroubledStore();
    flow = await logInto({ strategy: { tokenStore: store } });
    store.fail('delete');
    expect((await logOut()).status).toBe(503);
    const me = (await flow.browser.visit(`${flow.world.url}/whoami`)).json();
    expect(me).toMatchObject({ authorized: false });
    expect(me.user).toBeUndefined();
  });
});
