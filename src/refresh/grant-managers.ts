import type { IncomingMessage } from 'node:http';
import { noTokenStore } from '../no-token-store.js';
import { type SessionStoreLike, sessionTokenStore } from '../stores/session-token-store.js';
import type { TokenStore } from '../stores/token-store.js';
import type { GrantKeeper } from './grant-manager.js';

/** The keepers of a strategy: one over the option `tokenStore`, or else one over each session store that requests bring. */
export class Keepers {
  readonly #tokenStore: TokenStore | undefined;
  readonly #newKeeper: (store: TokenStore) => GrantKeeper;
  readonly #byStore = new Map<object, GrantKeeper>();

  constructor(tokenStore: TokenStore | undefined, newKeeper: (store: TokenStore) => GrantKeeper) {
    this.#tokenStore = tokenStore;
    this.#newKeeper = newKeeper;
  }

  /** The keeper outside of a request. @throws ConfigurationError where no store is known yet, or several session stores are */
  only(): GrantKeeper {
    if (this.#tokenStore) return this.#over(this.#tokenStore, asItIs);
    // With several nobody could tell which one has the grant.
    const [keeper, ...others] = this.#byStore.values();
    if (keeper && others.length === 0) return keeper;
    throw noTokenStore();
  }

  /** The keeper for a request; `undefined` where neither the option nor the session leads to a store. */
  for(req: IncomingMessage): GrantKeeper | undefined {
    if (this.#tokenStore) return this.#over(this.#tokenStore, asItIs);
    const store: unknown = 'sessionStore' in req ? req.sessionStore : undefined;
    if (typeof store !== 'object' || store === null) return undefined;
    return this.#over(store as SessionStoreLike, sessionTokenStore);
  }

  /** Lets running refreshes and saves finish. */
  async close(): Promise<void> {
    await Promise.all([...this.#byStore.values()].map((keeper) => keeper.close()));
  }

  #over<S extends object>(store: S, open: (store: S) => TokenStore): GrantKeeper {
    const known = this.#byStore.get(store);
    if (known) return known;
    const keeper = this.#newKeeper(open(store));
    this.#byStore.set(store, keeper);
    return keeper;
  }
}

function asItIs(store: TokenStore): TokenStore {
  return store;
}
