import { expect, it } from 'vitest';
import { freshness } from '../../src/refresh/freshness.js';
import { grantOf } from './fixture.js';

const WINDOW = { leewayMs: 30_000, aheadMs: 300_000 };
const EXPIRY = 10_000_000;

const with_ = (changes: object) => grantOf('a', { expiresAt: EXPIRY, ...changes });
const left = (ms: number, changes: object = {}) => freshness(with_(changes), EXPIRY - ms, WINDOW);

it('is expired within the leeway, due within the time ahead, and fresh before', () => {
  expect(left(-1)).toBe('expired');
  expect(left(0)).toBe('expired');
  expect(left(30_000)).toBe('expired');
  expect(left(30_001)).toBe('due');
  expect(left(300_000)).toBe('due');
  expect(left(300_001)).toBe('fresh');
});

it.each([
  [600_000, 0.5],
  [60_000, 0.05],
  [1_000, 1 / 1200],
])('shrinks both in proportion for a token that lives %i ms', (lifetimeMs, share) => {
  expect(left(30_000 * share, { lifetimeMs })).toBe('expired');
  expect(left(30_000 * share + 1, { lifetimeMs })).toBe('due');
  expect(left(300_000 * share, { lifetimeMs })).toBe('due');
  expect(left(300_000 * share + 1, { lifetimeMs })).toBe('fresh');
});

it('leaves half of a token\u2019s life to the requests, however long the leeway is', () => {
  const grant = with_({});
  const window = { leewayMs: 86_400_000, aheadMs: 0 };
  expect(freshness(grant, EXPIRY - grant.lifetimeMs / 2 - 1, window)).toBe('fresh');
  expect(freshness(grant, EXPIRY - grant.lifetimeMs / 2, window)).toBe('expired');
});

it('leaves a token that a refresh has just given alone, however long the time ahead is', () => {
  const window = { leewayMs: 0, aheadMs: 86_400_000 };
  const grant = with_({ refreshes: 1 });
  expect(freshness(grant, EXPIRY - grant.lifetimeMs, window)).toBe('fresh');
  expect(freshness(grant, EXPIRY - grant.lifetimeMs * 0.89, window)).toBe('due');
});

it('takes a token whose expiry lies beyond its lifetime, by a clock that was set back, for fresh', () => {
  expect(left(3 * 7_200_000)).toBe('fresh');
});
