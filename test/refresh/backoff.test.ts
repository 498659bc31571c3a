import { expect, it } from 'vitest';
import { Backoffs } from '../../src/refresh/backoff.js';

it('doubles from 1 s to 30 s, and begins anew once cleared', () => {
  const backOffs = new Backoffs();
  let now = 0;
  for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
    expect(backOffs.lengthen('a', now)).toBe(seconds * 1_000);
    expect(backOffs.remainingMs('a', now + seconds * 1_000 - 1)).toBe(1);
    now += seconds * 1_000;
    expect(backOffs.remainingMs('a', now)).toBe(0);
  }
  backOffs.clear('a');
  expect(backOffs.lengthen('a', now)).toBe(1_000);
});

it('grows once for failures of one moment', () => {
  const backOffs = new Backoffs();
  for (let index = 0; index < 100; index++) backOffs.lengthen('a', index);
  expect(backOffs.remainingMs('a', 100)).toBeLessThanOrEqual(1_000);
  expect(backOffs.lengthen('a', 2_000)).toBe(2_000);
});

it('heeds what the service asked for, within 1 s and 30 s, and never shortens', () => {
  const backOffs = new Backoffs();
  expect(backOffs.lengthen('a', 0, 0)).toBe(1_000);
  expect(backOffs.lengthen('b', 0, 12_345)).toBe(12_345);
  expect(backOffs.lengthen('b', 0, 2_000)).toBe(12_345);
  expect(backOffs.lengthen('c', 0, Number.POSITIVE_INFINITY)).toBe(30_000);
});

it('is over when the clock was set back by more than it lasts', () => {
  const backOffs = new Backoffs();
  backOffs.lengthen('a', 100_000_000);
  expect(backOffs.remainingMs('a', 1)).toBe(0);
});

it('forgets what ended long ago, and the oldest of too many', () => {
  const backOffs = new Backoffs();
  for (let index = 0; index < 10_100; index++) backOffs.lengthen(`${index}`, 0);
  expect(backOffs.size).toBe(10_000);
  backOffs.lengthen('new', 100_000);
  expect(backOffs.size).toBe(1);
});
