import { inspect } from 'node:util';
import { memoryTokenStore } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { asStoredGrant, isMark, parseGrant, ttlMsOf } from '../../src/stores/token-store.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed' };

test.for<[what: string, value: unknown]>([
  ['nothing', undefined],
  ['null', null],
  ['a text', 'sealed'],
  ['a function', Object.assign(() => undefined, grant)],
  ['a list', []],
  ['an object without a version', { expiresAt: 2, sealed: 'sealed' }],
  ['one with a version that is a text', { ...grant, version: '1' }],
  ['one with a version that is a fraction', { ...grant, version: 1.5 }],
  ['one with a version that is too large', { ...grant, version: 2 ** 53 }],
  ['one without an end', { version: 1, sealed: 'sealed' }],
  ['one with an end that is a text', { ...grant, expiresAt: '2' }],
  ['one without tokens', { version: 1, expiresAt: 2 }],
  ['one with tokens that are no text', { ...grant, sealed: {} }],
])('%s is no stored grant', ([, value]) => {
  expect(asStoredGrant(value)).toBeUndefined();
  expect(parseGrant(JSON.stringify(value) ?? '')).toBeUndefined();
});

test('a stored grant may have further fields, and is parsed from its JSON', () => {
  for (const each of [grant, { ...grant, version: 2 ** 53 - 1, more: [1] }]) {
    expect(asStoredGrant(each)).toBe(each);
    expect(parseGrant(JSON.stringify(each))).toEqual(each);
  }
  expect(parseGrant(JSON.stringify(grant).slice(1))).toBeUndefined();
});

test.for<[id: string, isItsMark: boolean, ttl: number, ms: number]>([
  ['oauth-app+id', false, 3_600.5, 3_600_500],
  ['oauth-app+id', false, 1.0001, 1_001],
  ['oauth-app+login:id', false, 3_600, 3_600_000],
  ['login:id', true, 3_600, 720_000],
  ['login:id', true, 100, 100_000],
  ['limit:id', true, 3_600, 60_000],
  ['limit:id', true, 30, 30_000],
  ['frame:id', true, 3_600, 120_000],
])('what has the id %s (a mark: %s) is kept, of %d seconds, for %d ms', ([id, isItsMark, ttl, ms]) => {
  expect([isMark(id), ttlMsOf(id, ttl)]).toEqual([isItsMark, ms]);
});

describe('a store in memory', () => {
  // The rest is in the conformance checks: test/stores/conformance.test.ts.
  test('shows no grant when it is inspected or serialized', async () => {
    const store = memoryTokenStore();
    await store.set('id', { ...grant, sealed: 'top-secret' });
    expect(inspect(store, { depth: 10, showHidden: true }) + JSON.stringify(store)).not.toContain('top-secret');
  });

  test('tells each watcher of what is changed for others, and of nothing else', async () => {
    const store = memoryTokenStore();
    const told: [id: string, version?: number | undefined][] = [];
    const watcher = (...change: [id: string, version?: number]) => void told.push(change);
    const stops = [store.watch(watcher), store.watch(watcher)];
    for (const [change, ...expected] of [
      [() => store.set('id', grant), 'id', 1],
      [() => store.add('new', { ...grant, version: 5 }), 'new', 5],
      [() => store.update('id', { ...grant, sealed: 'ended' }, 1), 'id', undefined],
      [() => store.delete('new', 5), 'new', undefined],
      [() => store.delete('id'), 'id', undefined],
    ] as const) {
      await change();
      expect(told.splice(0)).toEqual([expected, expected]);
    }
    await store.set('id', grant);
    told.length = 0;
    await store.add('id', grant);
    await store.update('id', { ...grant, version: 2 }, 1);
    await store.update('id', grant, 1);
    await store.delete('id', 1);
    await store.delete('none');
    expect(told).toEqual([]);
    stops[0]?.();
    await store.delete('id', 2);
    expect(told).toEqual([['id', undefined]]);
  });
});
