import { memoryTokenStore } from 'passport-oauth-app';
import type { ListedTokenStore } from '../../src/stores/token-store.js';

export type StoreMethod = keyof ListedTokenStore;

/** A token store with all methods but `watch` that does what a test wants before each call, such as failing, waiting or never ending. */
export class TroubledStore implements ListedTokenStore {
  /** Every call, as it came in. */
  readonly calls: StoreMethod[] = [];
  /** Runs before each call. */
  before: (method: StoreMethod, id: string) => unknown = () => undefined;
  readonly inner: ListedTokenStore = memoryTokenStore();

  get: ListedTokenStore['get'] = this.#troubled('get');
  set: ListedTokenStore['set'] = this.#troubled('set');
  delete: ListedTokenStore['delete'] = this.#troubled('delete');
  update: ListedTokenStore['update'] = this.#troubled('update');
  add: ListedTokenStore['add'] = this.#troubled('add');
  lock: ListedTokenStore['lock'] = this.#troubled('lock');

  async *list(prefix?: string): AsyncGenerator<string> {
    this.calls.push('list');
    await this.before('list', '');
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

  #troubled<M extends Exclude<StoreMethod, 'list'>>(method: M): ListedTokenStore[M] {
    const call = async (...args: Parameters<ListedTokenStore[M]>) => {
      this.calls.push(method);
      await this.before(method, args[0]);
      return await Reflect.apply(this.inner[method], this.inner, args);
    };
    return call as ListedTokenStore[M];
  }
}
