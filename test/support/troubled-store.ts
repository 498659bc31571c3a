import { memoryTokenStore } from 'passport-oauth-app';
import type { HeldLease, ListedTokenStore } from '../../src/stores/token-store.js';

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

  get: ListedTokenStore['get'] = this.#troubled('get');
  set: ListedTokenStore['set'] = this.#troubled('set');
  delete: ListedTokenStore['delete'] = this.#troubled('delete');
  update: ListedTokenStore['update'] = this.#troubled('update');
  add: ListedTokenStore['add'] = this.#troubled('add');

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

  #troubled<M extends 'get' | 'set' | 'delete' | 'update' | 'add'>(method: M): ListedTokenStore[M] {
    const call = async (...args: Parameters<ListedTokenStore[M]>) => {
      this.busy += 1;
      try {
        await this.#enter(method, args[0]);
        return await Reflect.apply(this.inner[method], this.inner, args);
      } finally {
        this.busy -= 1;
      }
    };
    return call as ListedTokenStore[M];
  }

  async #enter(method: StoreMethod, id: string): Promise<void> {
    this.calls.push(method);
    await this.before(method, id);
  }
}
