import { beforeEach, expect, test, vi } from 'vitest';
import { Deadlines, type Expiring } from '../../src/http/deadlines.js';
import { stopTime } from '../support/stop-time.js';

beforeEach(stopTime);

interface Probe extends Expiring {
  expired: number;
}

function probe(): Probe {
  return {
    expiresAt: 0,
    expired: 0,
    expire() {
      this.expired++;
    },
  };
}

/** Two that expire after ten seconds. */
function waiting() {
  const [deadlines, answered, silent] = [new Deadlines(), probe(), probe()];
  for (const entry of [answered, silent]) deadlines.set(entry, 10_000);
  return { deadlines, answered, silent };
}

test('a thousand that wait share one timer, and each ends in time', () => {
  const deadlines = new Deadlines();
  const entries = Array.from({ length: 1000 }, probe);
  for (const [index, entry] of entries.entries()) deadlines.set(entry, 100 + index);
  expect(vi.getTimerCount()).toBe(1);
  for (let now = 20; now <= 1200; now += 20) {
    vi.advanceTimersByTime(20);
    expect(entries.every(({ expired }, index) => (expired === 0) === now < 100 + index || now < 120 + index)).toBe(
      true,
    );
  }
  expect(entries.every(({ expired }) => expired === 1)).toBe(true);
  expect([deadlines.size, vi.getTimerCount()]).toEqual([0, 0]);
});

test('a shorter one that comes later is not kept waiting by a longer one', () => {
  const [deadlines, long, short] = [new Deadlines(), probe(), probe()];
  deadlines.set(long, 10_000);
  deadlines.set(short, 50);
  vi.advanceTimersByTime(70);
  expect([long.expired, short.expired]).toEqual([0, 1]);
  vi.advanceTimersByTime(10_000);
  expect(long.expired).toBe(1);
});

test('more than 2^31 ms, and no end at all, do not end at once', () => {
  const [deadlines, far, never] = [new Deadlines(), probe(), probe()];
  deadlines.set(far, 2 ** 32);
  deadlines.set(never, Infinity);
  vi.advanceTimersByTime(2 ** 31);
  expect([far.expired, never.expired]).toEqual([0, 0]);
  vi.advanceTimersByTime(2 ** 31 + 100);
  expect([far.expired, never.expired]).toEqual([1, 0]);
});

test('an extended one ends later, and one that adds another while it ends does not disturb the rest', () => {
  const [deadlines, first, second, third] = [new Deadlines(), probe(), probe(), probe()];
  deadlines.set(first, 50);
  deadlines.set(second, 60);
  first.expire = () => deadlines.set(third, 60);
  vi.advanceTimersByTime(40);
  deadlines.set(second, 100);
  vi.advanceTimersByTime(60);
  expect([second.expired, third.expired]).toEqual([0, 0]);
  vi.advanceTimersByTime(60);
  expect([second.expired, third.expired]).toEqual([1, 1]);
});

test('a response that has arrived by the deadline, and was not read yet, is read before its request expires', () => {
  const { deadlines, answered, silent } = waiting();
  vi.advanceTimersByTime(10_000);
  // The sockets are read after the timers of a turn.
  deadlines.remove(answered);
  vi.advanceTimersByTime(100);
  expect([answered.expired, silent.expired]).toEqual([0, 1]);
});

test('after a suspension, a response that has arrived meanwhile is read before its request expires', () => {
  const { deadlines, answered, silent } = waiting();
  const now = performance.now();
  const suspended = vi.spyOn(performance, 'now').mockReturnValue(now + 40_000);
  vi.advanceTimersByTime(10_000);
  expect([answered.expired, silent.expired]).toEqual([0, 0]);
  deadlines.remove(answered);
  suspended.mockReturnValue(now + 40_020);
  vi.advanceTimersByTime(20);
  expect([answered.expired, silent.expired]).toEqual([0, 1]);
  suspended.mockRestore();
});

test('a process that is suspended again before it has read a response reads it then, but not without end', () => {
  const { deadlines, answered, silent } = waiting();
  const now = performance.now();
  const suspended = vi.spyOn(performance, 'now').mockReturnValue(now + 40_000);
  vi.advanceTimersByTime(10_000);
  suspended.mockReturnValue(now + 80_000);
  vi.advanceTimersByTime(20);
  expect([answered.expired, silent.expired]).toEqual([0, 0]);
  deadlines.remove(answered);
  // However busy the event loop is, the others expire in the end.
  for (let times = 3; times <= 6; times++) {
    suspended.mockReturnValue(now + times * 40_000);
    vi.advanceTimersByTime(20);
  }
  expect([answered.expired, silent.expired]).toEqual([0, 1]);
  suspended.mockRestore();
});

test('one that expires may end another that is due as well, or give it more time', () => {
  const [deadlines, first, ended, extended, last] = [new Deadlines(), probe(), probe(), probe(), probe()];
  first.expire = () => {
    deadlines.remove(ended);
    deadlines.set(extended, 100);
  };
  for (const entry of [first, ended, extended, last]) deadlines.set(entry, 100);
  vi.advanceTimersByTime(120);
  expect([ended.expired, extended.expired, last.expired, deadlines.size]).toEqual([0, 0, 1, 1]);
  vi.advanceTimersByTime(120);
  expect([ended.expired, extended.expired, deadlines.size]).toEqual([0, 1, 0]);
});
