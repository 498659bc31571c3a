import { beforeEach, describe, expect, test, vi } from 'vitest';
import { HeldLock, shortestLeaseMs } from '../../src/stores/held-lock.js';
import type { HeldLease } from '../../src/stores/token-store.js';
import { gate } from '../refresh/fixture.js';
import { stopTime } from '../support/stop-time.js';

let wallMs: number;

beforeEach(() => {
  stopTime();
  wallMs = 1_000_000;
});

/** A lock of a store whose lease has this length and age. */
function held(leaseMs: number, ageMs = 0, isHeld = async () => true): HeldLock {
  return lockOf({ leaseMs, ageMs, isHeld });
}

function lockOf(lease: HeldLease | undefined | 'none', end = async () => {}): HeldLock {
  return new HeldLock(lease, () => wallMs, end);
}

/** Moves both clocks on. */
function pass(ms: number): void {
  vi.advanceTimersByTime(ms);
  wallMs += ms;
}

test('a lease has five seconds beyond one request, at the least', () => {
  expect(shortestLeaseMs(10_000)).toBe(15_000);
});

test.for<[what: string, lease: HeldLease | undefined | 'none', isLease: boolean, sendMs: number, holdMs: number[]]>([
  ['with a lease', { leaseMs: 30_000, ageMs: 0, isHeld: async () => true }, true, 17_000, [15_000, 7_000, 0]],
  ['of which nothing is known', undefined, false, 17_000, [15_000, 7_000, 0]],
  ['that does not end', 'none', false, Number.POSITIVE_INFINITY, [15_000, 15_000, 15_000]],
  ['just long enough', { leaseMs: 15_000, ageMs: 0, isHeld: async () => true }, true, 2_000, [12_000, 0, 0]],
  ['too short for a request', { leaseMs: 4_000, ageMs: 0, isHeld: async () => true }, true, 2_000, [2_000, 0, 0]],
])('a lock %s leaves time for a request and for saves', async ([, lease, isLease, sendMs, holdMs]) => {
  const lock = lockOf(lease);
  expect([lock.isLease, await lock.isHeld()]).toEqual([isLease, true]);
  expect(lock.limitTo(10_000).maySend).toBe(true);
  const hold = [lock.holdMs()];
  pass(Math.min(sendMs, 20_000));
  expect(lock.maySend).toBe(true);
  if (sendMs < 20_000) {
    pass(1);
    expect(lock.maySend).toBe(false);
    pass(19_999 - sendMs);
  }
  hold.push(lock.holdMs());
  pass(10_000);
  hold.push(lock.holdMs());
  expect(hold).toEqual(holdMs);
});

describe('the age of a lock', () => {
  test('counts from the moment at which it was asked for, on each clock', () => {
    const lock = held(30_000, 10_000).limitTo(10_000);
    expect(lock.holdMs()).toBe(15_000);
    pass(7_000);
    expect([lock.maySend, lock.holdMs()]).toEqual([true, 10_000]);
    pass(1);
    expect(lock.maySend).toBe(false);
  });

  test('may be of no matter until a limit is known', () => {
    const lock = held(30_000);
    expect(lock.maySend).toBe(true);
    pass(1);
    expect(lock.maySend).toBe(false);
  });

  test.for<[what: string, monotonicMs: number, wall: number, limit: [number, number], maySend: boolean]>([
    ['below the limit of both', 5_000, 5_000, [5_000, 0], true],
    ['beyond it by the monotonic clock', 5_001, 5_000, [5_000, 0], false],
    ['beyond it by the wall clock', 5_000, 5_001, [5_000, 0], false],
    ['beyond it by a wall clock that does not count', 5_000, 90_000, [5_000, Number.POSITIVE_INFINITY], true],
    ['beyond what the lease leaves', 17_001, 17_000, [20_000, Number.POSITIVE_INFINITY], false],
    ['less by a wall clock that NTP has set', 5_000, 4_000, [5_000, 0], true],
    ['not known, since the wall clock was set back', 5_000, 3_999, [5_000, 0], false],
    ['not known, where the wall clock does not count', 5_000, -90_000, [5_000, Number.POSITIVE_INFINITY], true],
  ])('is %s', ([, monotonicMs, wall, [ageMs, wallAgeMs], maySend]) => {
    const lock = held(30_000).limitTo(10_000, { ageMs, wallAgeMs });
    vi.advanceTimersByTime(monotonicMs);
    wallMs += wall;
    expect(lock.maySend).toBe(maySend);
  });
});

test('a lock asks its store whether it is held', async () => {
  expect(await held(30_000, 0, async () => false).isHeld()).toBe(false);
  const fault = new Error('no connection');
  await expect(held(30_000, 0, () => Promise.reject(fault)).isHeld()).rejects.toBe(fault);
});

test('a release waits for the store, but not for what the lock is held for, also if that fails or comes late', async () => {
  const [ending, first, second] = [gate(), gate(), gate()];
  const calls: string[] = [];
  const lock = lockOf('none', async () => {
    calls.push('end');
    await ending.opened;
  }).limitTo(10_000);
  void lock.release().then(() => calls.push('released'));
  await vi.advanceTimersByTimeAsync(0);
  expect([calls, lock.maySend]).toEqual([['end'], false]);
  ending.open();
  await vi.advanceTimersByTimeAsync(0);
  expect(calls).toEqual(['end', 'released']);

  const end = vi.fn(async () => undefined);
  const holding = lockOf('none', end).limitTo(10_000);
  holding.holdUntil(first.opened.then(() => Promise.reject(new Error('not saved'))));
  await holding.release();
  holding.holdUntil(second.opened);
  first.open();
  await vi.advanceTimersByTimeAsync(0);
  expect([end.mock.calls.length, holding.maySend]).toEqual([0, true]);
  second.open();
  await vi.advanceTimersByTimeAsync(0);
  expect([end.mock.calls.length, holding.maySend]).toEqual([1, false]);
});
