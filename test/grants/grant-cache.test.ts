import { expect, it } from 'vitest';
import { GrantCache } from '../../src/grants/grant-cache.js';
import { grantOf } from '../refresh/fixture.js';

const grant = grantOf('a');

it('gives a grant for as long as its time to live, and no longer', () => {
  const cache = new GrantCache({ max: 10, ttlMs: 1_000 });
  cache.set('id', grant, 0);
  expect(cache.get('id', 999)).toBe(grant);
  expect(cache.get('id', 1_000)).toBeUndefined();
});

it('believes nothing that was seen in the future: the clock was set back', () => {
  const cache = new GrantCache({ max: 10, ttlMs: 1_000 });
  cache.set('id', grant, 5_000);
  expect(cache.get('id', 4_999)).toBeUndefined();
});

it('still knows what it saw last after that, unless it was told to forget it', () => {
  const cache = new GrantCache({ max: 10, ttlMs: 1_000 });
  cache.set('id', grant, 0);
  expect(cache.get('id', 9_000)).toBeUndefined();
  expect(cache.last('id')).toBe(grant);
  cache.delete('id');
  expect(cache.last('id')).toBeUndefined();
});

it('with a time to live of 0 gives nothing at all', () => {
  const cache = new GrantCache({ max: 10, ttlMs: 0 });
  cache.set('id', grant, 0);
  expect(cache.get('id', 0)).toBeUndefined();
  expect(cache.last('id')).toBeUndefined();
});

it('holds as many grants as it may, and lets the one go that was seen longest ago', () => {
  const cache = new GrantCache({ max: 2, ttlMs: 1_000 });
  cache.set('a', grant, 0);
  cache.set('b', grant, 1);
  cache.set('a', grant, 2);
  cache.set('c', grant, 3);
  expect([cache.size, cache.get('a', 3), cache.get('b', 3), cache.get('c', 3)]).toEqual([2, grant, undefined, grant]);
});
