import { createHash } from 'node:crypto';
import { keyPrefix, readOptions, withDefault, withMethods } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { postgresStoreOfSessions } from './postgres-database.js';
import { redisStoreOfSessions } from './redis-records.js';
import { asStoredGrant, type StoredGrant, type TokenStore, ttlSeconds } from './token-store.js';

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

/** A record in the session store: the fields of a session in which stores look for its expiry, and the grant. */
interface GrantRecord {
  readonly cookie: {
    /** Milliseconds. Read by session-file-store. */
    readonly originalMaxAge: number;
    /** Milliseconds. Read by memorystore and connect-sqlite3. */
    readonly maxAge: number;
    /** Read by connect-redis, connect-mongo, and the stores for MySQL, Knex and Sequelize. */
    readonly expires: Date;
    readonly httpOnly: true;
    readonly path: '/';
  };
  /** The grant's id. Compared when the record is read, so that no store's treatment of keys can mix up two users. */
  readonly id: string;
  readonly grant: StoredGrant;
}

/** Characters of a key after its prefix. With the default prefix a key has 36, as many as a UUID: some stores take no more. */
const HASH_LENGTH = 20;

/**
 * Returns a token store over any express-session store. Grants are kept beside the sessions, under keys of their own,
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
  const locking = redisStoreOfSessions(store, { prefix, ttl }) ?? postgresStoreOfSessions(store, { prefix, ttl });
  if (locking) return locking;
  const get = async (id: string): Promise<StoredGrant | undefined> => {
    const session = await call('read', (done) => store.get(keyOf(prefix, id), done));
    if (typeof session !== 'object' || session === null || !('grant' in session && 'id' in session)) return undefined;
    return session.id === id ? asStoredGrant(structuredClone(session.grant)) : undefined;
  };
  return {
    get,
    set: async (id, grant) => {
      await call('save', (done) => store.set(keyOf(prefix, id), grantRecord(id, grant, ttl), done));
    },
    delete: async (id, version) => {
      if (version !== undefined && (await get(id))?.version !== version) return;
      await call('delete', (done) => store.destroy(keyOf(prefix, id), done));
    },
  };
}

/** Returns a key that every session store can hold: short, a valid file name, and the same in upper and lower case. */
function keyOf(prefix: string, id: string): string {
  const hash = BigInt(`0x${createHash('sha256').update(id).digest('hex')}`);
  return prefix + hash.toString(36).padStart(HASH_LENGTH, '0').slice(-HASH_LENGTH);
}

function grantRecord(id: string, grant: StoredGrant, ttlSeconds: number): GrantRecord {
  const maxAge = ttlSeconds * 1000;
  const expires = new Date(Date.now() + maxAge);
  // A copy: some stores keep the object itself, or write to it.
  return {
    cookie: { originalMaxAge: maxAge, maxAge, expires, httpOnly: true, path: '/' },
    id,
    grant: structuredClone(grant),
  };
}

/** Promisifies one call of a session store. The first outcome counts: a callback, an exception or a rejection. */
async function call(verb: string, start: (done: Callback) => unknown): Promise<unknown> {
  try {
    return await new Promise<unknown>((resolve, reject) => {
      const done: Callback = (error, value) => {
        // File stores report a missing session as ENOENT. express-session treats that as "no session" too.
        const isMissing = typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
        if (error === undefined || error === null || error === false || isMissing) resolve(value);
        else reject(error);
      };
      // An async method may fail before it calls back. The value that it resolves to means nothing.
      Promise.resolve(start(done)).catch(reject);
    });
  } catch (error) {
    throw new TokenStoreError(`The session store could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

type Callback = (error?: unknown, value?: unknown) => void;
