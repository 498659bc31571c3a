import { createHash } from 'node:crypto';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { prefixOption, refuseUnknownOptions, requireMethods, ttlOption } from './store-options.js';
import { asStoredGrant } from './stored-grant.js';
import type { StoredGrant, TokenStore } from './token-store.js';

/** What is used of an express-session store: three of its methods, in the callback form that all stores have. */
export interface SessionStoreLike {
  get(sid: string, callback: (error: unknown, session?: unknown) => void): unknown;
  set(sid: string, session: object, callback: (error?: unknown) => void): unknown;
  destroy(sid: string, callback: (error?: unknown) => void): unknown;
}

/** Options of {@link sessionTokenStore}. */
export interface SessionTokenStoreOptions {
  /** Seconds that a grant is kept after it was last written, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Stands before each grant id, 1 to 64 printable ASCII characters without white space and slashes. Default:
   * `oauth-app-grant.`; session ids of express-session hold no dot, so grants and sessions never meet.
   */
  readonly prefix?: string | undefined;
}

/** What the session store is given: enough of a session for every store to find its expiry in, and the grant. */
interface GrantRecord {
  readonly cookie: {
    /** Milliseconds; session-file-store goes by this one. */
    readonly originalMaxAge: number;
    /** Milliseconds; memorystore goes by this one. */
    readonly maxAge: number;
    /** connect-redis, connect-pg-simple and connect-mongo go by this one. */
    readonly expires: Date;
    readonly httpOnly: true;
    readonly path: '/';
  };
  readonly grant: StoredGrant;
}

/** What may stand in a key as it is, since it may in the name of a file too. */
const PLAIN_ID = /^[\w.~+%-]*$/;

/** Characters of a key at most: what the SQL stores have room for. */
const MAX_KEY_LENGTH = 128;

const OWNER = 'sessionTokenStore';

/**
 * A token store over any express-session store: grants lie beside the sessions, under keys of their own, with
 * nothing further to set up. It has no `update` and no `lock`, since session stores have nothing to build them on:
 * refreshes are joined within a process, not across several.
 *
 * With session-file-store, set its option `retries: 0`: it reads a missing file several times over otherwise.
 *
 * @param store any express-session store, for example what `req.sessionStore` holds
 * @throws {ConfigurationError} if `store` lacks a method, or an option is wrong or unknown
 */
export function sessionTokenStore(store: SessionStoreLike, options: SessionTokenStoreOptions = {}): TokenStore {
  requireMethods(OWNER, 'store', store, { what: 'an express-session store', methods: ['get', 'set', 'destroy'] });
  refuseUnknownOptions(OWNER, options, ['ttl', 'prefix']);
  const ttl = ttlOption(OWNER, options.ttl);
  const prefix = prefixOption(OWNER, options.prefix, 'oauth-app-grant.');
  return {
    get: async (id) => {
      const session = await called('read', (done) => store.get(keyOf(prefix, id), done));
      return grantIn(session);
    },
    set: async (id, grant) => {
      await called('save', (done) => store.set(keyOf(prefix, id), grantRecord(grant, ttl, Date.now()), done));
    },
    delete: async (id) => {
      await called('delete', (done) => store.destroy(keyOf(prefix, id), done));
    },
  };
}

/** Keys that are too long, or that could leave a file store's folder, are replaced by their hash. */
function keyOf(prefix: string, id: string): string {
  if (PLAIN_ID.test(id) && prefix.length + id.length <= MAX_KEY_LENGTH) return prefix + id;
  // No plain id holds "=", so a hashed one is never taken for another.
  return `${prefix}=${createHash('sha256').update(id).digest('base64url')}`;
}

function grantRecord(grant: StoredGrant, ttlSeconds: number, now: number): GrantRecord {
  const maxAge = ttlSeconds * 1000;
  const cookie = {
    originalMaxAge: maxAge,
    maxAge,
    expires: new Date(now + maxAge),
    httpOnly: true,
    path: '/',
  } as const;
  // A copy: some stores keep the object itself, or write on it.
  return { cookie, grant: structuredClone(grant) };
}

function grantIn(session: unknown): StoredGrant | undefined {
  if (typeof session !== 'object' || session === null || !('grant' in session)) return undefined;
  return asStoredGrant(structuredClone(session.grant));
}

/** One call of a session store as a promise. Its first answer counts, be it a callback, a throw or a rejection. */
async function called(verb: string, call: (done: Callback) => unknown): Promise<unknown> {
  try {
    return await new Promise<unknown>((resolve, reject) => {
      const returned = call((error, value) => (isFailure(error) ? reject(error) : resolve(value)));
      // An async method may fail before it comes to its callback; what it resolves to means nothing.
      Promise.resolve(returned).catch(reject);
    });
  } catch (error) {
    throw new TokenStoreError(`The session store could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

type Callback = (error?: unknown, value?: unknown) => void;

/** File stores report a missing session as ENOENT; express-session takes that as "no session", and so do we. */
function isFailure(error: unknown): boolean {
  if (error === undefined || error === null || error === false) return false;
  return !(typeof error === 'object' && 'code' in error && error.code === 'ENOENT');
}
