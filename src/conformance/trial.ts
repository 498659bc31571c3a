import { randomUUID } from 'node:crypto';
import type { StoredGrant, TokenStore } from '../stores/token-store.js';

/** Returns a store, or a promise of one. */
export type CreateStore = () => TokenStore | Promise<TokenStore>;

/** One check before it is bound to a store. */
export interface Check {
  /** The behaviour of a correct store, as a sentence. */
  readonly name: string;
  /** The optional method that the check needs. */
  readonly needs?: 'update' | 'add' | 'lock' | 'list' | 'watch';
  run(trial: Trial): Promise<void>;
}

/** A check of locks that end by themselves, for stores whose lease is known. */
export interface LeaseCheck extends Pick<Check, 'name'> {
  run(trial: Trial, leaseMs: number): Promise<void>;
}

/** The store under check, and ids for it. */
export interface Trial {
  readonly store: TokenStore;
  /** Length of a lease, in milliseconds; `undefined` without the option `lease`. */
  readonly leaseMs: number | undefined;
  /** Returns a new random id. Its grant is deleted after the check. */
  newId(): string;
  /** Registers an id that begins with one of {@link newId}, so that its grant is deleted after the check. Returns the id. */
  note(id: string): string;
  /** Returns `count` stores over one storage: different ones if `createStore` returns such, else `store` each time. */
  stores(count: number): Promise<readonly TokenStore[]>;
  cleanUp(): Promise<void>;
}

/** How often, and how long apart in milliseconds, a store is asked for what another one has written. */
const [LAG_WAITS, LAG_WAIT_MS] = [5, 100];

/** Creates a store for one check. */
export async function startTrial(createStore: CreateStore, leaseMs: number | undefined): Promise<Trial> {
  const store = await createStore();
  const ids: string[] = [];
  const note = (id: string): string => {
    ids.push(id);
    return id;
  };
  const newId = (): string => note(`conformance+${randomUUID()}`);
  return {
    store,
    leaseMs,
    newId,
    note,
    stores: async (count) => {
      const other = await createStore();
      const id = newId();
      await store.set(id, sampleGrant(1));
      const isSeen = async (): Promise<boolean> => (await other.get(id))?.version === 1;
      let isShared = await isSeen();
      // A store that sees it late still shares the storage, and must fail the checks for that.
      for (let waits = 0; !isShared && waits < LAG_WAITS; waits += 1) {
        await new Promise((resolve) => setTimeout(resolve, LAG_WAIT_MS));
        isShared = await isSeen();
      }
      return Promise.all(Array.from({ length: count }, () => (isShared ? createStore() : store)));
    },
    cleanUp: async () => {
      await Promise.allSettled(ids.map((id) => store.delete(id)));
    },
  };
}

/** Returns a grant of the given version. A store has to keep all of its fields. */
export function sampleGrant(version: number, more: object = {}): StoredGrant {
  return { version, expiresAt: Date.UTC(2037, 0), sealed: `sealed ${version}`, ...more };
}

/** Fields of a grant whose access token has expired, as that of a user who was away. No method depends on that. */
export const EXPIRED: Partial<StoredGrant> = { expiresAt: 1 };
