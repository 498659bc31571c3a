import type { IncomingMessage } from 'node:http';
import { ConfigurationError, closedError } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { type SessionStoreLike, sessionTokenStore } from '../stores/session-token-store.js';
import type { TokenStore } from '../stores/token-store.js';

/** The grant managers of a strategy: one for the option `tokenStore`, else one for each session store of its requests. */
export class GrantManagers {
  readonly #tokenStore: TokenStore | undefined;
  readonly #createManager: (store: TokenStore) => GrantManager;
  readonly #byStore = new Map<object, GrantManager>();
  readonly #stores: TokenStore[] = [];
  /** True once the strategy is closed. */
  isClosed = false;

  constructor(tokenStore: TokenStore | undefined, createManager: (store: TokenStore) => GrantManager) {
    this.#tokenStore = tokenStore;
    this.#createManager = createManager;
    if (tokenStore) this.#add(tokenStore, tokenStore);
  }

  /** The store of all grants; `undefined` if there is none yet, or several session stores have some. */
  get onlyStore(): TokenStore | undefined {
    return this.#stores.length === 1 ? this.#stores[0] : undefined;
  }

  /** Returns the manager outside of a request. @throws ConfigurationError if there is no store yet, or several session stores */
  only(): GrantManager {
    if (this.isClosed) throw closedError();
    const [manager, ...others] = this.#byStore.values();
    if (manager && others.length === 0) return manager;
    throw new ConfigurationError(
      'tokenStore: outside of a request there is no session that leads to a store. Set tokenStore: sessionTokenStore(store), with the store of your sessions.',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  /** Returns the manager for a request. @throws ConfigurationError if neither the option nor the session has a store */
  for(req: IncomingMessage): GrantManager {
    if (this.#tokenStore) return this.only();
    const store: unknown = 'sessionStore' in req ? req.sessionStore : undefined;
    if (typeof store === 'object' && store !== null)
      return this.#byStore.get(store) ?? this.#add(store, sessionTokenStore(store as SessionStoreLike));
    throw new ConfigurationError(
      'tokenStore: the session has no store to keep grants in (cookie-session has none). Set tokenStore, for example to redisTokenStore(…) or postgresTokenStore(…).',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  /** Waits for running refreshes and saves. Managers that are created later are closed too. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.#byStore.values()].map((manager) => manager.close()));
  }

  /** See {@link GrantManager.retire}. */
  async retire(): Promise<void> {
    await Promise.all([...this.#byStore.values()].map((manager) => manager.retire()));
  }

  #add(key: object, store: TokenStore): GrantManager {
    const manager = this.#createManager(store);
    this.#byStore.set(key, manager);
    this.#stores.push(store);
    if (this.isClosed) void manager.close();
    return manager;
  }
}
