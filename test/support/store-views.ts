import type { TokenStore } from '../../src/stores/token-store.js';

/** Returns a token store over the same records, as another process has it: what belongs to a store object is not shared. */
export function inAnotherProcess<S extends TokenStore>(store: S): S {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** The same store without `update` and `lock`, as session stores are. */
export function withoutLock(store: TokenStore): TokenStore {
  return {
    get: (id) => store.get(id),
    set: (id, grant) => store.set(id, grant),
    delete: (...args) => store.delete(...args),
  };
}
