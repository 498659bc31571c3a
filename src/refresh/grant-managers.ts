import type { IncomingMessage } from 'node:http';
import { noTokenStore } from '../no-token-store.js';
import { type SessionStoreLike, sessionTokenStore } from '../stores/session-token-store.js';
import type { TokenStore } from '../stores/token-store.js';
import type { GrantManager } from './grant-manager.js';

/** The managers of a strategy: one over the option `tokenStore`, or else one over each session store that requests bring. */
export class GrantManagers {
  readonly #tokenStore: TokenStore | undefined;
  readonly #newManager: (store: TokenStore) => GrantManager;
  readonly #byStore = new Map<object, GrantManager>();

  constructor(tokenStore: TokenStore | undefined, newManager: (store: TokenStore) => GrantManager) {
    this.#tokenStore = tokenStore;
    this.#newManager = newManager;
  }

  /** The manager outside of a request. @throws ConfigurationError where no store is known yet, or several session stores are */
  only(): GrantManager {
    if (this.#tokenStore) return this.#over(this.#tokenStore, asItIs);
    // With several nobody could tell which one has the grant.
    const [manager, ...others] = this.#byStore.values();
    if (manager && others.length === 0) return manager;
    throw noTokenStore();
  }

  /** The manager for a request; `undefined` where neither the option nor the session leads to a store. */
  for(req: IncomingMessage): GrantManager | undefined {
    if (this.#tokenStore) return this.#over(this.#tokenStore, asItIs);
    const store: unknown = 'sessionStore' in req ? req.sessionStore : undefined;
    if (typeof store !== 'object' || store === null) return undefined;
    return this.#over(store as SessionStoreLike, sessionTokenStore);
  }

  /** Lets running refreshes and saves finish. */
  async close(): Promise<void> {
    await Promise.all([...this.#byStore.values()].map((manager) => manager.close()));
  }

  #over<S extends object>(store: S, open: (store: S) => TokenStore): GrantManager {
    const known = this.#byStore.get(store);
    if (known) return known;
    const manager = this.#newManager(open(store));
    this.#byStore.set(store, manager);
    return manager;
  }
}

function asItIs(store: TokenStore): TokenStore {
  return store;
}
