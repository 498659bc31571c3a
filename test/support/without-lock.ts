import type { TokenStore } from '../../src/stores/token-store.js';

/** The same store without `update` and `lock`, as session stores are. */
export function withoutLock(store: TokenStore): TokenStore {
  return {
    get: (id) => store.get(id),
    set: (id, grant) => store.set(id, grant),
    delete: (...args) => store.delete(...args),
  };
}
