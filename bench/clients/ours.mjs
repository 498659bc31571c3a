import { memoryTokenStore, Strategy } from '../../dist/index.js';
import { seededGrant } from '../lib/seeded-grant.mjs';

/** The client of a grant, as handlers and jobs have it. */
export async function createClient({ service }) {
  const tokenStore = memoryTokenStore();
  const { id, grant } = await seededGrant('1', Date.now());
  await tokenStore.set(id, grant);
  const strategy = new Strategy({
    authUrl: service.url,
    baseUrl: service.url,
    clientID: service.clientID,
    clientSecret: service.clientSecret,
    callbackURL: 'http://127.0.0.1/callback',
    scope: 'project',
    tokenStore,
  });
  const client = strategy.client('1');
  return () => client.projects();
}
