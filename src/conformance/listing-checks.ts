import assert from 'node:assert/strict';
import type { TokenStore } from '../stores/token-store.js';
import { type Check, EXPIRED, sampleGrant } from './trial.js';

/** More than one page of the stores that page by hundreds. */
const MANY = 520;

/** How long a notification of a change may take, in milliseconds. */
const TOLD_MS = 5_000;

/** Interval of changes until the first notification, in milliseconds: its connection may take a moment to open. */
const OPENING_MS = 100;

/** Checks of `list`. */
export const LIST_CHECKS: readonly Check[] = [
  {
    name: 'list yields the ids of grants that are stored, and of no grant that was deleted',
    needs: 'list',
    run: async ({ store, newId, note }) => {
      const [kept, deleted] = [newId(), newId()];
      const alike = ['*', '%25', 'A', 'a'].map((end) => note(`${kept}+${end}`));
      await Promise.all([kept, deleted, ...alike].map((id) => store.set(id, sampleGrant(1))));
      await store.delete(deleted);
      assert.deepEqual(await listed(store, kept), [kept, ...alike].sort());
      assert.deepEqual(await listed(store, deleted), []);
    },
  },
  {
    name: 'list yields a grant whose access token has expired',
    needs: 'list',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, EXPIRED));
      assert.deepEqual(await listed(store, id), [id]);
    },
  },
  {
    name: 'list yields every one of many grants',
    needs: 'list',
    run: async ({ store, newId, note }) => {
      const start = newId();
      const ids = Array.from({ length: MANY }, (_, index) => note(`${start}+${String(index).padStart(4, '0')}`));
      for (let index = 0; index < MANY; index += 52)
        await Promise.all(ids.slice(index, index + 52).map((id) => store.set(id, sampleGrant(1))));
      assert.deepEqual(await listed(store, start), ids);
    },
  },
  {
    name: 'list of a prefix yields the ids that begin with it, and no other',
    needs: 'list',
    run: async ({ store, newId, note }) => {
      const id = newId();
      const prefix = `${id}+a*%25_`;
      const ids = [prefix, `${prefix}+`, `${prefix}~~`].map(note);
      const others = [id, `${id}+a`, `${id}+A*%25_`, `${id}+ab%25_`, `${id}+a*25_`, `${id}+a*%25~`].map(note);
      await Promise.all([...ids, ...others].map((each) => store.set(each, sampleGrant(1))));
      const found: string[] = [];
      for await (const each of store.list?.(prefix) ?? []) found.push(each);
      assert.deepEqual([...new Set(found)].sort(), ids.sort());
    },
  },
  {
    name: 'list yields neither marks of used logins nor locks that are held',
    needs: 'list',
    run: async ({ store, newId, note }) => {
      const id = newId();
      for (const prefix of ['login:', 'limit:', 'frame:']) await store.set(note(prefix + id), sampleGrant(1));
      const list = (): Promise<readonly string[]> => listed(store, id);
      assert.deepEqual(store.lock ? await store.lock(id, list) : await list(), []);
    },
  },
];

/** Checks of `watch`. */
export const WATCH_CHECKS: readonly Check[] = [
  {
    name: 'watch reports a grant that another store sets, adds, ends or deletes',
    needs: 'watch',
    run: async ({ newId, stores }) => {
      const [one, other] = await stores(2);
      if (!one || !other) return;
      const heard = listenTo(one);
      try {
        await heard.opened(other, newId());
        for (const [change, work] of changes(other)) {
          const id = newId();
          if (change !== 'add') {
            await other.set(id, sampleGrant(1));
            assert.ok(await heard.tells(id), 'a grant that another store sets');
          }
          await work(id);
          assert.ok(await heard.tells(id), `a grant that another store changes by ${change}`);
        }
      } finally {
        heard.stop();
      }
    },
  },
  {
    name: 'watch reports nothing once it is stopped',
    needs: 'watch',
    run: async ({ newId, stores }) => {
      const [one, other] = await stores(2);
      if (!one || !other) return;
      const [stopped, going] = [listenTo(one), listenTo(one)];
      try {
        const id = newId();
        await Promise.all([stopped.opened(other, newId()), going.opened(other, newId())]);
        stopped.stop();
        await other.set(id, sampleGrant(1));
        assert.ok(await going.tells(id), 'the one that still watches');
        assert.equal(await stopped.tells(id, 0), false, 'the one that was stopped');
      } finally {
        stopped.stop();
        going.stop();
      }
    },
  },
];

/** Returns what a store may do to a grant that other processes have in their caches. */
function changes(store: TokenStore): readonly (readonly [name: string, work: (id: string) => Promise<unknown>])[] {
  const all: [string, ((id: string) => Promise<unknown>) | undefined][] = [
    ['set', (id) => store.set(id, sampleGrant(2))],
    ['add', store.add && ((id) => Promise.resolve(store.add?.(id, sampleGrant(2))))],
    ['update', store.update && ((id) => Promise.resolve(store.update?.(id, sampleGrant(1, { ended: true }), 1)))],
    ['delete', (id) => store.delete(id)],
  ];
  return all.flatMap(([name, work]) => (work ? [[name, work] as const] : []));
}

/** Lists the ids that begin with a text, sorted, each once. */
async function listed(store: TokenStore, start: string): Promise<readonly string[]> {
  const ids = new Set<string>();
  for await (const id of store.list?.() ?? []) if (id.includes(start)) ids.add(id);
  return [...ids].sort();
}

/** What a check hears of a store's changes. */
interface Heard {
  /** Resolves to true once the store reports a new change of the id; to false if it does not in time. */
  tells(id: string, ms?: number): Promise<boolean>;
  /** Resolves once a change made through `store` is reported. */
  opened(store: TokenStore, id: string): Promise<void>;
  stop(): void;
}

function listenTo(watched: TokenStore): Heard {
  const ids = new Set<string>();
  let hear = (_id: string): void => undefined;
  const stop = watched.watch?.((id) => {
    ids.add(id);
    hear(id);
  });
  const tells = async (id: string, ms: number = TOLD_MS): Promise<boolean> => {
    if (!ids.has(id))
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        hear = (heard) => {
          if (heard !== id) return;
          clearTimeout(timer);
          resolve();
        };
      });
    return ids.delete(id);
  };
  return {
    tells,
    opened: async (store, id) => {
      for (let version = 0; !(await tells(id, OPENING_MS)); version += 1) await store.set(id, sampleGrant(version));
    },
    stop: () => stop?.(),
  };
}
