import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { fairShares, SharedPermits } from '../../src/limits/shared-permits.js';
import { stopTime } from '../support/stop-time.js';
import { TroubledStore } from '../support/troubled-store.js';

/** Processes that share the 20 slots of each account over a store. */
function processes(count: number, tokenStore: TokenStore = memoryTokenStore(), max = 20): SharedPermits[] {
  const create = () => new SharedPermits(max, { namespace: 'oauth-app.service', store: () => tokenStore });
  return Array.from({ length: count }, create);
}

/** The store with all ids that were written. */
function watched(): { readonly tokenStore: Required<TokenStore>; readonly ids: Set<string> } {
  const ids = new Set<string>();
  const tokenStore = memoryTokenStore();
  const { add } = tokenStore;
  return { ids, tokenStore: { ...tokenStore, add: (id, grant) => add(id, grant).finally(() => ids.add(id)) } };
}

describe('fair shares of 20 slots', () => {
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
    [Array.from({ length: 30 }, () => 9), Array.from({ length: 30 }, (_, index) => (index < 20 ? 1 : 0))],
  ])('for processes that want %j are %j', ([wanted, expected]) => {
    const holdings = wanted.map((each, index) => [
      `process-${index}`,
      { heartbeat: 1, slots: 0, wanted: each, turn: index },
    ]);
    const shares = fairShares(Object.fromEntries(holdings), 20);
    const byProcess = wanted.map((_each, index) => shares[`process-${index}`] ?? 0);
    expect([...byProcess].sort()).toEqual([...expected].sort());
    expect(byProcess.reduce((sum, each) => sum + each, 0)).toBe(20);
  });

  test('are the same whoever computes them', () => {
    const holding = { heartbeat: 1, slots: 0, wanted: 100, turn: 1 };
    const [a, b, c] = [holding, holding, holding];
    for (const holdings of [
      { a, b, c },
      { c, b, a },
      { b, c, a },
      { b, a, c },
    ])
      expect(fairShares(holdings, 20)).toEqual({ a: 7, b: 7, c: 6 });
  });

  test('go by need where there are as many processes as slots', () => {
    const holdings = [5, 0, 0].map((wanted, turn) => [turn, { heartbeat: 1, slots: 0, wanted, turn }]);
    expect(fairShares(Object.fromEntries(holdings), 3)).toEqual({ 0: 3, 1: 0, 2: 0 });
  });
});

describe('the slots of an account', () => {
  test('are all for one process; a second gets its part when the first has given it back', async () => {
    const [first, second] = processes(2) as [SharedPermits, SharedPermits];
    // What the first does not want is left in part.
    expect(await first.renew('a', 1, 1)).toEqual({ slots: 10, isSettled: true });
    expect(await second.renew('a', 1, 0)).toEqual({ slots: 5, isSettled: true });
    await second.giveBack('a');
    expect(await first.renew('a', 50, 10)).toEqual({ slots: 20, isSettled: true });
    expect(await second.renew('a', 50, 0)).toEqual({ slots: 0, isSettled: false });
    // Of its 20 requests 15 still run: it starts none, and gives back what is free.
    expect(await first.renew('a', 50, 15)).toEqual({ slots: 10, isSettled: false });
    expect(await second.renew('a', 50, 0)).toEqual({ slots: 5, isSettled: false });
    expect(await first.renew('a', 50, 10)).toEqual({ slots: 10, isSettled: true });
    expect(await second.renew('a', 50, 5)).toEqual({ slots: 10, isSettled: true });
    await first.giveBack('a');
    expect(await second.renew('a', 50, 10)).toEqual({ slots: 20, isSettled: true });
    // Another account has slots of its own.
    expect(await first.renew('b', 50, 0)).toEqual({ slots: 20, isSettled: true });
  });

  test('come back from a process that has ended without a word, after three seconds', async () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const [dead, alive] = processes(2) as [SharedPermits, SharedPermits];
    await dead.renew('a', 50, 20);
    expect(await alive.renew('a', 50, 0)).toMatchObject({ slots: 0 });
    vi.advanceTimersByTime(3_000);
    expect(await alive.renew('a', 50, 0)).toMatchObject({ slots: 0 });
    vi.advanceTimersByTime(1);
    expect(await alive.renew('a', 50, 0)).toEqual({ slots: 20, isSettled: true });
  });

  test('are never held twice, however many processes ask at once', async () => {
    const all = processes(8);
    const shares = await Promise.all(all.map((each) => each.renew('a', 50, 0)));
    expect(shares.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(20);
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

  test('are given back although another process changes the record at the same time', async () => {
    const store = new TroubledStore();
    const [first, second] = processes(2, store) as [SharedPermits, SharedPermits];
    await first.renew('a', 50, 0);
    store.before = (method) => method === 'delete' && second.renew('a', 50, 0);
    await first.giveBack('a');
    expect(await second.renew('a', 50, 0)).toEqual({ slots: 20, isSettled: true });
  });

  test.for([[], ['add'], ['update']] as const)('are shared over a store with a lock and %j', async (others) => {
    const { get, set, delete: remove, lock, ...rest } = memoryTokenStore();
    const some = Object.fromEntries(others.map((name) => [name, rest[name]]));
    const all = processes(4, { get, set, delete: remove, lock, ...some });
    const first = await Promise.all(all.map((each) => each.renew('a', 50, 0)));
    expect(first.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(20);
    for (const each of all) await each.renew('a', 50, 0);
    const shares = await Promise.all(all.map((each) => each.renew('a', 50, 0)));
    expect(shares.map(({ slots }) => slots)).toEqual([5, 5, 5, 5]);
  });

  test('go round where there are more processes than slots: none is held twice, and each process has its turn', async () => {
    const all = processes(25).map((each) => ({ each, slots: 0, turns: 0 }));
    for (let round = 0; round < 10; round++) {
      for (const one of all) {
        one.slots = (await one.each.renew('a', 9, one.slots)).slots;
        one.turns += one.slots;
        expect(all.reduce((sum, { slots }) => sum + slots, 0)).toBeLessThanOrEqual(20);
      }
    }
    expect(Math.min(...all.map(({ turns }) => turns))).toBeGreaterThan(1);
  });

  test('that are fewer than the processes leave one without any, which asks again soon', async () => {
    const [first, second] = processes(2, memoryTokenStore(), 1) as [SharedPermits, SharedPermits];
    expect(await first.renew('a', 5, 0)).toEqual({ slots: 1, isSettled: true });
    expect(await second.renew('a', 5, 0)).toEqual({ slots: 0, isSettled: false });
  });

  test('are not shared over a store without a lock, or as long as none is known', async () => {
    const { get, set, delete: remove } = memoryTokenStore();
    const [bare, full] = [{ get, set, delete: remove }, memoryTokenStore()];
    for (const [store, slots] of [
      [bare, 20],
      [undefined, 0],
      [full, 20],
    ] as const) {
      const process = new SharedPermits(20, { namespace: 'name', store: () => store });
      expect(await process.renew('a', 50, 0)).toEqual({ slots, isSettled: slots > 0 });
      await process.giveBack('a');
    }
  });

  test('cost two operations for each renewal, and none but a look where there is nothing to give back', async () => {
    const store = new TroubledStore();
    const [process] = processes(1, store) as [SharedPermits];
    for (const [use, calls] of [
      [() => process.giveBack('a'), ['get']],
      [() => process.renew('a', 1, 0), ['get', 'add']],
      [() => process.renew('a', 1, 0), ['get', 'update']],
      [() => process.giveBack('a'), ['get', 'delete', 'get']],
    ] as const) {
      store.calls.length = 0;
      await use();
      expect(store.calls).toEqual(calls);
    }
  });

  test('cannot be had while the store hangs, or others change the record all the time', async () => {
    stopTime();
    const store = new TroubledStore();
    const renewing = async (message: string) => {
      const [process] = processes(1, store) as [SharedPermits];
      const renewed = expect(process.renew('a', 1, 0)).rejects.toThrow(new Error(message));
      await vi.advanceTimersByTimeAsync(1_000);
      await renewed;
    };
    store.add = async () => {
      store.calls.push('add');
      return false;
    };
    await renewing('Other processes kept changing the record');
    expect(store.calls.filter((call) => call === 'add')).toHaveLength(20);
    store.before = () => new Promise(() => undefined);
    await renewing('The token store did not answer in time');
  });

  test('stand in the record beside what is no holding', async () => {
    const { tokenStore, ids } = watched();
    const [process, other] = processes(2, tokenStore) as [SharedPermits, SharedPermits];
    await process.renew('a', 1, 0);
    await process.giveBack('a');
    const [id = ''] = ids;
    const holding = { heartbeat: 1, slots: 5, wanted: 5, turn: 1 };
    const sealed = JSON.stringify({ null: null, number: 7, text: 'text', part: { heartbeat: 1 }, holding });
    await tokenStore.set(id, { version: 7, expiresAt: 0, sealed });
    expect(await other.renew('a', 50, 0)).toEqual({ slots: 15, isSettled: true });
  });

  test('begin anew where the record is rubbish', async () => {
    const { tokenStore, ids } = watched();
    const [process] = processes(1, tokenStore) as [SharedPermits];
    await process.renew('a', 1, 0);
    const [id = ''] = ids;
    for (const sealed of ['{', 'null', '[7]', '{"x":{"heartbeat":"1"}}', '{"x":null}']) {
      await tokenStore.set(id, { version: 7, expiresAt: 0, sealed });
      expect(await process.renew('a', 50, 0)).toEqual({ slots: 20, isSettled: true });
    }
  });
});
