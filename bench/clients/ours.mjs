import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { seededGrant } from '../lib/seeded-grant.mjs';
import { strategyOptions } from '../lib/strategy-options.mjs';

/** The client of a grant, as handlers and jobs have it. */
export async function createClient({ service }) {
  const tokenStore = memoryTokenStore();
  const { id, grant } = await seededGrant('1', Date.now());
  await tokenStore.set(id, grant);
  const strategy = new Strategy({
    ...strategyOptions(service),
    tokenStore,
  });
  const client = strategy.client('1');
  return () => client.projects();
}
