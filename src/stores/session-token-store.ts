import { hash } from 'node:crypto';
import { keyPrefix, readOptions, withDefault, withMethods } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { loadAhead, succeedOnce } from '../waiting.js';
import { overSessionStore } from './store-access.js';
import {
  asStoredGrant,
  DEFAULT_LEASE_SECONDS,
  type LockingStore,
  type LockingStoreSettings,
  ofLength,
  type PostgresSessionStore,
  type RedisSessionStore,
  type StoredGrant,
  type TokenStore,
  ttlMsOf,
  ttlSeconds,
} from './token-store.js';

/** The part of an express-session store that is used: three methods, in the callback form that all stores have. */
export interface SessionStoreLike {
  get(sid: string, callback: (error: unknown, session?: unknown) => void): unknown;
  set(sid: string, session: object, callback: (error?: unknown) => void): unknown;
  destroy(sid: string, callback: (error?: unknown) => void): unknown;
}

/** Options of {@link sessionTokenStore}. */
export interface SessionTokenStoreOptions {
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Prefix of every key, 1 to 64 printable ASCII characters without white space and slashes. A key is the prefix and 20
   * characters more. Default: `oauth-app-grant.`; session ids of express-session contain no dot, so a grant and a
   * session never have the same key.
   */
  readonly prefix?: string | undefined;
}

/** Characters of a key after its prefix. With the default prefix a key has 36, as many as a UUID: some stores take no more. */
const HASH_LENGTH = 20;

/**
 * Returns a token store over any express-session store. Grants are kept next to the sessions, under separate keys,
 * with nothing to set up.
 *
 * Over connect-pg-simple, and over connect-redis 9 and later, it has `update` and `lock`: processes refresh a grant once
 * between them. Over other stores it has neither, since they offer nothing to build them on: refreshes are joined within
 * a process, not across processes.
 *
 * With session-file-store set its option `retries: 0`: it reads a missing file several times otherwise.
 *
 * @param store any express-session store, for example `req.sessionStore`
 * @throws {ConfigurationError} if `store` lacks a method, or an option is wrong or unknown
 */
export function sessionTokenStore(store: SessionStoreLike, options: SessionTokenStoreOptions = {}): TokenStore {
  withMethods<SessionStoreLike>('an express-session store', ['get', 'set', 'destroy'])('store', store);
  const { ttl, prefix } = readOptions('sessionTokenStore', options, {
    ttl: ttlSeconds,
    prefix: withDefault('oauth-app-grant.', keyPrefix),
  });
  const load = lockingStoreLoader(store, { prefix, ttl, lease: DEFAULT_LEASE_SECONDS });
  if (load) return overSessionStore(lazyStore(load), store, prefix);
  const get = async (id: string): Promise<StoredGrant | undefined> => {
    const session = await call(store, 'get', prefix, id);
    if (typeof session !== 'object' || session === null || !('grant' in session && 'id' in session)) return undefined;
    // Compared, so that no store's treatment of keys can mix up two users.
    const grant = session.id === id ? asStoredGrant(session.grant) : undefined;
    return grant && { ...grant };
  };
  const tokenStore: TokenStore = {
    get,
    set: async (id, grant) => {
      const maxAge = ttlMsOf(id, ttl);
      // Stores look for the expiry in one of these fields: session-file-store in `originalMaxAge`, memorystore and
      // connect-sqlite3 in `maxAge`, connect-redis, connect-mongo, and those for MySQL, Knex and Sequelize in `expires`.
      const expires = new Date(Date.now() + maxAge);
      const cookie = { originalMaxAge: maxAge, maxAge, expires, httpOnly: true, path: '/' };
      // A copy: some stores keep the object itself, or write to it.
      await call(store, 'set', prefix, id, { cookie, id, grant: { ...grant } });
    },
    delete: async (id, version) => {
      if (version !== undefined && (await get(id))?.version !== version) return;
      await call(store, 'destroy', prefix, id);
    },
  };
  return overSessionStore(tokenStore, store, prefix);
}

/** Returns what loads the code for the database of a session store; `undefined` for one without locks. */
function lockingStoreLoader(store: object, settings: LockingStoreSettings): (() => Promise<LockingStore>) | undefined {
  if (isRedisStore(store))
    return async () => (await import('../redis/redis-session-store.js')).redisStoreOfSessions(store, settings);
  if (isPostgresStore(store))
    return async () => (await import('../postgres/postgres-session-store.js')).postgresStoreOfSessions(store, settings);
  return undefined;
}

/**
 * Returns true for connect-redis over a client of node-redis 4 or later that writes sessions as JSON. A client in legacy mode,
 * which connect-redis 6 needs, calls back in place of returning promises: no lock can be built on it.
 */
function isRedisStore(store: object): store is RedisSessionStore {
  if (!('client' in store && 'prefix' in store && 'scanCount' in store && 'serializer' in store)) return false;
  const { client, prefix, serializer } = store;
  if (serializer !== JSON || typeof prefix !== 'string' || typeof client !== 'object' || client === null) return false;
  const field = (name: string): unknown => Reflect.get(client, name);
  const isLegacy = Boolean(Reflect.get(Object(field('options')), 'legacyMode'));
  return typeof field('isOpen') === 'boolean' && typeof field('sendCommand') === 'function' && !isLegacy;
}

/** Returns true for connect-pg-simple. */
function isPostgresStore(store: object): store is PostgresSessionStore {
  const method = (name: string): unknown => Reflect.get(store, name);
  const quotedTable = method('quotedTable');
  if (typeof method('pruneSessions') !== 'function' || typeof method('query') !== 'function') return false;
  try {
    return typeof quotedTable === 'function' && typeof quotedTable.call(store) === 'string';
  } catch {
    return false;
  }
}

/** Returns a store by code that is loaded ahead. */
function lazyStore(load: () => Promise<LockingStore>): LockingStore {
  const loaded = loadAhead(succeedOnce(load));
  return {
    get: async (id) => (await loaded()).get(id),
    set: async (id, grant) => (await loaded()).set(id, grant),
    delete: async (id, version) => (await loaded()).delete(id, version),
    update: async (id, grant, version) => (await loaded()).update(id, grant, version),
    add: async (id, grant) => (await loaded()).add(id, grant),
    lock: ofLength(DEFAULT_LEASE_SECONDS * 1000, async (id, work) => (await loaded()).lock(id, work)),
  };
}

/** For messages. */
const VERBS = { get: 'read', set: 'save', destroy: 'delete' } as const;

/** Promisifies a call of a session store. The first outcome counts: a callback, an exception or a rejection. */
function call(
  store: SessionStoreLike,
  method: 'get' | 'set' | 'destroy',
  prefix: string,
  id: string,
  record: object = {},
): Promise<unknown> {
  // A key that every session store can hold: short, a valid file name, and the same in upper and lower case.
  const digest = BigInt(`0x${hash('sha256', id, 'hex')}`);
  const key = prefix + digest.toString(36).padStart(HASH_LENGTH, '0').slice(-HASH_LENGTH);
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void =>
      reject(new TokenStoreError(`The session store could not ${VERBS[method]} a grant.`, { cause: safeCause(error) }));
    const done = (error?: unknown, value?: unknown): void => {
      // File stores report a missing session as ENOENT. express-session treats that as "no session" too.
      const isMissing = typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
      if (error === undefined || error === null || error === false || isMissing) resolve(value);
      else fail(error);
    };
    try {
      const returned = method === 'set' ? store.set(key, record, done) : store[method](key, done);
      // An async method may fail before it calls back. The value that it resolves to means nothing.
      Promise.resolve(returned).catch(fail);
    } catch (error) {
      fail(error);
    }
  });
}
