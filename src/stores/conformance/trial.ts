import { randomUUID } from 'node:crypto';
import type { StoredGrant, TokenStore } from '../token-store.js';

/** Gives a store, or promises one. */
export type CreateStore = () => TokenStore | Promise<TokenStore>;

/** One check before it is bound to a store. */
export interface Check {
  /** What a right store does, as a sentence. */
  readonly name: string;
  /** The method without which the check says nothing. */
  readonly needs?: 'update' | 'lock';
  run(trial: Trial): Promise<void>;
}

/** What a check works with. */
export interface Trial {
  readonly store: TokenStore;
  /** An id that nobody used before. Its grant is deleted after the check. */
  newId(): string;
  /** `id`, which begins with one of {@link newId}, after it was noted down to be deleted after the check. */
  note(id: string): string;
  /** `count` stores over one storage: several where `createStore` gives such, else `store` as often. */
  stores(count: number): Promise<readonly TokenStore[]>;
  cleanUp(): Promise<void>;
}

/** Makes a store, and what a check of it needs. */
export async function startTrial(createStore: CreateStore): Promise<Trial> {
  const store = await createStore();
  const ids: string[] = [];
  const note = (id: string): string => {
    ids.push(id);
    return id;
  };
  const newId = (): string => note(`conformance+${randomUUID()}`);
  return {
    store,
    newId,
    note,
    stores: async (count) => {
      const other = await createStore();
      const shared = await seesEachOther(store, other, newId());
      return Promise.all(Array.from({ length: count }, () => (shared ? createStore() : store)));
    },
    cleanUp: async () => {
      await Promise.allSettled(ids.map((id) => store.delete(id)));
    },
  };
}

/** A grant of the given version. A store has to keep all of it, whatever it knows of it. */
export function sampleGrant(version: number, more: object = {}): StoredGrant {
  return { version, expiresAt: 1_800_000_000_000, sealed: `sealed ${version}`, ...more };
}

async function seesEachOther(store: TokenStore, other: TokenStore, id: string): Promise<boolean> {
  await store.set(id, sampleGrant(1));
  return (await other.get(id))?.version === 1;
}
