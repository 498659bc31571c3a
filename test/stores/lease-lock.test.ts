import { type Lease, leaseLock } from 'passport-oauth-app/lease-lock';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type HeldLease, leaseMsOf } from '../../src/stores/token-store.js';
import { mayLeave } from '../support/may-leave.js';
import { timersOf } from './fixture.js';

const LEASE_MS = 1000;

/** A lease in memory, with the calls that it had. */
function memoryLease(): Lease & { takes: number; owner: string | undefined } {
  let endsAt = 0;
  return {
    takes: 0,
    owner: undefined,
    async take(_id, owner) {
      this.takes += 1;
      if (this.owner !== undefined && performance.now() < endsAt) return false;
      this.owner = owner;
      endsAt = performance.now() + LEASE_MS;
      return true;
    },
    async release(_id, owner) {
      if (this.owner === owner) this.owner = undefined;
    },
  };
}

const forever = (): Promise<never> => new Promise(() => undefined);

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test('gives a lock on when the lease of a holder that never ends is over', async () => {
  mayLeave(/#tails/);
  const lease = memoryLease();
  void leaseLock(lease, LEASE_MS)('id', forever);
  const next = leaseLock(lease, LEASE_MS)('id', async () => performance.now());
  const start = performance.now();
  await vi.advanceTimersByTimeAsync(LEASE_MS + 300);
  expect((await next) - start).toBeGreaterThanOrEqual(LEASE_MS);
});

test('rejects without running the work if the lock stays taken for the lease and five seconds more', async () => {
  const work = vi.fn(async () => undefined);
  const release = vi.fn(async () => undefined);
  const lock = leaseLock({ take: async () => false, release }, LEASE_MS);
  let waiting: Promise<unknown>[] = [];
  const timers = await timersOf(async () => {
    waiting = [lock('id', work), lock('id', work)].map((call) => call.catch((error: unknown) => error));
    await vi.advanceTimersByTimeAsync(LEASE_MS + 5000 - 1);
    expect(await Promise.race([...waiting, 'waiting'])).toBe('waiting');
    await vi.advanceTimersByTimeAsync(1);
  });
  const reasons = ['another process', 'work of this process'];
  expect(await Promise.all(waiting)).toMatchObject(
    reasons.map((reason) => ({
      ...{ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_LOCKED', status: 503 },
      message: `Timed out waiting for the grant's lock, held by ${reason}. The next request tries again.`,
    })),
  );
  expect(work).not.toHaveBeenCalled();
  expect(release).not.toHaveBeenCalled();
  expect(timers.filter(({ isPending }) => isPending)).toEqual([]);
});

test('rejects at once if the store of the lease fails, and releases a lease that may have been taken', async () => {
  const fault = new Error('no connection');
  const release = vi.fn(async () => undefined);
  const lock = leaseLock({ take: () => Promise.reject(fault), release }, LEASE_MS);
  await expect(lock('id', forever)).rejects.toBe(fault);
  expect(release).toHaveBeenCalledOnce();
});

test('gives up a store that does not answer, and releases a lease that it gives after all', async () => {
  const lease = memoryLease();
  const answers: (() => void)[] = [];
  const take = (id: string, owner: string): Promise<boolean> =>
    new Promise((resolve) => answers.push(() => resolve(lease.take(id, owner))));
  const release = vi.fn((id: string, owner: string) => lease.release(id, owner));
  const lock = leaseLock({ take, release }, LEASE_MS);
  const calls = [lock('id', forever), lock('id', forever)].map((call) => call.catch((error: unknown) => error));
  const late = { name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_TIMEOUT' };
  await vi.advanceTimersByTimeAsync(11_000);
  expect(await calls[0]).toMatchObject({
    ...late,
    message: 'The token store did not lock a grant within 11000 ms.',
  });
  // It has waited for its turn as long as it would for another process.
  expect(await calls[1]).toMatchObject({ code: 'ERR_TOKEN_STORE_LOCKED' });
  answers[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(release).toHaveBeenCalledTimes(2);
  expect(lease.owner).toBeUndefined();
  const next = lock('id', async () => 'worked');
  await vi.advanceTimersByTimeAsync(0);
  answers[1]?.();
  expect(await next).toBe('worked');
});

test('sends one of many waiters to ask, at growing intervals', async () => {
  const lease = memoryLease();
  await lease.take('id', 'somebody in another process');
  lease.takes = 0;
  const lock = leaseLock(lease, LEASE_MS);
  const all = Promise.all(Array.from({ length: 100 }, () => lock('id', async () => undefined)));
  await vi.advanceTimersByTimeAsync(LEASE_MS - 1);
  expect(lease.takes).toBeGreaterThan(4);
  expect(lease.takes).toBeLessThan(15);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  await all;
});

test('hands over within a process at once, in the order of the calls', async () => {
  const lock = leaseLock(memoryLease(), LEASE_MS);
  const order: number[] = [];
  let release = (): void => undefined;
  const first = lock(
    'id',
    () =>
      new Promise<void>((resolve) => {
        release = resolve;
      }),
  );
  const others = [1, 2, 3].map((name) => lock('id', async () => order.push(name)));
  await vi.advanceTimersByTimeAsync(300);
  release();
  // No timer runs any more: who waits is woken.
  await vi.advanceTimersByTimeAsync(0);
  await Promise.all([first, ...others]);
  expect(order).toEqual([1, 2, 3]);
});

test('passes over a caller that has given up, when its turn comes', async () => {
  const lock = leaseLock(memoryLease(), LEASE_MS);
  const working = lock('id', () => new Promise<void>((end) => setTimeout(end, LEASE_MS + 6000)));
  const givesUp = expect(lock('id', forever)).rejects.toThrow('held by work of this process');
  await vi.advanceTimersByTimeAsync(3000);
  const next = lock('id', async () => 'next');
  await vi.advanceTimersByTimeAsync(LEASE_MS + 3000);
  await Promise.all([working, givesUp]);
  expect(await next).toBe('next');
});

/** The times of the calls, from the first one on. Nothing of it is by chance but what `random` says. */
function timesOf(random: number): { readonly times: number[]; note(): void } {
  const [times, start] = [[] as number[], performance.now()];
  const chance = vi.spyOn(Math, 'random').mockReturnValue(random);
  onTestFinished(() => chance.mockRestore());
  return { times, note: () => void times.push(Math.round(performance.now() - start)) };
}

test.for([
  [0, [0, 20, 50, 95, 162, 262, 362]],
  [0.5, [0, 30, 75, 142, 243, 393, 543]],
] as const)('asks for a lease that is taken with growing pauses, of random length (%d)', async ([random, expected]) => {
  const { times, note } = timesOf(random);
  const take = async () => {
    note();
    return times.length === expected.length;
  };
  const locked = leaseLock({ take, release: async () => undefined }, LEASE_MS)('id', async () => 'locked');
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(await locked).toBe('locked');
  expect(times).toEqual(expected);
});

test.for([
  ['until it succeeds', 60_000, 3, [0, 50, 150]],
  ['until the lease has ended by itself', 1550, Number.POSITIVE_INFINITY, [0, 50, 150, 350, 750, 1550]],
  ['once a second at last', 3000, Number.POSITIVE_INFINITY, [0, 50, 150, 350, 750, 1550, 2550, 3550]],
] as const)('goes on releasing a lease %s, which keeps no process alive', async ([, leaseMs, attempts, expected]) => {
  const { times, note } = timesOf(0);
  // Throws at once, or rejects.
  const release = (): Promise<void> => {
    note();
    if (times.length >= attempts) return Promise.resolve();
    const error = new Error('no connection');
    if (times.length % 2 === 0) throw error;
    return Promise.reject(error);
  };
  const timers = await timersOf(async () => {
    await leaseLock({ take: async () => true, release }, leaseMs)('id', async () => undefined);
    await vi.advanceTimersByTimeAsync(60_000);
  });
  expect(times).toEqual(expected);
  // Those before wait for the turn, for the lease, and for the first attempt.
  expect(timers.slice(3).map(({ isKeeping }) => isKeeping)).toEqual(expected.slice(1).map(() => false));
});

test('tells the work of its lease: the length, the age on the clock that shows more, and whether it is held', async () => {
  let owned = '';
  const isHeld = vi.fn(async (_id: string, owner: string) => owner === owned);
  const wallClockIs = async (aheadMs: number, lease: Partial<Lease> = {}): Promise<HeldLease> => {
    const take: Lease['take'] = async (_id, owner) => {
      owned = owner;
      await new Promise((resolve) => setTimeout(resolve, 300));
      vi.setSystemTime(Date.now() + aheadMs);
      return true;
    };
    const locked = leaseLock({ take, release: async () => undefined, ...lease }, LEASE_MS)('id', async (held) => held);
    await vi.advanceTimersByTimeAsync(300);
    return await locked;
  };
  const steady = await wallClockIs(0, { isHeld });
  expect(steady).toMatchObject({ leaseMs: LEASE_MS, ageMs: 300 });
  expect(await steady.isHeld()).toBe(true);
  const last = await wallClockIs(500);
  expect(last.ageMs).toBe(800);
  expect(await steady.isHeld()).toBe(false);
  expect(isHeld).toHaveBeenCalledWith('id', expect.any(String));
  expect(await last.isHeld()).toBe(true);
  expect((await wallClockIs(-200)).ageMs).toBe(300);
});

test.for<[clock: string, pass: (ms: number) => unknown]>([
  ['the monotonic clock', (ms) => vi.advanceTimersByTimeAsync(ms)],
  ['the wall clock alone, as after a suspension', (ms) => vi.setSystemTime(Date.now() + ms)],
])('takes a lease of a store that cannot tell for held until its end by %s', async ([, pass]) => {
  const held = await leaseLock(memoryLease(), LEASE_MS)('id', async (lease) => lease);
  await pass(LEASE_MS - 1);
  expect(await held.isHeld()).toBe(true);
  await pass(1);
  expect(await held.isHeld()).toBe(false);
});

test('tells the length of the lease of its locks, and of no other function', () => {
  expect(leaseMsOf(leaseLock(memoryLease(), LEASE_MS))).toBe(LEASE_MS);
  for (const other of [undefined, async () => undefined]) expect(leaseMsOf(other)).toBeUndefined();
});

test('gives the result of work that ended although the lease cannot be given back', async () => {
  const gone = new Error('gone');
  const throwing = (): never => {
    throw gone;
  };
  for (const release of [() => Promise.reject(gone), throwing]) {
    const failing = leaseLock({ take: async () => true, release }, LEASE_MS);
    expect(await failing('id', async () => 'result')).toBe('result');
  }
  const hanging = leaseLock({ take: async () => true, release: forever }, LEASE_MS)('id', async () => 'result');
  await vi.advanceTimersByTimeAsync(1000);
  expect(await hanging).toBe('result');
});

test('does not work on a lease that ended before the answer came', async () => {
  const lease = memoryLease();
  const frozen: Lease = {
    take: async (id, owner) => {
      const taken = await lease.take(id, owner);
      if (lease.takes === 1) await new Promise((resolve) => setTimeout(resolve, LEASE_MS));
      return taken;
    },
    release: (id, owner) => lease.release(id, owner),
  };
  const start = performance.now();
  const began = leaseLock(frozen, LEASE_MS)('id', async () => performance.now() - start);
  await vi.advanceTimersByTimeAsync(LEASE_MS + 100);
  expect(await began).toBeGreaterThan(LEASE_MS);
  expect(lease.takes).toBe(2);
});

test('takes a lease again that has ended by the wall clock alone, as after a suspension', async () => {
  const lease = memoryLease();
  const take: Lease['take'] = async (id, owner) => {
    const isTaken = await lease.take(id, owner);
    if (lease.takes === 1) vi.setSystemTime(Date.now() + LEASE_MS);
    return isTaken;
  };
  const lock = leaseLock({ take, release: (id, owner) => lease.release(id, owner) }, LEASE_MS);
  const work = lock('id', async () => lease.takes);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(await work).toBe(2);
});

test('takes a lease again if the wall clock was set back before the answer came: its age is not known', async () => {
  const lease = memoryLease();
  const lock = leaseLock(
    {
      take: async (id, owner) => {
        const isTaken = await lease.take(id, owner);
        if (lease.takes === 1) vi.setSystemTime(Date.now() - 3_600_000);
        return isTaken;
      },
      release: (id, owner) => lease.release(id, owner),
    },
    LEASE_MS,
  );
  const work = lock('id', async () => lease.takes);
  await vi.advanceTimersByTimeAsync(LEASE_MS);
  expect(await work).toBe(2);
});

test('throws for an argument that is wrong, and names it', () => {
  const lease = memoryLease();
  const wrong: readonly unknown[] = [undefined, {}, { take: lease.take }, { ...lease, isHeld: true }];
  for (const each of wrong)
    expect(() => leaseLock(each as Lease, LEASE_MS)).toThrow(
      /^lease: expected an object with the methods take and release/,
    );
  for (const leaseMs of [undefined, Number.NaN, 30, 600_001, '30000']) {
    const call = () => leaseLock(lease, leaseMs as number);
    expect(call).toThrow(/^leaseMs: expected a number of milliseconds from 1000 to 600000, got/);
    expect(call).toThrow(expect.objectContaining({ name: 'ConfigurationError', option: 'leaseMs' }));
  }
});
