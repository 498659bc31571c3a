import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { TokenStoreError } from '../../src/index.js';
import { another } from '../support/another.js';
import { listen } from '../support/event-log.js';
import { fastForward } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { mayLeave } from '../support/may-leave.js';
import { clock, loggedIn, projects, whoami, world } from '../support/one-world.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';

const HOURS = 3600;
const forever = (): Promise<void> => new Promise(() => {});

let store: TroubledStore;

async function logInWith(strategy: object = {}): Promise<void> {
  store = new TroubledStore();
  await loggedIn({ strategy: { tokenStore: store, ...strategy } });
}

/** The access token that the store has, as another process finds it. */
async function tokenOfAnotherProcess(): Promise<string> {
  const { grantId } = await whoami();
  const other = await another({ strategy: { tokenStore: store.inner } });
  return other.strategy.client(grantId).accessToken();
}

const tries = () => store.calls.filter((call) => call === 'update').length;
const ownToken = async () => world.strategy.client((await whoami()).grantId).accessToken();

describe('a save that fails after a rotation', threats(45), () => {
  test('three times is repeated: all requests succeed, with one token request, and the store has the pair at the end', async () => {
    await logInWith();
    const events = listen('refresh');
    clock.advance(2 * HOURS);
    let failures = 0;
    store.before = (method) => {
      if (method === 'update' && ++failures <= 3) throw new Error('The store is down');
    };
    for (let round = 0; round < 10; round++) {
      const pages = await Promise.all([projects(), projects(), projects()]);
      expect(pages.every(({ status }) => status === 200)).toBe(true);
    }
    await fastForward(() => until(() => expect(events.values('refresh', 'outcome')).toEqual(['unsaved', 'saved'])));
    expect(await tokenOfAnotherProcess()).toBe(await ownToken());
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('that hangs delays no request, and the pair is in the store once the store answers', async () => {
    await logInWith();
    clock.advance(2 * HOURS);
    const held = gate();
    store.before = (method) => (method === 'update' ? held.opened : undefined);
    expect((await fastForward(projects)).status).toBe(200);
    expect((await projects()).status).toBe(200);
    held.open();
    store.recover();
    await until(async () => expect(await tokenOfAnotherProcess()).toBe(await ownToken()));
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('is repeated as soon as the store answers any request, regardless of the pause between the tries', async () => {
    await logInWith();
    clock.advance(2 * HOURS);
    store.fail('update', 'set');
    expect((await projects()).status).toBe(200);
    await fastForward(() => until(() => expect(tries()).toBeGreaterThan(4)));
    const tried = tries();
    store.recover();
    await world.strategy
      .client('of somebody else')
      .accessToken()
      .catch(() => {});
    // The next try by itself would come after more than a second.
    await turn();
    expect(tries()).toBe(tried + 1);
    expect(await tokenOfAnotherProcess()).toBe(await ownToken());
  });

  test('keeps other processes from the old refresh token until the new one is saved', async () => {
    await logInWith({ grantId: () => 'shared' });
    const client = world.strategy.client('shared');
    const theirs = new TroubledStore();
    Reflect.set(theirs, 'inner', store.inner);
    const other = await another({ strategy: { tokenStore: theirs, grantId: () => 'shared' } });
    // Both processes see the store fail, and the other one sees it come back first.
    clock.advance(2 * HOURS);
    theirs.fail();
    await expect(other.strategy.client('shared').accessToken()).rejects.toBeInstanceOf(TokenStoreError);
    let failing = true;
    store.before = (method) => {
      if (method === 'update' && failing) throw new Error('The store is down');
    };
    const token = await client.accessToken();
    theirs.recover();
    theirs.calls.length = 0;
    const pending = other.strategy.client('shared').accessToken();
    // It waits for the lock, which is held until the pair is saved.
    await until(() => expect(theirs.calls).toContain('lock'));
    failing = false;
    expect(await pending).toBe(token);
    expect(world.tokenRequests()).toHaveLength(1);
  });
});

describe('a token store that fails', threats(48), () => {
  test('serves valid tokens from memory, answers 503 for expired ones, and ends no login', async () => {
    await logInWith();
    expect((await projects()).status).toBe(200);
    store.fail();
    for (const age of [10, 30, 600]) {
      clock.advance(age);
      expect((await projects()).status).toBe(200);
    }
    clock.advance(2 * HOURS);
    const page = await projects();
    expect(page.status).toBe(503);
    expect(page.json()).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE' });
    expect(world.tokenRequests()).toEqual([]);
    store.recover();
    expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(1);
    // It is believed again at once: the grant in memory is not used for one that it no longer has.
    await store.inner.delete(storeId(world.service.options, (await whoami()).grantId));
    clock.advance(31);
    expect((await projects()).status).toBe(302);
  });

  test('by its lock alone costs valid tokens nothing, and deletes nothing', async () => {
    await logInWith({ cache: false });
    store.fail('lock');
    clock.advance(2 * HOURS - 60);
    expect((await projects()).status).toBe(200);
    clock.advance(60);
    expect((await projects()).status).toBe(503);
    expect(store.calls).not.toContain('delete');
    store.recover();
    expect((await projects()).status).toBe(200);
  });

  test('is asked by each request without a cache, and the answer is 503 with no secret in it', async () => {
    await logInWith({ cache: false });
    store.fail('get');
    const page = await projects();
    expect(page.status).toBe(503);
    expect(page.json().name).toBe('TokenStoreError');
    expect((await whoami()).authorized).toBe(true);
    store.recover();
    expect((await projects()).status).toBe(200);
  });

  test('hangs no request for good', async () => {
    await logInWith({ cache: false });
    store.before = forever;
    const page = await fastForward(projects);
    expect(page.json()).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_TIMEOUT' });
    store.recover();
    expect((await projects()).status).toBe(200);
  });

  test('by hanging costs a request whose token is in memory one second', async () => {
    await logInWith();
    const { grantId } = await whoami();
    clock.advance(31);
    store.before = forever;
    const waitedMs = await fastForward(async () => {
      const since = performance.now();
      await world.strategy.client(grantId).accessToken();
      return performance.now() - since;
    });
    expect(Math.round(waitedMs / 1_000)).toBe(1);
  });

  test('by throwing instead of rejecting, or by answering nonsense, crashes nothing', async () => {
    await logInWith({ cache: false });
    const { inner } = store;
    const nonsense = [
      null,
      'text',
      7,
      [],
      {},
      { version: 1 },
      { version: 'x', sealed: 'y' },
      { version: 1, sealed: '%%' },
    ];
    for (const answer of nonsense) {
      store.get = () => answer as never;
      expect((await projects()).status).toBe(302);
    }
    store.get = () => {
      throw new Error('at once');
    };
    expect((await projects()).status).toBe(503);
    store.get = inner.get;
    expect((await projects()).status).toBe(200);
  });
});

describe('a lock of a store', () => {
  const locks: readonly (readonly [string, (work: () => Promise<unknown>) => Promise<unknown>])[] = [
    ['forgets to hand the result on', (work) => work().then(() => undefined)],
    ['never takes itself back', (work) => work().then(forever)],
    ['fails to take itself back', (work) => work().then(() => Promise.reject(new Error('The lock is lost')))],
    ['runs its work twice', (work) => work().then(work)],
  ];

  test.each(locks)('that %s costs no refresh', async (_what, lock) => {
    mayLeave(/#releases/);
    await logInWith();
    store.lock = <T>(_id: string, work: () => Promise<T>) => lock(work) as Promise<T>;
    clock.advance(2 * HOURS);
    expect((await fastForward(projects)).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(1);
    // It waits for the lock.
    await fastForward(() => world.strategy.close());
  });

  test('that never runs its work is a failure of the store', async () => {
    await logInWith();
    store.lock = async () => undefined as never;
    clock.advance(2 * HOURS);
    expect((await projects()).json().name).toBe('TokenStoreError');
    expect(world.tokenRequests()).toEqual([]);
  });
});
