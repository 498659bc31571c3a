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
