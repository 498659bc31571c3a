import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BackgroundRefreshes } from '../../src/refresh/background-refreshes.js';
import { TestClock } from '../support/test-clock.js';

let clock: TestClock;
let ahead: BackgroundRefreshes;
/** Ids in the order in which their refreshes began, and how to end each. */
let began: string[];
let ends: Map<string, { resolve(): void; reject(error: Error): void }>;

beforeEach(() => {
  vi.useFakeTimers();
  clock = new TestClock();
  ahead = new BackgroundRefreshes(clock.now);
  began = [];
  ends = new Map();
});
afterEach(() => void vi.useRealTimers());

const start = (id: string) => () => {
  began.push(id);
  return new Promise<void>((resolve, reject) => ends.set(id, { resolve, reject }));
};
const request = (...ids: string[]) => {
  for (const id of ids) ahead.request(id, start(id));
};
const many = (count: number) => Array.from({ length: count }, (_none, index) => `${index}`);
/** Ends what runs, until nothing waits; how many began in each tenth of a second. */
async function runOut(): Promise<number[]> {
  const counts: number[] = [];
  while (ahead.size > 0) {
    const before = began.length;
    for (const { resolve } of ends.values()) resolve();
    await vi.advanceTimersByTimeAsync(100);
    counts.push(began.length - before);
  }
  return counts;
}

it('starts one that comes alone at once', () => {
  request('a');
  expect(began).toEqual(['a']);
});

it('runs 32 at once, and all others in another order, spread out', async () => {
  const ids = many(1_000);
  request(...ids, ...ids.slice(500));
  expect(began).toEqual(ids.slice(0, 32));
  const counts = await runOut();
  expect(began).toHaveLength(1_000);
  expect(new Set(began).size).toBe(1_000);
  expect(began).not.toEqual(ids);
  // 32 places, each with a pause of 0.1 s on average.
  expect(Math.max(...counts)).toBeLessThan(128);
  expect(counts.length).toBeGreaterThan(20);
  expect(ahead.size).toBe(0);
});

it('does not start one that somebody has seen to meanwhile', async () => {
  request(...many(32));
  ahead.request('late', () => undefined);
  await runOut();
  expect(began).not.toContain('late');
  request(...many(64).slice(32));
  expect(began).toHaveLength(64);
});

it('leaves one that failed alone for a growing moment', async () => {
  for (const [pauseS, times] of [
    [0.9, 1],
    [0.2, 2],
    [1.8, 2],
    [0.3, 3],
  ] as const) {
    request('a');
    ends.get('a')?.reject(new Error('no'));
    await vi.advanceTimersByTimeAsync(0);
    clock.advance(pauseS);
    request('a');
    expect(began).toHaveLength(times);
    ends.get('a')?.reject(new Error('no'));
    await vi.advanceTimersByTimeAsync(0);
  }
});

it('forgets what it is told to, and all that waits when it is closed', async () => {
  request(...many(40));
  ahead.forget('35');
  expect(ahead.size).toBe(39);
  ahead.close();
  await runOut();
  expect(began).toHaveLength(32);
});
