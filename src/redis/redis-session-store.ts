import type { LockingStore, LockingStoreSettings, RedisSessionStore } from '../stores/token-store.js';
import { connectionOf } from './redis-connection.js';
import { redisRecords } from './redis-records.js';

/** Returns the token store of a session store that is connect-redis over node-redis: under its keys. */
export function redisStoreOfSessions(store: RedisSessionStore, settings: LockingStoreSettings): LockingStore {
  const prefix = `${store.prefix}${settings.prefix}`;
  return redisRecords(connectionOf(store.client), { ...settings, prefix, replicas: 0, channel: undefined });
}
