import { afterEach, describe, expect, test } from 'vitest';
import { Browser } from '../support/browser.js';
import { EventLog } from '../support/event-log.js';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { storeId } from '../support/store-id.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';

const HOURS = 3600;

let flow: LoggedIn;
afterEach(() => flow.world.close());

const logOut = (browser = flow.browser) => browser.visit(`${flow.world.url}/logout`, { method: 'POST' });

describe('a logout during a refresh', () => {
  test('ends the grant for good: the late result is discarded', { meta: { threats: [49] } }, async () => {
    const store = new TroubledStore();
    flow = await logInto({ strategy: { tokenStore: store } });
    const { grantId } = await flow.whoami();
    flow.clock.advance(2 * HOURS);
    flow.world.service.fail('token', { delay: 150 });
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    expect((await logOut()).status).toBe(200);
    expect((await late).status).not.toBe(200);
    expect(await store.inner.get(storeId(flow.world.service.options, grantId))).toBeUndefined();
    await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });

  test('is not overtaken by a save that is slow, nor by one that fails', { meta: { threats: [49] } }, async () => {
    for (const fails of [false, true]) {
      const store = new TroubledStore();
      flow = await logInto({ strategy: { tokenStore: store } });
      const { grantId } = await flow.whoami();
      flow.clock.advance(2 * HOURS);
      let goOn = () => {};
      const held = new Promise<void>((resolve, reject) => {
        goOn = () => (fails ? reject(new Error('The store is down')) : resolve());
      });
      store.before = (method) => (method === 'update' ? held : undefined);
      const saving = flow.projects();
      await until(() => expect(store.calls).toContain('update'));
      const leaving = logOut();
      await until(() => expect(flow.world.service.requests.length).toBeGreaterThan(0));
      goOn();
      await Promise.all([saving, leaving]);
      store.recover();
      await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
      expect(await store.inner.get(storeId(flow.world.service.options, grantId))).toBeUndefined();
      if (!fails) await flow.world.close();
    }
  });

  test('is not undone by a slow request of the same user that still uses its client', {
    meta: { threats: [21] },
  }, async () => {
    let goOn = () => {};
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    flow = await logInto({
      routes: (app) =>
        app.get('/slow', async (req, res) => {
          await held;
          const outcome = await req.apiClient.accessToken().then(
            () => 'a token',
            (error) => error.code,
          );
          res.end(JSON.stringify(outcome));
        }),
    });
    const { grantId } = await flow.whoami();
    const slow = flow.browser.visit(`${flow.world.url}/slow`);
    await flow.projects();
    flow.clock.advance(2 * HOURS);
    await logOut();
    goOn();
    expect((await slow).json()).toBe('ERR_NOT_AUTHORIZED');
    expect(flow.world.grantKeys()).toEqual([]);
    await expect(flow.world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });

  test('publishes no lost grant: the user ended it', async () => {
    flow = await logInto();
    const events = new EventLog('grant-lost');
    flow.clock.advance(2 * HOURS);
    flow.world.service.fail('token', { delay: 100 });
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    await logOut();
    await late;
    events.stop();
    expect(events.events).toEqual([]);
  });
});

describe('a grant that is deleted during a refresh', () => {
  test('stays deleted, and the event says that the new pair was discarded', { meta: { threats: [49] } }, async () => {
    flow = await logInto();
    const { grantId } = await flow.whoami();
    const events = new EventLog('refresh');
    flow.clock.advance(2 * HOURS);
    flow.world.service.fail('token', { delay: 100 });
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    await flow.world.strategy.deleteGrant(grantId);
    expect((await late).status).not.toBe(200);
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
    flow.world.service.fail('token', { delay: 200 });
    const late = flow.projects();
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    const again = new Browser();
    await flow.world.logIn(again);
    const token = await flow.world.strategy.client('1').accessToken();
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
