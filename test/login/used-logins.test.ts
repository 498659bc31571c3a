import { createHash, randomBytes } from 'node:crypto';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { UsedLogins } from '../../src/login/used-logins.js';
import { StoreAccess } from '../../src/stores/store-access.js';
import { withoutLock } from '../refresh/fixture.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { type StoreMethod, TroubledStore } from '../support/troubled-store.js';
import { settled } from './fixture.js';

let clock: TestClock;
let store: TroubledStore;
let access: StoreAccess;
let logins: UsedLogins<string>;
/** When the logins of a test expire. */
let end: number;
beforeEach(() => {
  stopTime();
  clock = new TestClock();
  store = new TroubledStore();
  access = accessTo(store);
  logins = another();
  end = clock.now() + 600_000;
});

const another = () => new UsedLogins<string>({ namespace: 'oauth-app.service', clock: clock.now });
const accessTo = (of: TroubledStore | ReturnType<typeof withoutLock>) => new StoreAccess(of, () => undefined);
const newState = () => randomBytes(32).toString('base64url');
const markId = (state: string) => `login:oauth-app.service+${createHash('sha256').update(state).digest('base64url')}`;
const isFirst = async (state: string, of = logins, expiresAt = end) => (await of.use(state, expiresAt, access)).isFirst;
/** What a callback takes over. */
const taken = ({ callback }: Awaited<ReturnType<typeof logins.use>>) => settled(callback.takeOver(() => true));
/** Uses a login up, and ends its callback. */
async function finish(state: string, expiresAt = end): Promise<void> {
  const { callback } = await logins.use(state, expiresAt, access);
  logins.end(state, callback, undefined);
}
/** Uses up so many other logins. */
async function use(count: number): Promise<void> {
  for (let number = 0; number < count; number++) await logins.use(`${number}A`.padStart(43, 'A'), end, access);
}
/** Lets time pass, for the clock and for the timers. */
async function pass(ms: number): Promise<void> {
  clock.advance(ms / 1000);
  await vi.advanceTimersByTimeAsync(ms);
}

describe('a login', () => {
  test('is used once: later callbacks get the callback that has used it', async () => {
    const [state, other] = [newState(), newState()];
    const first = await logins.use(state, end, access);
    expect(first).toMatchObject({ isFirst: true, callback: { expiresAt: end } });
    const second = await logins.use(state, end, access);
    expect([second.isFirst, second.callback]).toEqual([false, first.callback]);
    expect(second.callback).toBe(first.callback);
    expect(await isFirst(other)).toBe(true);
    logins.end(state, first.callback, undefined);
    const third = await logins.use(state, end, access);
    expect(third.isFirst).toBe(false);
    expect(await taken(third)).toBeUndefined();
  });

  test.for<[name: string, waiting: boolean[], outcome: string | undefined, got: (string | undefined)[]]>([
    ['nothing if the first one has ended itself', [true, true], undefined, [undefined, undefined]],
    ['the outcome of a browser that has gone away, once', [true, true], 'outcome', ['outcome', undefined]],
    ['no outcome if they have gone away as well', [false, true], 'outcome', [undefined, 'outcome']],
  ])('gives callbacks that wait for its end %s', async ([, waiting, outcome, got]) => {
    const state = newState();
    const { callback } = await logins.use(state, end, access);
    const waits = waiting.map((isWaiting) => callback.takeOver(() => isWaiting));
    const ended = vi.fn();
    for (const wait of waits) void wait.then(ended);
    await pass(1_000);
    expect(ended).not.toHaveBeenCalled();
    logins.end(state, callback, outcome);
    expect(await settled(Promise.all(waits))).toEqual(got);
  });

  test('keeps the outcome of a browser that has gone away for a callback that comes later', async () => {
    const state = newState();
    const { callback } = await logins.use(state, end, access);
    logins.end(state, callback, 'outcome');
    const later = await logins.use(state, end, access);
    expect(later.isFirst).toBe(false);
    expect([await taken(later), await taken(later)]).toEqual(['outcome', undefined]);
  });

  test.for([
    ['one that runs', false, 59_999, 60_000],
    ['one that has ended', true, 69_999, 70_000],
  ] as const)(
    'is remembered until it has expired by the clock of any host: %s',
    async ([, hasEnded, used, forgotten]) => {
      const state = newState();
      if (hasEnded) await finish(state);
      else await logins.use(state, end, access);
      clock.advance(600 + used / 1000);
      expect(await isFirst(state)).toBe(false);
      clock.advance((forgotten - used) / 1000);
      expect(await isFirst(state, logins, end + 600_000)).toBe(true);
    },
  );

  test('is not remembered anew by an end that comes after it has expired', async () => {
    const state = newState();
    const { callback } = await logins.use(state, end, access);
    clock.advance(660);
    await isFirst(newState());
    logins.end(state, callback, undefined);
    expect(await isFirst(state)).toBe(true);
  });

  test.for([
    [0, true],
    [10_000, true],
    [10_001, false],
    [-1, false],
  ] as const)('that expires %i ms after another one is remembered with it: %s', async ([laterMs, isShared]) => {
    const [one, other] = [newState(), newState()];
    await finish(one);
    await finish(other, end + laterMs);
    const [first, second] = [await logins.use(one, end, access), await logins.use(other, end, access)];
    expect(first.callback === second.callback).toBe(isShared);
  });

  test('is not remembered with one whose mark is in another store', async () => {
    const [one, other] = [newState(), newState()];
    await finish(one);
    access = accessTo(new TroubledStore());
    await finish(other);
    const [first, second] = [await logins.use(one, end, access), await logins.use(other, end, access)];
    expect(first.callback).not.toBe(second.callback);
  });

  test('is forgotten before it expires once there are 50,000 younger ones', async () => {
    access = accessTo(withoutLock(store));
    const [oldest, next] = [newState(), newState()];
    for (const state of [oldest, next]) await finish(state);
    await use(49_997);
    expect(await isFirst(oldest)).toBe(false);
    const youngest = newState();
    expect(await isFirst(youngest)).toBe(true);
    expect([await isFirst(oldest), await isFirst(next), await isFirst(youngest)]).toEqual([true, true, false]);
  });
});

describe('the mark of a login in the token store', () => {
  test('tells other processes, and is read once in each', async () => {
    const state = newState();
    expect(await isFirst(state)).toBe(true);
    expect(store.calls).toEqual(['lock', 'get', 'set']);
    const mark = await store.inner.get(markId(state));
    expect(mark).toEqual({ version: expect.any(Number), expiresAt: end, sealed: 'used' });
    store.calls.length = 0;
    const other = another();
    const second = await other.use(state, end, access);
    expect([second.isFirst, await taken(second)]).toEqual([false, undefined]);
    expect(await isFirst(state, other)).toBe(false);
    expect([store.calls, store.locks]).toEqual([['lock', 'get'], 0]);
  });

  test('is not left in a store without locks', async () => {
    access = accessTo(withoutLock(store));
    const state = newState();
    expect([await isFirst(state), await isFirst(state, another())]).toEqual([true, true]);
    expect(store.calls).toEqual([]);
  });

  test.for<[what: string, method: StoreMethod]>([
    ['the lock fails', 'lock'],
    ['it cannot be read', 'get'],
    ['it cannot be written', 'set'],
  ])('can be left by a later try if %s', async ([, method]) => {
    const state = newState();
    store.before = async (called) => {
      await Promise.resolve();
      if (called === method) throw new Error('The store is down');
    };
    const failed = logins.use(state, end, access);
    const second = await logins.use(state, end, access);
    await expect(settled(failed)).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE' });
    expect([second.isFirst, await taken(second)]).toEqual([false, undefined]);
    store.recover();
    expect(store.locks).toBe(0);
    expect([await isFirst(state), await isFirst(state)]).toEqual([true, false]);
  });

  test('that a failed try of this process has left is its own, and no other process’', async () => {
    const state = newState();
    const { set } = store;
    store.set = async (...args) => {
      await set.apply(store, args);
      throw new Error('The connection was lost');
    };
    await expect(isFirst(state)).rejects.toThrow();
    store.set = set;
    expect(await isFirst(state, another())).toBe(false);
    expect(await isFirst(state)).toBe(true);
  });

  test('that another process has left after a failed try of this one counts', async () => {
    const state = newState();
    store.fail('set');
    await expect(isFirst(state)).rejects.toThrow();
    store.recover();
    expect([await isFirst(state, another()), await isFirst(state)]).toEqual([true, false]);
  });

  test('counts as long as it is there', async () => {
    const state = newState();
    await finish(state);
    store.fail('delete');
    clock.advance(670);
    expect(await isFirst(state)).toBe(false);
  });

  test.for<StoreMethod>(['get', 'set'])('is waited for five seconds where %s hangs', async (method) => {
    store.before = (called) => (called === method ? new Promise(() => {}) : undefined);
    const failed = expect(isFirst(newState())).rejects.toThrow('did not answer in time (login)');
    await pass(4_999);
    expect(store.locks).toBe(1);
    await pass(1);
    await settled(failed);
  });

  test('is deleted when the login has expired, without a further login', async () => {
    const states = [newState(), newState()];
    await finish(states[0] ?? '');
    await logins.use(states[1] ?? '', end + 30_000, access);
    expect(vi.getTimerCount()).toBe(1);
    store.calls.length = 0;
    await pass(669_999);
    expect(store.calls).toEqual([]);
    await pass(1);
    expect(store.calls).toEqual(['delete']);
    expect(await store.inner.get(markId(states[0] ?? ''))).toBeUndefined();
    await pass(20_000);
    expect(await store.inner.get(markId(states[1] ?? ''))).toBeUndefined();
    expect(vi.getTimerCount()).toBe(0);
  });

  test('is looked after by a timer that waits for the oldest login', async () => {
    await logins.use(newState(), end, access);
    const before = performance.now();
    await vi.advanceTimersToNextTimerAsync();
    expect(performance.now() - before).toBe(660_000);
  });

  test('of a login that has expired already is deleted a second later', async () => {
    const state = newState();
    await logins.use(state, clock.now() - 60_000, access);
    await pass(999);
    expect(await store.inner.get(markId(state))).toBeDefined();
    await pass(1);
    expect(await store.inner.get(markId(state))).toBeUndefined();
  });

  test('of a login that is forgotten before it expires stays', async () => {
    const state = newState();
    await finish(state);
    access = accessTo(withoutLock(store));
    await use(50_000);
    await pass(0);
    expect(await store.inner.get(markId(state))).toBeDefined();
  });
});

describe('close', () => {
  test('deletes the marks of expired logins, waits for that, and lets no timer run', async () => {
    const [expired, pending] = [newState(), newState()];
    await logins.use(expired, end, access);
    await logins.use(pending, end + 60_000, access);
    clock.advance(660);
    await logins.close();
    expect(vi.getTimerCount()).toBe(0);
    expect(await store.inner.get(markId(expired))).toBeUndefined();
    expect(await store.inner.get(markId(pending))).toBeDefined();
    const unused = another();
    await unused.close();
    for (const closed of [logins, unused]) await isFirst(newState(), closed);
    expect(vi.getTimerCount()).toBe(0);
  });

  test.for([
    ['fails', 0, () => Promise.reject(new Error('The store is down'))],
    ['hangs for five seconds', 5_000, () => new Promise(() => {})],
  ] as const)('ends even if a deletion %s', async ([, waitMs, before]) => {
    await logins.use(newState(), end, access);
    clock.advance(660);
    store.before = before;
    const closed = vi.fn();
    const closing = logins.close().then(closed);
    await vi.advanceTimersByTimeAsync(Math.max(waitMs - 1, 0));
    if (waitMs > 0) expect(closed).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    await settled(closing);
  });
});
