import { onTestFinished } from 'vitest';
import type { TokenStore } from '../../src/stores/token-store.js';
import { world } from './one-world.js';
import { startWorld, type World, type WorldOptions } from './world.js';

/** Starts another process of the application, for the service and with the clock of the world. Its token store is an object of its own. */
export async function another({ strategy, ...options }: WorldOptions = {}): Promise<World> {
  const { clock } = world.options.strategy ?? {};
  const tokenStore = strategy?.tokenStore && { tokenStore: inAnotherProcess(strategy.tokenStore) };
  const own = { ...(clock && { clock }), ...strategy, ...tokenStore };
  const other = await startWorld({ running: world.service, ...options, strategy: own });
  onTestFinished(() => other.close());
  return other;
}

/** Returns a token store over the same records, as another process has it: what belongs to a store object is not shared. */
export function inAnotherProcess<S extends TokenStore>(store: S): S {
  return new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
