import type { ListedTokenStore, StoredGrant, TokenStore } from 'passport-oauth-app';

/** The operations of a token store that fail. */
export type Breakage = 'none' | 'writes' | 'all';

/** A token store that can be broken: what it still takes is passed on to a store that works. */
export class BreakableStore implements ListedTokenStore {
  broken: Breakage = 'none';
  readonly #store: ListedTokenStore & Pick<TokenStore, 'watch'>;

  constructor(store: ListedTokenStore & Pick<TokenStore, 'watch'>) {
    this.#store = store;
  }

  async get(id: string): Promise<StoredGrant | undefined> {
    this.#check('read');
    return this.#store.get(id);
  }

  async set(id: string, grant: StoredGrant): Promise<void> {
    this.#check('write');
    return this.#store.set(id, grant);
  }

  async delete(...args: Parameters<TokenStore['delete']>): Promise<void> {
    this.#check('write');
    return this.#store.delete(...args);
  }

  async update(id: string, grant: StoredGrant, version: number): Promise<boolean> {
    this.#check('write');
    return this.#store.update(id, grant, version);
  }

  async add(id: string, grant: StoredGrant): Promise<boolean> {
    this.#check('write');
    return this.#store.add(id, grant);
  }

  async lock<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#check('read');
    return this.#store.lock(id, work);
  }

  async *list(): AsyncGenerator<string> {
    this.#check('read');
    yield* this.#store.list();
  }

  /** Hears of no change where the store cannot tell of any. */
  watch(...args: Parameters<NonNullable<TokenStore['watch']>>): () => void {
    return this.#store.watch?.(...args) ?? (() => undefined);
  }

  #check(operation: 'read' | 'write'): void {
    if (this.broken === 'all' || (this.broken === 'writes' && operation === 'write')) {
      throw new Error('The token store is broken on purpose.');
    }
  }
}
