import { KeyedQueue } from '../waiting.js';
import type { TokenStore } from './token-store.js';

/** Called with the id of a record that may have changed, and the version that is stored now; see {@link TokenStore.watch}. */
export type OnChange = (storeId: string, version?: number) => void;

const hubs = new WeakMap<TokenStore, StoreHub>();
/** The hubs of all token stores over a session store, by prefix. */
const sessionHubs = new WeakMap<object, Map<string, StoreHub>>();

/** Returns a token store over a session store, whose hub is that of all token stores with this prefix over it. */
export function overSessionStore<S extends TokenStore>(tokenStore: S, sessionStore: object, prefix: string): S {
  const byPrefix = sessionHubs.get(sessionStore) ?? new Map<string, StoreHub>();
  const hub = byPrefix.get(prefix) ?? new StoreHub();
  sessionHubs.set(sessionStore, byPrefix.set(prefix, hub));
  hubs.set(tokenStore, hub);
  return tokenStore;
}

/** Returns the hub of a store: the same for all strategies of this process that use it. */
export function hubOf(store: TokenStore): StoreHub {
  const hub = hubs.get(store) ?? new StoreHub();
  hubs.set(store, hub);
  return hub;
}

/**
 * What belongs to one store object, however many strategies use it: the lock where the store has none, and the connection on
 * which it reports changes.
 */
export class StoreHub {
  /** The locks of ids in this process. */
  readonly locks: KeyedQueue = new KeyedQueue();
  /** Weakly held: a strategy that is dropped without `close()` is not kept by its store. */
  readonly #listeners = new Set<WeakRef<OnChange>>();
  readonly #dropped = new FinalizationRegistry<WeakRef<OnChange>>((listener) => this.#remove(listener));
  #stopWatching: (() => void) | undefined;

  /**
   * Calls `listener`, which it does not keep alive, for changes by other processes. Opens the store's connection for that with
   * the first listener, and closes it with the last. Returns the function that ends this.
   */
  listen(store: TokenStore, listener: OnChange): () => void {
    const reference = new WeakRef(listener);
    this.#listeners.add(reference);
    this.#dropped.register(listener, reference);
    this.#stopWatching ??= store.watch?.((id, version) => this.notify(id, version));
    return () => this.#remove(reference);
  }

  /** Notifies the strategies of a change, but not the one that made it. @param writer The listener of that one. */
  notify(storeId: string, version: number | undefined, writer?: OnChange): void {
    for (const reference of this.#listeners) {
      const listener = reference.deref();
      if (listener !== writer) listener?.(storeId, version);
    }
  }

  #remove(listener: WeakRef<OnChange>): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }
}
