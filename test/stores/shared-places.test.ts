import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fairShares, SharedPlaces } from '../../src/stores/shared-places.js';

/** Processes that share the 20 places of each account over a store. */
function processes(count: number, tokenStore: TokenStore = memoryTokenStore()): SharedPlaces[] {
  const create = () => new SharedPlaces({ max: 20, namespace: 'oauth-app.service', store: () => tokenStore });
  return Array.from({ length: count }, create);
}

/** The store with all ids that were written. */
function watched(): { readonly tokenStore: Required<TokenStore>; readonly ids: Set<string> } {
  const ids = new Set<string>();
  const tokenStore = memoryTokenStore();
  const { add } = tokenStore;
  return { ids, tokenStore: { ...tokenStore, add: (id, grant) => add(id, grant).finally(() => ids.add(id)) } };
}

describe('fair shares of 20 places', () => {
  test.for<[number[], number[]]>([
    [[1], [20]],
    [[100], [20]],
    [
      [1, 1],
      [10, 10],
    ],
    [
      [100, 100, 100, 100],
      [5, 5, 5, 5],
    ],
    [
      [2, 100],
      [2, 18],
    ],
    [
      [100, 3, 100],
      [8, 3, 9],
    ],
    [
      [0, 30],
      [0, 20],
    ],
  ])('for processes that want %j are %j', ([wanted, expected]) => {
    const holdings = wanted.map((each, index) => [
      `process-${index}`,
      { beat: 1, places: 0, wanted: each, turn: index },
    ]);
    const shares = fairShares(Object.fromEntries(holdings), 20);
    const byProcess = wanted.map((_each, index) => shares[`process-${index}`] ?? 0);
    expect([...byProcess].sort()).toEqual([...expected].sort());
    expect(byProcess.reduce((sum, each) => sum + each, 0)).toBe(20);
  });

  test('leave nobody more than the places when there are more processes', () => {
    const holdings = Array.from({ length: 30 }, (_, index) => [
      `p${index}`,
      { beat: 1, places: 0, wanted: 9, turn: index },
    ]);
    const shares = Object.values(fairShares(Object.fromEntries(holdings), 20));
    expect([shares.length, shares.reduce((sum, each) => sum + each, 0), Math.max(...shares)]).toEqual([30, 20, 1]);
  });
});

describe('the places of an account', () => {
  test('are all for one process; a second gets its part when the first has given it back', async () => {
    const [first, second] = processes(2) as [SharedPlaces, SharedPlaces];
    expect(await first.renew('a', 1, 1)).toEqual({ places: 20, isSettled: true });
    expect(await second.renew('a', 50, 0)).toEqual({ places: 0, isSettled: false });
    // Of its 20 requests 15 still run: it starts none, and gives back what is free.
    expect(await first.renew('a', 50, 15)).toEqual({ places: 10, isSettled: false });
    expect(await second.renew('a', 50, 0)).toEqual({ places: 5, isSettled: false });
    expect(await first.renew('a', 50, 10)).toEqual({ places: 10, isSettled: true });
    expect(await second.renew('a', 50, 5)).toEqual({ places: 10, isSettled: true });
    await first.giveBack('a');
    expect(await second.renew('a', 50, 10)).toEqual({ places: 20, isSettled: true });
    // Another account has places of its own.
    expect(await first.renew('b', 1, 0)).toEqual({ places: 20, isSettled: true });
  });

  test('come back from a process that has ended without a word, after three seconds', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const [dead, alive] = processes(2) as [SharedPlaces, SharedPlaces];
    await dead.renew('a', 50, 20);
    expect(await alive.renew('a', 50, 0)).toMatchObject({ places: 0 });
    vi.advanceTimersByTime(2_900);
    expect(await alive.renew('a', 50, 0)).toMatchObject({ places: 0 });
    vi.advanceTimersByTime(200);
    expect(await alive.renew('a', 50, 0)).toEqual({ places: 20, isSettled: true });
  });

  test('are never held twice, however many processes ask at once', async () => {
    const all = processes(8);
    const shares = await Promise.all(all.map((each) => each.renew('a', 50, 0)));
    expect(shares.reduce((sum, { places }) => sum + places, 0)).toBeLessThanOrEqual(20);
  });

  test('leave nothing in the store when all are given back, and stand under ids of their own', async () => {
    const { tokenStore, ids } = watched();
    const all = processes(3, tokenStore);
    await Promise.all(all.map((each) => each.renew('account of Ada', 5, 0)));
    await Promise.all(all.map((each) => each.giveBack('account of Ada')));
    const [id = ''] = ids;
    expect([...ids]).toHaveLength(1);
    expect(id).toMatch(/^limit:oauth-app\.service\+[\w-]{43}$/);
    expect(await tokenStore.get(id)).toBeUndefined();
  });

  test('are shared over a store with a lock alone', async () => {
    const { get, set, delete: remove, lock } = memoryTokenStore();
    const all = processes(4, { get, set, delete: remove, lock });
    for (const _round of [1, 2]) for (const each of all) await each.renew('a', 50, 0);
    const shares = await Promise.all(all.map((each) => each.renew('a', 50, 0)));
    expect(shares.map(({ places }) => places)).toEqual([5, 5, 5, 5]);
  });

  test('go round where there are more processes than places: none is held twice, and each process has its turn', async () => {
    const all = processes(25).map((each) => ({ each, places: 0, turns: 0 }));
    for (let round = 0; round < 10; round++) {
      for (const one of all) {
        one.places = (await one.each.renew('a', 9, one.places)).places;
        one.turns += one.places;
        expect(all.reduce((sum, { places }) => sum + places, 0)).toBeLessThanOrEqual(20);
      }
    }
    expect(Math.min(...all.map(({ turns }) => turns))).toBeGreaterThan(1);
  });

  test('are not shared over a store without a lock', () => {
    const { get, set, delete: remove } = memoryTokenStore();
    expect(processes(1, { get, set, delete: remove })[0]?.isAvailable).toBe(false);
  });

  test('begin anew where the record is rubbish', async () => {
    const { tokenStore, ids } = watched();
    const [process] = processes(1, tokenStore) as [SharedPlaces];
    await process.renew('a', 1, 0);
    const [id = ''] = ids;
    for (const sealed of ['{', 'null', '[7]', '{"x":{"beat":"1"}}', '{"x":null}']) {
      await tokenStore.set(id, { version: 7, expiresAt: 0, sealed });
      expect(await process.renew('a', 1, 0)).toEqual({ places: 20, isSettled: true });
    }
  });
});
