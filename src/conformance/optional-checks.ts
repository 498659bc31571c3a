import assert from 'node:assert/strict';
import type { TokenStore } from '../stores/token-store.js';
import { pause } from '../waiting.js';
import { type Check, EXPIRED, sampleGrant } from './trial.js';

/** Longer than a waiting caller may pause before it asks again for the lock, in milliseconds. */
export const LONGER_THAN_A_POLL_MS = 300;

/** As long as the work of a refresh may well take, in milliseconds. */
const LONG_WORK_MS = 1_500;

/** How many milliseconds after the first of two calls the last one begins that races with it. */
const RACED_MS = 5;

/** How often two calls race with each difference of time. */
const RACES_OF_EACH = 5;

/** Checks of `update`, and of `delete` with a version in stores that can compare versions. */
export const UPDATE_CHECKS: readonly Check[] = [
  {
    name: 'update replaces the whole grant if its version is the one given, and resolves to true',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, { former: true }));
      assert.equal(await store.update?.(id, sampleGrant(9, { field: [1] }), 1), true);
      assert.deepEqual(await store.get(id), sampleGrant(9, { field: [1] }));
    },
  },
  {
    name: 'update leaves a grant of another version as it is, and resolves to false',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      assert.equal(await store.update?.(id, sampleGrant(2), 1), true);
      for (const version of [0, 1, 3]) {
        assert.equal(await store.update?.(id, sampleGrant(4), version), false, `version ${version} is not stored`);
      }
      assert.deepEqual(await store.get(id), sampleGrant(2));
    },
  },
  {
    name: 'update compares versions exactly, up to the largest safe integer',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(Number.MAX_SAFE_INTEGER));
      assert.equal(await store.update?.(id, sampleGrant(1), Number.MAX_SAFE_INTEGER - 1), false);
      assert.equal(await store.update?.(id, sampleGrant(0), Number.MAX_SAFE_INTEGER), true);
      assert.equal(await store.update?.(id, sampleGrant(1), 0), true);
    },
  },
  {
    name: 'update and delete of a version take a grant whose access token has expired',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, EXPIRED));
      assert.equal(await store.update?.(id, sampleGrant(2, EXPIRED), 1), true);
      assert.deepEqual(await store.get(id), sampleGrant(2, EXPIRED));
      await store.delete(id, 2);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'update creates no grant where none was ever set',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      assert.equal(await store.update?.(id, sampleGrant(1), 0), false);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'update does not bring back a grant that was deleted',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      await store.delete(id);
      assert.equal(await store.update?.(id, sampleGrant(2), 1), false);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'delete of a version removes the grant only while its version is that',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(2));
      for (const version of [0, 1, 3]) {
        await store.delete(id, version);
        assert.deepEqual(await store.get(id), sampleGrant(2), `version ${version} is not stored`);
      }
    },
  },
  {
    name: 'of 50 updates of one version at the same time, one resolves to true, and its grant is stored',
    needs: 'update',
    run: async ({ store, newId, stores }) => {
      const id = newId();
      const all = await stores(5);
      await (all[0] ?? store).set(id, sampleGrant(0));
      const updates = Array.from({ length: 50 }, (_, index) =>
        (all[index % 5] ?? store).update?.(id, sampleGrant(index + 1), 0),
      );
      const outcomes = await Promise.all(updates);
      assert.equal(outcomes.filter((outcome) => outcome === true).length, 1, 'updates that resolved to true');
      const winner = outcomes.indexOf(true);
      assert.deepEqual(await (all[winner % 5] ?? store).get(id), sampleGrant(winner + 1));
    },
  },
];

/** What two stores do at the same time to a grant of version 1, and the version that is left. */
const RACES: readonly {
  readonly name: string;
  readonly left: number | undefined;
  readonly one: (store: TokenStore, id: string) => Promise<unknown> | undefined;
  readonly other: (store: TokenStore, id: string) => Promise<unknown>;
}[] = [
  {
    name: 'an update undoes no deletion that comes at the same time',
    left: undefined,
    one: (store, id) => store.update?.(id, sampleGrant(2), 1),
    other: (store, id) => store.delete(id),
  },
  {
    name: 'an update replaces no grant that is set at the same time',
    left: 3,
    one: (store, id) => store.update?.(id, sampleGrant(2), 1),
    other: (store, id) => store.set(id, sampleGrant(3)),
  },
  {
    name: 'delete of a version removes no grant that is set at the same time',
    left: 3,
    one: (store, id) => store.delete(id, 1),
    other: (store, id) => store.set(id, sampleGrant(3)),
  },
];

/** Checks of what is atomic. */
export const RACE_CHECKS: readonly Check[] = RACES.map(({ name, left, one, other }) => ({
  name,
  needs: 'update',
  run: async ({ store, newId, stores }) => {
    const [first = store, second = store] = await stores(2);
    const race = async (_: unknown, laterMs: number): Promise<void> => {
      const id = newId();
      await first.set(id, sampleGrant(1));
      await Promise.all([one(first, id), pause(laterMs).then(() => other(second, id))]);
      assert.deepEqual(await second.get(id), left === undefined ? undefined : sampleGrant(left));
    };
    for (let round = 0; round < RACES_OF_EACH; round += 1) await Promise.all(Array.from({ length: RACED_MS }, race));
  },
}));

/** Checks of `add`. */
export const ADD_CHECKS: readonly Check[] = [
  {
    name: 'add creates a grant where there is none, also after a deletion, and resolves to true',
    needs: 'add',
    run: async ({ store, newId }) => {
      const id = newId();
      for (const version of [1, 2]) {
        assert.equal(await store.add?.(id, sampleGrant(version, { field: [1] })), true);
        assert.deepEqual(await store.get(id), sampleGrant(version, { field: [1] }));
        await store.delete(id);
      }
    },
  },
  {
    name: 'add leaves a grant as it is, and resolves to false',
    needs: 'add',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      for (const version of [1, 2]) assert.equal(await store.add?.(id, sampleGrant(version, { other: true })), false);
      assert.deepEqual(await store.get(id), sampleGrant(1));
    },
  },
  {
    name: 'add leaves a grant whose access token has expired',
    needs: 'add',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, EXPIRED));
      assert.equal(await store.add?.(id, sampleGrant(2)), false);
    },
  },
  {
    name: 'of 50 additions for one id at the same time, one resolves to true, and its grant is stored',
    needs: 'add',
    run: async ({ store, newId, stores }) => {
      const id = newId();
      const all = await stores(5);
      const additions = Array.from({ length: 50 }, (_, index) =>
        (all[index % 5] ?? store).add?.(id, sampleGrant(index)),
      );
      const outcomes = await Promise.all(additions);
      assert.equal(outcomes.filter((outcome) => outcome === true).length, 1, 'additions that resolved to true');
      const winner = outcomes.indexOf(true);
      assert.deepEqual(await (all[winner % 5] ?? store).get(id), sampleGrant(winner));
    },
  },
];

/** Checks of `lock`. */
export const LOCK_CHECKS: readonly Check[] = [
  {
    name: 'lock resolves to what its work resolves to',
    needs: 'lock',
    run: async ({ store, newId }) => {
      const result = { some: 'result' };
      assert.equal(await store.lock?.(newId(), async () => result), result);
    },
  },
  {
    name: 'lock rejects with the very error of its work, and is free afterwards',
    needs: 'lock',
    run: async ({ store, newId }) => {
      const id = newId();
      const fault = new Error('of the work');
      const isFault = (error: unknown): boolean => error === fault;
      await assert.rejects(async () => store.lock?.(id, () => Promise.reject(fault)), isFault);
      const throwing = (): never => {
        throw fault;
      };
      await assert.rejects(async () => store.lock?.(id, throwing), isFault);
      assert.equal(await store.lock?.(id, async () => 'free'), 'free');
    },
  },
  {
    name: 'lock runs the work of 20 contenders for one id one after the other, each of them once',
    needs: 'lock',
    run: ({ store, newId }) => contend([store], 20, newId()),
  },
  {
    name: 'lock excludes the work of other stores over the same storage, as of other processes',
    needs: 'lock',
    run: async ({ newId, stores }) => contend(await stores(4), 3, newId()),
  },
  {
    name: 'lock keeps another store out while its work takes 1.5 s, or three quarters of the lease',
    needs: 'lock',
    run: async ({ newId, stores, leaseMs = Infinity }) => {
      const id = newId();
      const [one, other] = await stores(2);
      const waiting = new Contender();
      await one?.lock?.(id, async () => {
        waiting.ask(other, id);
        await pause(Math.min(LONG_WORK_MS, leaseMs * 0.75));
        const told = 'another holder got the lock; set the option lease if the lease is below 2 s';
        assert.equal(waiting.hasEntered, false, told);
      });
      await waiting.turn;
    },
  },
  {
    name: 'lock reports that it is held, if it hands over a lease',
    needs: 'lock',
    run: async ({ store, newId, leaseMs = Infinity }) => {
      const askedAt = performance.now();
      await store.lock?.(newId(), async (lease) => {
        const isHeld = await lease?.isHeld();
        // On a busy machine a short lease may have expired.
        if (lease && performance.now() - askedAt < leaseMs) assert.equal(isHeld, true);
      });
    },
  },
  {
    name: 'lock of one id does not wait for that of another',
    needs: 'lock',
    run: async ({ store, newId }) => {
      const [outer, inner] = [newId(), newId()];
      const nested = store.lock?.(outer, async () => store.lock?.(inner, async () => 'both'));
      assert.equal(await nested, 'both');
    },
  },
  {
    name: 'the store works as ever inside a lock, and neither set nor delete frees the lock',
    needs: 'lock',
    run: async ({ newId, stores }) => {
      const id = newId();
      const [one, other] = await stores(2);
      const waiting = new Contender();
      await one?.lock?.(id, async () => {
        assert.equal(await one.get(id), undefined);
        waiting.ask(other, id);
        await pause(LONGER_THAN_A_POLL_MS);
        // Nothing was written yet: what lets the other one in is not that.
        const wasLocked = !waiting.hasEntered;
        await one.set(id, sampleGrant(1));
        if (one.update) assert.equal(await one.update(id, sampleGrant(2), 1), true);
        await one.delete(id);
        assert.equal(await one.get(id), undefined);
        await pause(LONGER_THAN_A_POLL_MS);
        if (wasLocked) assert.equal(waiting.hasEntered, false, 'another one got the lock');
      });
      await waiting.turn;
    },
  },
  {
    name: 'get inside a lock reads what the holder before has written',
    needs: 'lock',
    run: async ({ newId, stores }) => {
      const id = newId();
      const [one, other] = await stores(2);
      await one?.set(id, sampleGrant(1));
      const waiting = new Contender();
      await one?.lock?.(id, async () => {
        waiting.ask(other, id, () => other?.get(id));
        await pause(LONGER_THAN_A_POLL_MS);
        // Other checks cover a lock that lets both in.
        if (!waiting.hasEntered) await one.set(id, sampleGrant(2));
      });
      assert.deepEqual(await waiting.turn, await one?.get(id));
    },
  },
  {
    name: 'locks of 50 ids are held at the same time, and the store can be reached inside of all of them',
    needs: 'lock',
    run: async ({ store, newId }) => {
      const ids = Array.from({ length: 50 }, () => newId());
      const allHeld = meeting(ids.length);
      const work = async (id: string): Promise<void> => {
        await allHeld();
        await store.set(id, sampleGrant(1));
        assert.deepEqual(await store.get(id), sampleGrant(1));
      };
      await Promise.all(ids.map((id) => store.lock?.(id, () => work(id))));
    },
  },
];

/** A store that asks for a lock which another one holds. */
class Contender {
  hasEntered = false;
  /** Resolves to what its work has. */
  turn: Promise<unknown> | undefined;

  ask(store: TokenStore | undefined, id: string, work: () => Promise<unknown> | undefined = () => undefined): void {
    this.turn = store?.lock?.(id, async () => {
      this.hasEntered = true;
      return await work();
    });
    // Whoever waits for it learns of its failure.
    this.turn?.catch(() => undefined);
  }
}

/** Lets each store work under the lock of `id` so many times, and expects one work at a time. */
async function contend(stores: readonly TokenStore[], times: number, id: string): Promise<void> {
  const counts = { started: 0, running: 0, mostAtOnce: 0 };
  const work = async (store: TokenStore): Promise<void> => {
    counts.started += 1;
    counts.running += 1;
    counts.mostAtOnce = Math.max(counts.mostAtOnce, counts.running);
    await store.get(id);
    counts.running -= 1;
  };
  const contenders = stores.flatMap((store) => Array.from({ length: times }, () => store));
  await Promise.all(contenders.map((store) => store.lock?.(id, () => work(store))));
  assert.equal(counts.mostAtOnce, 1, 'contenders that worked at the same time');
  assert.equal(counts.started, contenders.length, 'works that ran');
}

/** Returns a function whose promises resolve once it has been called `count` times. */
function meeting(count: number): () => Promise<void> {
  let missing = count;
  let complete = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    complete = resolve;
  });
  return () => {
    missing -= 1;
    if (missing === 0) complete();
    return all;
  };
}
