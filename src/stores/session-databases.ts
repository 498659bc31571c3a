import type { TokenStore } from './token-store.js';

/** A token store that is built on the database of a session store. */
export type LockingStore = Required<Omit<TokenStore, 'list' | 'watch'>>;

/** Its settings. Times in seconds. */
export interface LockingStoreSettings {
  readonly prefix: string;
  readonly ttl: number;
  readonly lease: number;
}

/** connect-redis over node-redis. */
export interface RedisSessionStore {
  readonly client: { readonly isOpen: boolean; sendCommand(...args: never[]): Promise<unknown> };
  readonly prefix: string;
}

/** connect-pg-simple. */
export interface PostgresSessionStore {
  /** Calls back with the first row; it creates the table if the application has told it to. */
  query(text: string, values: unknown[] | undefined, callback: (error: unknown, row?: unknown) => void): void;
  quotedTable(): string;
}

/** Returns true for connect-redis 7 and later over node-redis that writes sessions as JSON. */
export function isRedisStore(store: object): store is RedisSessionStore {
  if (!('client' in store && 'prefix' in store && 'scanCount' in store && 'serializer' in store)) return false;
  const { client, serializer } = store;
  return serializer === JSON && typeof client === 'object' && client !== null && 'isOpen' in client;
}

/** Returns true for connect-pg-simple. */
export function isPostgresStore(store: object): store is PostgresSessionStore {
  return ['pruneSessions', 'query', 'quotedTable'].every((name) => typeof Reflect.get(store, name) === 'function');
}
