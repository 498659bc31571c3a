import { onTestFinished } from 'vitest';
import { inAnotherProcess } from './in-another-process.js';
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
