import { afterEach, describe, expect, test } from 'vitest';
import { gate } from '../refresh/fixture.js';
import { fastForward } from '../support/fast-forward.js';
import { hold } from '../support/hold.js';
import { type LoggedIn, logInto } from '../support/logged-in.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { startWorld } from '../support/world.js';

const HOURS = 3600;

let flow: LoggedIn;
afterEach(() => flow.world.close());

describe('close()', { meta: { threats: [44] } }, () => {
  test('waits for the refresh that is under way, and for its save', async () => {
    const store = new TroubledStore();
    flow = await logInto({ strategy: { tokenStore: store } });
    const { grantId } = await flow.whoami();
    flow.clock.advance(2 * HOURS);
    const { opened, open } = gate();
    store.before = (method) => (method === 'update' ? opened : undefined);
    const asked = flow.world.strategy.client(grantId).accessToken();
    await until(() => expect(store.calls).toContain('update'));
    const closing = flow.world.strategy.close();
    open();
    await closing;
    const next = await startWorld({
      running: flow.world.service,
      strategy: { tokenStore: store, clock: flow.clock.now },
    });
    expect(await next.strategy.client(grantId).accessToken()).toBe(await asked);
    expect(flow.world.tokenRequests()).toHaveLength(1);
    await next.close();
  });

  test('waits for a refresh that no request waits for', async () => {
    const store = new TroubledStore();
    flow = await logInto({ strategy: { tokenStore: store } });
    flow.clock.advance(2 * HOURS - 60);
    const release = hold(flow.world.service, 'token');
    expect((await flow.projects()).status).toBe(200);
    await until(() => expect(flow.world.tokenRequests()).toHaveLength(1));
    const closed = flow.world.strategy.close();
    release();
    await closed;
    expect(store.calls).toContain('update');
  });
});

test.each([
  ['with versions', (store: TroubledStore) => store],
  [
    'without',
    (store: TroubledStore) => ({ get: bound(store, 'get'), set: bound(store, 'set'), delete: bound(store, 'delete') }),
  ],
])('close() saves a pair whose save hangs, in a store %s', async (_what, storeOf) => {
  const store = new TroubledStore();
  flow = await logInto({ strategy: { tokenStore: storeOf(store) } });
  const { grantId } = await flow.whoami();
  flow.clock.advance(2 * HOURS);
  store.before = (method) => (method === 'update' || method === 'set' ? new Promise(() => {}) : undefined);
  expect((await fastForward(flow.projects)).status).toBe(200);
  store.recover();
  await fastForward(() => flow.world.strategy.close());
  const next = await startWorld({
    running: flow.world.service,
    strategy: { tokenStore: store, clock: flow.clock.now },
  });
  expect(await next.strategy.client(grantId).projects()).toMatchObject({ data: expect.any(Array) });
  expect(flow.world.tokenRequests()).toHaveLength(1);
  await next.close();
});

test('close() ends also where the store never answers', async () => {
  const store = new TroubledStore();
  flow = await logInto({ strategy: { tokenStore: store } });
  flow.clock.advance(2 * HOURS);
  store.before = (method) => (method === 'update' || method === 'set' ? new Promise(() => {}) : undefined);
  expect((await fastForward(flow.projects)).status).toBe(200);
  await fastForward(() => flow.world.strategy.close());
});

test('close() may be called twice, and by a strategy that has done nothing', async () => {
  flow = await logInto();
  await Promise.all([flow.world.strategy.close(), flow.world.strategy.close()]);
  await flow.world.strategy.close();
});

function bound<M extends 'get' | 'set' | 'delete'>(store: TroubledStore, method: M): TroubledStore[M] {
  return store[method].bind(store) as TroubledStore[M];
}
