import { describe, expect, test, vi } from 'vitest';
import { pause } from '../../src/waiting.js';
import { another } from '../support/another.js';
import { fastForward } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { hold } from '../support/hold.js';
import { mayLeave } from '../support/may-leave.js';
import { clock, loggedIn, logOut, projects, visit, whoami, world } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';

const HOURS = 3600;

describe('close()', threats(44), () => {
  test('waits for the refresh that is under way, and for its save', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    const { grantId } = await whoami();
    clock.advance(2 * HOURS);
    const { opened, open } = gate();
    store.before = (method) => (method === 'update' ? opened : undefined);
    const asked = world.strategy.client(grantId).accessToken();
    await until(() => expect(store.calls).toContain('update'));
    const closing = world.strategy.close();
    open();
    await closing;
    const next = await another({ strategy: { tokenStore: store } });
    expect(await next.strategy.client(grantId).accessToken()).toBe(await asked);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('waits for a refresh that no request waits for', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    clock.advance(2 * HOURS - 60);
    const release = hold(world.service, 'token');
    expect((await projects()).status).toBe(200);
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    const closed = world.strategy.close();
    release();
    await closed;
    expect(store.calls).toContain('update');
  });

  test('waits for a deletion that is under way', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    const { grantId } = await whoami();
    store.before = (method) => (method === 'delete' ? pause(1_000) : undefined);
    const deleted = vi.fn();
    await fastForward(async () => {
      void world.strategy.deleteGrant(grantId).then(deleted);
      await world.strategy.close();
    });
    expect(deleted).toHaveBeenCalledOnce();
  });

  test('waits until the lock of a pair that it saves at last is released', async () => {
    const store = new TroubledStore();
    const released = vi.fn();
    await loggedIn({ strategy: { tokenStore: store } });
    store.lock = (...args) =>
      store.inner
        .lock(...args)
        .then(() => pause(1_000))
        .then(released);
    clock.advance(2 * HOURS);
    store.fail('update', 'set');
    expect((await projects()).status).toBe(200);
    store.recover();
    await fastForward(() => world.strategy.close());
    expect(released).toHaveBeenCalledOnce();
  });
});

test('a closed strategy says so: to logins, calls and methods', threats(125), async () => {
  const options = { strategy: { tokenStore: new TroubledStore(), concurrency: 1 } };
  await loggedIn(options);
  const { strategy } = world;
  const { grantId } = await whoami();
  const client = strategy.client(grantId);
  const closed = { name: 'ConfigurationError', code: 'ERR_CLOSED' };
  // One call waits for the slot of another process.
  const release = hold(world.service, 'api');
  const { calls } = options.strategy.tokenStore;
  calls.length = 0;
  const held = (await another(options)).strategy.client(grantId).projects();
  await until(() => expect(calls).toContain('add'));
  const waiting = expect(client.projects()).rejects.toMatchObject(closed);
  await until(() => expect(calls).toContain('update'));
  await strategy.close();
  await waiting;
  release();
  await held;
  for (const path of ['/login', '/callback?code=x&state=y', '/projects'])
    expect((await visit(path)).json()).toMatchObject(closed);
  // With a login, and without one.
  for (const _logout of [1, 2]) expect((await logOut()).json()).toMatchObject(closed);
  await expect(client.projects()).rejects.toMatchObject(closed);
  await expect(strategy.deleteGrant('id')).rejects.toMatchObject(closed);
  expect(() => strategy.client('id')).toThrow(expect.objectContaining(closed));
  await strategy.close();
});

test.each([
  ['with versions', (store: TroubledStore) => store],
  [
    'without',
    (store: TroubledStore) => ({ get: bound(store, 'get'), set: bound(store, 'set'), delete: bound(store, 'delete') }),
  ],
])('close() saves a pair whose save hangs, in a store %s', async (_what, storeOf) => {
  const store = new TroubledStore();
  await loggedIn({ strategy: { tokenStore: storeOf(store) } });
  const { grantId } = await whoami();
  clock.advance(2 * HOURS);
  store.before = (method) => (method === 'update' || method === 'set' ? new Promise(() => {}) : undefined);
  expect((await fastForward(projects)).status).toBe(200);
  store.recover();
  await fastForward(() => world.strategy.close());
  const next = await another({ strategy: { tokenStore: store } });
  expect(await next.strategy.client(grantId).projects()).toMatchObject({ data: expect.any(Array) });
  expect(world.tokenRequests()).toHaveLength(1);
});

test('close() ends also where the store never answers', async () => {
  mayLeave(/#saves|#unsaved/);
  const store = new TroubledStore();
  await loggedIn({ strategy: { tokenStore: store } });
  clock.advance(2 * HOURS);
  store.before = (method) => (method === 'update' || method === 'set' ? new Promise(() => {}) : undefined);
  expect((await fastForward(projects)).status).toBe(200);
  await fastForward(() => world.strategy.close());
});

test('close() may be called twice, and by a strategy that has done nothing', async () => {
  await loggedIn();
  await Promise.all([world.strategy.close(), world.strategy.close()]);
  await world.strategy.close();
});

function bound<M extends 'get' | 'set' | 'delete'>(store: TroubledStore, method: M): TroubledStore[M] {
  return store[method].bind(store) as TroubledStore[M];
}
