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
  /** Calls back with the first row; creates the table if the application has set that option. */
  query(text: string, values: unknown[] | undefined, callback: (error: unknown, row?: unknown) => void): void;
  quotedTable(): string;
}

/**
 * Returns true for connect-redis over a client of node-redis 4 or later that writes sessions as JSON. A client in legacy mode,
 * which connect-redis 6 needs, calls back in place of returning promises: no lock can be built on it.
 */
export function isRedisStore(store: object): store is RedisSessionStore {
  if (!('client' in store && 'prefix' in store && 'scanCount' in store && 'serializer' in store)) return false;
  const { client, prefix, serializer } = store;
  if (serializer !== JSON || typeof prefix !== 'string' || typeof client !== 'object' || client === null) return false;
  const field = (name: string): unknown => Reflect.get(client, name);
  const isLegacy = Boolean(Reflect.get(Object(field('options')), 'legacyMode'));
  return typeof field('isOpen') === 'boolean' && typeof field('sendCommand') === 'function' && !isLegacy;
}

/** Returns true for connect-pg-simple. */
export function isPostgresStore(store: object): store is PostgresSessionStore {
  const method = (name: string): unknown => Reflect.get(store, name);
  const quotedTable = method('quotedTable');
  if (typeof method('pruneSessions') !== 'function' || typeof method('query') !== 'function') return false;
  try {
    return typeof quotedTable === 'function' && typeof quotedTable.call(store) === 'string';
  } catch {
    return false;
  }
}
