import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { seedGrant } from '../lib/seeded-grant.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';

/** The client of a grant, as handlers and jobs have it. */
export async function createClient({ service }) {
  const tokenStore = memoryTokenStore();
  const strategy = new Strategy({
    ...strategyOptions(service),
    tokenStore,
  });
  await seedGrant(strategy, '1', Date.now());
  const client = strategy.client('1');
  return () => client.projects();
}
