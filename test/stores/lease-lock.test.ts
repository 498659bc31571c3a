import { type Lease, leaseLock } from 'passport-oauth-app/lease-lock';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';

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
  const lease = memoryLease();
  void leaseLock(lease, LEASE_MS)('id', forever);
  const next = leaseLock(lease, LEASE_MS)('id', async () => performance.now());
  const start = performance.now();
  await vi.advanceTimersByTimeAsync(LEASE_MS + 300);
  expect((await next) - start).toBeGreaterThanOrEqual(LEASE_MS);
});

test('rejects without running the work if the lock stays taken for the lease and five seconds more', async () => {
  const work = vi.fn(async () => undefined);
  const lock = leaseLock({ ...memoryLease(), take: async () => false }, LEASE_MS);
  const waiting = [lock('id', work), lock('id', work)].map((call) => call.catch((error: unknown) => error));
  await vi.advanceTimersByTimeAsync(LEASE_MS + 5000 - 1);
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  await vi.advanceTimersByTimeAsync(1);
  for (const error of await Promise.all(waiting)) {
    expect(error).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_LOCKED', status: 503 });
  }
  expect(work).not.toHaveBeenCalled();
  expect(vi.getTimerCount()).toBe(0);
});

test('rejects at once if the store of the lease fails, and releases a lease that may have been taken', async () => {
  const fault = new Error('no connection');
  const release = vi.fn(async () => undefined);
  const lock = leaseLock({ take: () => Promise.reject(fault), release }, LEASE_MS);
  await expect(lock('id', forever)).rejects.toBe(fault);
  expect(release).toHaveBeenCalledOnce();
});

test('sends one of many waiters to ask, at growing intervals', async () => {
  const lease = memoryLease();
  await lease.take('id', 'somebody in another process');
  lease.takes = 0;
  const lock = leaseLock(lease, LEASE_MS);
  const all = Promise.all(Array.from({ length: 100 }, () => lock('id', async () => undefined)));
  await vi.advanceTimersByTimeAsync(LEASE_MS);
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

test('gives the result of work that ended although the lease cannot be given back', async () => {
  const rejecting = leaseLock({ take: async () => true, release: () => Promise.reject(new Error('gone')) }, LEASE_MS);
  expect(await rejecting('id', async () => 'result')).toBe('result');
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
