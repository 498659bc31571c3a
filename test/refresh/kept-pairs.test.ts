import { beforeEach, describe, expect, test, vi } from 'vitest';
import { emptyGrant, type Grant, GrantCodec } from '../../src/grants/grant.js';
import { GrantRepository } from '../../src/grants/grant-repository.js';
import { UnsavedGrants } from '../../src/refresh/unsaved-grants.js';
import { HeldLock } from '../../src/stores/held-lock.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { gate, grantOf } from './fixture.js';

const old = grantOf('old', { generation: 1 });
const next = grantOf('next', { generation: 2 });
const newest = grantOf('newest', { generation: 3 });

let clock: TestClock;
let store: TroubledStore;
let repository: GrantRepository;
let unsaved: UnsavedGrants;
/** What has become of pairs: `saved access-next`. */
let settled: string[];
let durations: number[];
let released: string[];

beforeEach(async () => {
  stopTime();
  // The process has run for a while.
  vi.advanceTimersByTime(60_000);
  clock = new TestClock();
  store = new TroubledStore();
  [settled, durations, released] = [[], [], []];
  repository = new GrantRepository({
    strategyName: 'oauth-app',
    store,
    codec: new GrantCodec([]),
    cache: { max: 1_000, ttlMs: 30_000 },
    clock: clock.now,
    onUnreadable: () => undefined,
    onRecovery: () => undefined,
    onUnlockedRefresh: () => undefined,
  });
  unsaved = new UnsavedGrants(repository, (id, { outcome, trigger, durationMs }, grant) => {
    settled.push(`${id} ${outcome} ${trigger} ${grant.accessToken}`);
    durations.push(durationMs);
  });
  await repository.create('id', old, undefined);
  store.calls.length = 0;
});

/** A lock of so long a lease, whose release is noted. */
function lockOf(name: string, leaseMs = 30_000): HeldLock {
  const lease = { leaseMs, ageMs: 0, isHeld: async () => true };
  return new HeldLock(lease, clock.now, async () => void released.push(name));
}

/** Keeps a pair, and lets its refresh release the lock. */
function keep(grant: Grant = next, name = 'lock', leaseMs?: number): HeldLock {
  const lock = lockOf(name, leaseMs);
  unsaved.keep('id', grant, old.version, 'expired', lock);
  void lock.release();
  return lock;
}

const stored = async () => await repository.peek('id');
const advance = async (ms: number) => void (await vi.advanceTimersByTimeAsync(ms));

/** Lets all saves fail. Returns when they were tried, in milliseconds. */
function failing(): number[] {
  const [startedAt, tries] = [performance.now(), [] as number[]];
  store.before = (method) => {
    if (method !== 'update') return;
    tries.push(performance.now() - startedAt);
    throw new Error('The store is down');
  };
  return tries;
}

test('a pair is saved as soon as the store works: tries are ever rarer, five seconds apart at most', async () => {
  const tries = failing();
  keep();
  await advance(25_000);
  const own = [100, 300, 700, 1_500, 3_100, 6_300, 11_300, 16_300, 21_300];
  // One more comes before the lock is released.
  expect(tries).toEqual([...own, 15_000].sort((one, other) => one - other));
  expect([released, settled, unsaved.byId.get('id')?.grant]).toEqual([['lock'], [], next]);
  store.recover();
  await advance(1_300);
  expect([settled, durations]).toEqual([['id saved expired access-next'], [26_300]]);
  expect([unsaved.byId.size, await stored()]).toEqual([0, next]);
  store.calls.length = 0;
  await advance(60_000);
  expect([store.calls, released]).toEqual([[], ['lock']]);
});

test('a pair that is saved at once gives its lock back at once', async () => {
  keep();
  expect(released).toEqual([]);
  await advance(100);
  expect([settled, released]).toEqual([['id saved expired access-next'], ['lock']]);
});

test('a pair is discarded if the store has another login', async () => {
  await repository.create('id', grantOf('login', { lineage: 'another' }), undefined);
  keep();
  await advance(100);
  expect([settled, released, unsaved.byId.size]).toEqual([['id discarded expired access-next'], ['lock'], 0]);
});

test('a pair that is forgotten is saved no more, and its lock is given back', async () => {
  keep();
  unsaved.drop('id');
  unsaved.drop('unknown');
  await advance(60_000);
  expect([store.calls, released, settled, unsaved.byId.size]).toEqual([[], ['lock'], [], 0]);
});

test('a pair takes the place of the one before it', async () => {
  const tries = failing();
  keep(next, 'first');
  await advance(50);
  keep(newest, 'second');
  await advance(300);
  expect([tries, released]).toEqual([[150, 350], ['first']]);
  store.recover();
  await unsaved.flush();
  expect([settled, await stored()]).toEqual([['id saved expired access-newest'], newest]);
});

test('a pair that comes while the one before it is being saved is still to be saved', async () => {
  const { opened, open } = gate();
  store.before = (method) => (method === 'update' ? opened : undefined);
  keep(next, 'first');
  await advance(100);
  keep(newest, 'second');
  store.recover();
  open();
  await advance(99);
  expect([settled, unsaved.byId.get('id')?.grant]).toEqual([[], newest]);
  expect(store.calls.filter((call) => call === 'update')).toHaveLength(1);
  await advance(1);
  expect(settled).toEqual(['id saved expired access-newest']);
  store.calls.length = 0;
  await advance(60_000);
  expect(store.calls).toEqual([]);
});

test('a pair that is forgotten while it is being saved is told by nobody', async () => {
  const { opened, open } = gate();
  store.before = (method) => (method === 'update' ? opened : undefined);
  keep();
  const flushing = unsaved.flush();
  unsaved.drop('id');
  open();
  await flushing;
  expect([settled, unsaved.byId.size]).toEqual([[], 0]);
});

test('a pair is saved over the version that the store most likely has', () => {
  expect(unsaved.storedVersion('id', old)).toBe(old.version);
  expect(unsaved.storedVersion('id', emptyGrant())).toBeUndefined();
  keep();
  expect(unsaved.storedVersion('id', next)).toBe(old.version);
  unsaved.keep('id', newest, undefined, 'ahead', lockOf('lock'));
  expect(unsaved.storedVersion('id', newest)).toBeUndefined();
  unsaved.drop('id');
});

test('a lock serves the next refresh as long as its lease lasts for a request, and it is held', async () => {
  failing();
  expect(unsaved.heldLock('id', 10_000)).toBeUndefined();
  const lock = keep();
  expect(unsaved.heldLock('other', 10_000)).toBeUndefined();
  expect(unsaved.heldLock('id', 10_000)).toBe(lock);
  await advance(12_000);
  expect(unsaved.heldLock('id', 10_000)).toBeUndefined();
  expect(unsaved.heldLock('id', 2_000)).toBeUndefined();
  clock.advance(12);
  expect(unsaved.heldLock('id', 2_000)).toBe(lock);
  await advance(3_000);
  expect(unsaved.heldLock('id', 2_000)).toBeUndefined();
});

describe('all pairs are tried at once', () => {
  test('in one try that callers at the same time share', async () => {
    const tries = failing();
    keep();
    const flushing = unsaved.flush();
    expect(unsaved.flush()).toBe(flushing);
    await flushing;
    expect(tries).toHaveLength(1);
    store.recover();
    await unsaved.flush();
    expect(settled).toEqual(['id saved expired access-next']);
  });

  test('when the strategy is closed, for four seconds; then the locks are given back', async () => {
    const tries = failing();
    keep();
    const closed = vi.fn();
    void unsaved.saveAll().then(closed);
    await advance(3_999);
    expect([closed.mock.calls.length, released]).toEqual([0, []]);
    await advance(1);
    const [every200, own] = [Array.from({ length: 21 }, (_, index) => index * 200), [100, 300, 700, 1_500, 3_100]];
    expect(tries).toEqual([...every200, ...own].sort((one, other) => one - other));
    expect([closed.mock.calls.length, released, unsaved.byId.size]).toEqual([1, ['lock'], 1]);
    unsaved.drop('id');
  });

  test('when the strategy is closed, until they are saved', async () => {
    keep();
    await unsaved.saveAll();
    expect([settled, released]).toEqual([['id saved expired access-next'], ['lock']]);
    await unsaved.saveAll();
    expect(store.calls).toEqual(['update']);
  });

  test('when the strategy is closed, which ends no other write if there are none', async () => {
    const { opened, open } = gate();
    store.before = (method) => (method === 'set' ? opened : undefined);
    const created = repository.create('other', grantOf('other'), undefined);
    await advance(0);
    await unsaved.saveAll();
    open();
    await created;
    expect(await repository.peek('other')).toMatchObject({ accessToken: 'access-other' });
  });

  test('when the strategy is closed, though a write before them hangs', async () => {
    store.before = (method) => (method === 'set' ? new Promise(() => {}) : undefined);
    const hanging = repository.create('id', grantOf('hanging'), undefined).catch(() => undefined);
    keep();
    const saved = unsaved.saveAll();
    await advance(2_200);
    await saved;
    expect(settled).toEqual(['id saved expired access-next']);
    await hanging;
  });
});
