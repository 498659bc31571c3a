import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ServiceUnavailableError, TokenStoreError } from '../../src/errors.js';
import { StoreAccess } from '../../src/stores/store-access.js';
import type { HeldLease, TokenStore } from '../../src/stores/token-store.js';
import { gate, withoutLock } from '../refresh/fixture.js';
import { stopTime } from '../support/stop-time.js';
import { TroubledStore } from '../support/troubled-store.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const forever = (): Promise<never> => new Promise(() => undefined);
const LIMITS = { waitMs: 1_000, abandonMs: 3_000 };
const inTime = (operation: string) => ({
  ...{ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_TIMEOUT', status: 503 },
  message: `The token store did not answer in time (${operation}). All grants are kept; the next request calls it again.`,
});
const failure = {
  ...{ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 },
  message: 'The token store failed. All grants are kept; the next request calls it again.',
};
const down = new TokenStoreError('Redis is not connected');
const locked = new TokenStoreError('Others have it.', { code: 'ERR_TOKEN_STORE_LOCKED' });

let store: TroubledStore;
let access: StoreAccess;
let recoveries: number;

beforeEach(() => {
  stopTime();
  store = new TroubledStore();
  recoveries = 0;
  access = accessTo(store);
});

function accessTo(tokenStore: TokenStore): StoreAccess {
  return new StoreAccess(
    tokenStore,
    () => {
      recoveries += 1;
    },
    () => 0,
  );
}

const read = () => access.use((used) => used.get('id'), 'read', 5_000);

/** What a promise has come to: its error, or `open` while it has not settled. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  const open = vi.advanceTimersByTimeAsync(0).then(() => 'open');
  return await Promise.race([
    promise.then(
      () => 'done',
      (error: unknown) => error,
    ),
    open,
  ]);
}

/** Passes if the promise settles after so many milliseconds and not before. */
async function settlesAfter(ms: number, promise: Promise<unknown>): Promise<unknown> {
  promise.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(await stateOf(promise)).toBe('open');
  await vi.advanceTimersByTimeAsync(1);
  return await stateOf(promise);
}

describe('a call of the store', () => {
  test('resolves to what the store gives, and counts as a failure if it does not', async () => {
    await store.set('id', grant);
    expect(await read()).toEqual(grant);
    expect([access.isDown, access.hasFailedRecently]).toEqual([false, false]);
    store.fail('get');
    await expect(read()).rejects.toMatchObject({ ...failure, cause: { message: 'The store is down' } });
    expect([access.isDown, access.hasFailedRecently]).toEqual([true, true]);
    expect(recoveries).toBe(0);
  });

  test('that succeeds after a failure tells of it once', async () => {
    store.fail();
    await expect(read()).rejects.toThrow();
    store.recover();
    await Promise.all([read(), read()]);
    await read();
    expect(recoveries).toBe(1);
    expect([access.isDown, access.hasFailedRecently]).toEqual([false, true]);
  });

  test('has failed lately for a second as to whether the store is down, and a minute as to what others hold', async () => {
    store.fail();
    await expect(read()).rejects.toThrow();
    for (const [ms, isDown, hasFailedRecently] of [
      [999, true, true],
      [1, false, true],
      [58_999, false, true],
      [1, false, false],
    ] as const) {
      vi.advanceTimersByTime(ms);
      expect([access.isDown, access.hasFailedRecently]).toEqual([isDown, hasFailedRecently]);
    }
  });

  test('ends at its time limit, or when its signal aborts', async () => {
    store.before = forever;
    expect(await settlesAfter(5_000, read())).toMatchObject(inTime('read'));
    expect(access.isDown).toBe(true);
    const reason = new ServiceUnavailableError('Enough');
    await expect(access.use(forever, 'read', 5_000, AbortSignal.abort(reason))).rejects.toBe(reason);
  });

  test.for<[what: string, error: unknown, isPassedOn: boolean, isDown: boolean]>([
    ['an error of this package', new ServiceUnavailableError('Mine'), true, true],
    ['one of a token store', new TokenStoreError('Down'), true, true],
    ['one that tells of a lock that others hold', locked, true, false],
    ['one of others with such a code', Object.assign(new Error('Theirs'), { code: locked.code }), false, true],
    ['nothing', undefined, false, true],
  ])('that fails with %s passes on what is of this package', async ([, error, isPassedOn, isDown]) => {
    const thrown: unknown = await access.use(() => Promise.reject(error), 'read', 5_000).catch((fault) => fault);
    if (isPassedOn) expect(thrown).toBe(error);
    else expect(thrown).toMatchObject(failure);
    expect(access.isDown).toBe(isDown);
  });
});

describe('writes', () => {
  const write = (id: string, task: (signal: AbortSignal) => Promise<unknown>) =>
    access.write(id, LIMITS, (_store, signal) => task(signal));

  test('of one grant run one after the other, those of others meanwhile', async () => {
    const [order, first] = [[] as string[], gate()];
    const writes = [
      write('id', () => first.opened.then(() => order.push('first'))),
      write('id', async () => order.push('second')),
      write('other', async () => order.push('other')),
    ];
    await writes[2];
    first.open();
    expect(await Promise.all(writes)).toEqual([2, 3, 1]);
    expect(order).toEqual(['other', 'first', 'second']);
  });

  test('get the store', async () => {
    await access.write('id', LIMITS, (used) => used.set('id', grant));
    expect(await store.get('id')).toEqual(grant);
  });

  test('keep their callers waiting for a while, and the next write until they are abandoned', async () => {
    let signal: AbortSignal | undefined;
    const hanging = write('id', (its) => {
      signal = its;
      return forever();
    });
    const next = write('id', async () => 'next');
    next.catch(() => undefined);
    expect(await settlesAfter(LIMITS.waitMs, hanging)).toMatchObject(inTime('write'));
    expect([access.isDown, signal?.aborted]).toEqual([true, false]);
    let hasBegun = false;
    const later = write('id', async () => {
      hasBegun = true;
    });
    later.catch(() => undefined);
    await vi.advanceTimersByTimeAsync(LIMITS.abandonMs - LIMITS.waitMs - 1);
    expect([signal?.aborted, hasBegun]).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect([signal?.aborted, hasBegun]).toEqual([true, true]);
    expect(signal?.reason).toMatchObject(inTime('write'));
  });

  test('that fail are told so by their signal', async () => {
    let signal: AbortSignal | undefined;
    const failing = write('id', (its) => {
      signal = its;
      return Promise.reject(new Error('The store is down'));
    });
    await expect(failing).rejects.toMatchObject(failure);
    expect(signal?.reason).toMatchObject(failure);
  });

  test('that run are abandoned at the end, so that those behind them begin; those that have ended are not', async () => {
    const signals: AbortSignal[] = [];
    await write('id', async (signal) => signals.push(signal));
    const running = write('id', (signal) => {
      signals.push(signal);
      return forever();
    });
    const behind = write('id', async () => 'behind');
    await vi.advanceTimersByTimeAsync(0);
    access.abandonWrites();
    await expect(running).rejects.toMatchObject(inTime('write'));
    expect(await behind).toBe('behind');
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
  });
});

describe('a lock', () => {
  test('is held until it is released', async () => {
    const lock = await access.acquire('id');
    expect(lock.isLease).toBe(false);
    const next = access.acquire('id');
    expect(await stateOf(next)).toBe('open');
    await lock.release();
    await (await next).release();
    expect(store.locks).toBe(0);
  });

  test('knows its lease', async () => {
    store.leaseMs = 6_000;
    const lock = await access.acquire('id');
    expect([lock.isLease, lock.holdMs()]).toEqual([true, 3_000]);
    expect(lock.limitTo(1_000).maySend).toBe(true);
    await lock.release();
  });

  test('of a store without locks is there at once, and is no lease', async () => {
    expect(access.hasLock).toBe(true);
    access = accessTo(withoutLock(store));
    expect(access.hasLock).toBe(false);
    const lock = await access.acquire('id');
    expect([lock.isLease, lock.limitTo(10_000).maySend]).toEqual([false, true]);
    await lock.release();
  });

  test.for<[what: string, lock: () => Promise<never>, error: object, isDown: boolean]>([
    ['rejects', () => Promise.reject(new Error('No')), { ...failure, cause: { message: 'No' } }, true],
    ['throws', throwing, { ...failure, cause: { message: 'No' } }, true],
    ['is refused by a store that is down', () => Promise.reject(down), down, true],
    ['is held by others for long', () => Promise.reject(locked), locked, false],
    [
      'ends without its work',
      async () => undefined as never,
      { ...failure, cause: { message: 'The lock did not run its work' } },
      true,
    ],
  ])('that %s cannot be had', async ([, lock, error, isDown]) => {
    store.lock = lock;
    await expect(access.acquire('id')).rejects.toMatchObject(error);
    expect(access.isDown).toBe(isDown);
  });

  test('is waited for up to 45 seconds, which says nothing of the store, and is not taken later', async () => {
    let late: () => Promise<unknown> = forever;
    store.lock = (_id, work) => {
      late = work;
      return forever();
    };
    expect(await settlesAfter(45_000, access.acquire('id'))).toMatchObject(inTime('lock'));
    expect(access.isDown).toBe(false);
    await expect(late()).rejects.toThrow('No caller waits for this lock any more');
  });

  test('that comes at the moment at which its caller gives up is released', async () => {
    const [giving, reason] = [new AbortController(), new ServiceUnavailableError('Enough')];
    let working: Promise<unknown> = forever();
    store.lock = (_id, work) => {
      const running = work();
      working = running;
      giving.abort(reason);
      return running;
    };
    await expect(access.acquire('id', giving.signal)).rejects.toBe(reason);
    expect(await stateOf(working)).toBe('done');
    expect(access.isDown).toBe(false);
  });

  test('whose release fails is no failure of the store; one that hangs is waited for two seconds', async () => {
    const inner = store.lock.bind(store);
    store.lock = async <T>(id: string, work: (lease?: HeldLease) => Promise<T>): Promise<T> => {
      await inner(id, work);
      throw new Error('not released');
    };
    await (await access.acquire('id')).release();
    expect(access.isDown).toBe(false);
    store.lock = async (id, work) => {
      await inner(id, work);
      return forever();
    };
    const lock = await access.acquire('id');
    expect(await settlesAfter(2_000, lock.release())).toBe('done');
  });
});

describe('the end of the process', () => {
  test('waits for a write, then for a lock', async () => {
    const writing = gate();
    const written = access.write('id', LIMITS, () => writing.opened);
    const lock = await access.acquire('id');
    const drained = access.drain();
    expect(await stateOf(drained)).toBe('open');
    writing.open();
    await written;
    expect(await stateOf(drained)).toBe('open');
    await lock.release();
    expect(await stateOf(drained)).toBe('done');
    await access.drain();
    expect(access.isDown).toBe(false);
  });

  test('waits for each of them for two seconds', async () => {
    access.write('id', { waitMs: 60_000, abandonMs: 60_000 }, forever).catch(() => undefined);
    const drained = access.drain();
    expect(await settlesAfter(2_000, drained)).toBe('done');
    expect(access.isDown).toBe(true);
    access = accessTo(store);
    await access.acquire('id');
    expect(await settlesAfter(2_000, access.drain())).toBe('done');
  });
});

function throwing(): never {
  throw new Error('No');
}
