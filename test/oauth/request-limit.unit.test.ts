import { describe, expect, test } from 'vitest';
import { RequestLimit } from '../../src/oauth/request-limit.js';

const TIMEOUT_MS = 10_000;

/** Has as many answers come as decide a round. */
function round(limit: RequestLimit, ms: number | readonly number[], isFull = true): number {
  const { round: sentIn, value } = limit;
  for (let answer = 0; answer < value / 2; answer += 1)
    limit.answered(sentIn, typeof ms === 'number' ? ms : (ms[answer % ms.length] ?? 0), isFull);
  return Math.round(limit.value);
}

describe('the number of requests at once', () => {
  test('doubles while answers are as quick as the first ones, then halves, and grows by its root', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    expect([100, 100, 240, 260].map((ms) => round(limit, ms))).toEqual([32, 64, 128, 64]);
    expect([100, 249, 251].map((ms) => round(limit, ms))).toEqual([72, 80, 40]);
  });

  test('ends at 192, and stays where no request waits', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    expect([1, 1, 1, 1, 1].map((ms) => round(limit, ms))).toEqual([32, 64, 128, 192, 192]);
    const idle = new RequestLimit(TIMEOUT_MS);
    expect([1, 1].map((ms) => round(idle, ms, false))).toEqual([16, 16]);
  });

  test('does not follow single answers: the median counts', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    round(limit, 100);
    expect(round(limit, [100, 100, 9_000])).toBe(64);
    expect(round(limit, [9_000, 9_000, 100])).toBe(32);
  });

  test('grows while slow answers stay as slow as they are, and shrinks as they come near the time limit', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    expect([3_000, 3_000, 3_000].map((ms) => round(limit, ms))).toEqual([32, 64, 128]);
    expect(round(limit, 4_000)).toBe(64);
  });

  test('is not lowered below 16 by requests that get no answer', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    round(limit, 100);
    for (let times = 0; times < 5; times += 1) limit.unanswered(limit.round);
    expect(limit.value).toBe(16);
    limit.refused(limit.round);
    limit.unanswered(limit.round);
    expect(limit.value).toBe(8);
  });

  test('comes back to 16 after refusals though no request waits', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    for (let times = 0; times < 5; times += 1) limit.refused(limit.round);
    for (let times = 0; times < 20; times += 1) round(limit, 100, false);
    expect(limit.value).toBeGreaterThanOrEqual(16);
  });

  test('stays at 16 for slow answers, and grows again if the endpoint is slower than it was', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    expect([100, 400, 400].map((ms) => round(limit, ms))).toEqual([32, 16, 16]);
    expect([400, 400, 400].map((ms) => round(limit, ms))).toEqual([32, 64, 128]);
  });

  test('is halved once by all refusals of requests that were sent together, down to one', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    const sentIn = limit.round;
    for (let refusal = 0; refusal < 5; refusal += 1) limit.refused(sentIn);
    expect(limit.value).toBe(8);
    for (let refusal = 0; refusal < 5; refusal += 1) limit.refused(limit.round);
    expect(limit.value).toBe(1);
    expect(round(limit, 100)).toBe(2);
  });

  test('learns nothing from answers to requests that were sent before it changed', () => {
    const limit = new RequestLimit(TIMEOUT_MS);
    const sentIn = limit.round;
    limit.refused(sentIn);
    for (let answer = 0; answer < 50; answer += 1) limit.answered(sentIn, 100, true);
    expect(limit.value).toBe(8);
  });
});
