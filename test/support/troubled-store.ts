import { memoryTokenStore } from 'passport-oauth-app';
import type { HeldLease, ListedTokenStore, StoredGrant } from '../../src/stores/token-store.js';

export type StoreMethod = keyof ListedTokenStore;

/** A token store with all methods but `watch` that does what a test wants before each call, such as failing, waiting or never ending. */
export class TroubledStore implements ListedTokenStore {
  /** Every call, as it came in. */
  readonly calls: StoreMethod[] = [];
  /** How many calls are under way that only read or write. */
  busy = 0;
  /** How many locks are asked for or held. */
  locks = 0;
  /** Runs before each call. */
  before: (method: StoreMethod, id: string) => unknown = () => undefined;
  readonly inner: ListedTokenStore = memoryTokenStore();
  /** How long a lease is said to be, in milliseconds; `undefined` for what the store says. The longer, the longer an unsaved pair holds it. */
  leaseMs: number | undefined;

  async get(id: string): Promise<StoredGrant | undefined> {
    return await this.#call('get', id, () => this.inner.get(id));
  }

  async set(id: string, grant: StoredGrant): Promise<void> {
    return await this.#call('set', id, () => this.inner.set(id, grant));
  }

  async delete(id: string, version?: number): Promise<void> {
    return await this.#call('delete', id, () => this.inner.delete(id, version));
  }

  async update(id: string, grant: StoredGrant, version: number): Promise<boolean> {
    return await this.#call('update', id, () => this.inner.update(id, grant, version));
  }

  async add(id: string, grant: StoredGrant): Promise<boolean> {
    return await this.#call('add', id, () => this.inner.add(id, grant));
  }

  async lock<T>(id: string, work: (lease?: HeldLease) => Promise<T>): Promise<T> {
    this.locks += 1;
    try {
      await this.#enter('lock', id);
      const { leaseMs } = this;
      if (leaseMs === undefined) return await this.inner.lock(id, work);
      const told = (lease?: HeldLease) => work({ ageMs: 0, isHeld: async () => true, ...lease, leaseMs });
      return await this.inner.lock(id, told);
    } finally {
      this.locks -= 1;
    }
  }

  async *list(prefix?: string): AsyncGenerator<string> {
    await this.#enter('list', '');
    yield* this.inner.list(prefix);
  }

  /** From now on these methods fail, or all of them. */
  fail(...methods: StoreMethod[]): void {
    this.before = (method) => {
      if (methods.length === 0 || methods.includes(method)) throw new Error('The store is down');
    };
  }

  /** From now on it does as it should. */
  recover(): void {
    this.before = () => undefined;
  }

  async #call<T>(method: StoreMethod, id: string, work: () => Promise<T>): Promise<T> {
    this.busy += 1;
    try {
      await this.#enter(method, id);
      return await work();
    } finally {
      this.busy -= 1;
    }
  }

  async #enter(method: StoreMethod, id: string): Promise<void> {
    this.calls.push(method);
    await this.before(method, id);
  }
}
