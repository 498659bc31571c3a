import { number, type Optional, withDefault } from '../checks.js';

/**
 * One grant as a store keeps it: a small JSON object that the store does not interpret.
 *
 * A store must return exactly what it was given, including fields that it does not know.
 */
export interface StoredGrant {
  /** A safe integer that is new whenever the tokens change. {@link TokenStore.update} compares it. */
  readonly version: number;
  /** When the access token expires, in epoch milliseconds. For display and housekeeping only. */
  readonly expiresAt: number;
  /** The tokens and what belongs to them, as one opaque string: a JWE if `encryptionKeys` is set. */
  readonly sealed: string;
}

/** What a lock hands to the work under it, in stores whose locks are leases. */
export interface HeldLease {
  /** Length of the lease, in milliseconds. It ends by itself. */
  readonly leaseMs: number;
  /**
   * Time from the moment at which the store was asked for the lock until the work began, in milliseconds, by the
   * monotonic or the wall clock, whichever shows more: the lease may have begun then.
   */
  readonly ageMs: number;
  /** Resolves to false if the lease expired, was lost by the store, or has another owner. Rejects if the store fails. */
  isHeld(): Promise<boolean>;
}

/**
 * Stores grants. Ids are printable ASCII without white space, at most 1,024 characters. They are already escaped, and
 * ids of different strategies never collide. Ids are case-sensitive and may contain `%`, `+`, `*` and dots: a store
 * whose keys cannot hold them (file names, columns that ignore case) must escape or hash ids, never truncate them.
 *
 * Order of calls: a login calls `set`. A request calls `get`, unless the grant is cached. A refresh calls `lock`, then
 * `get` again inside the lock, then `update`. A logout calls `delete`, an import that replaces nothing `add`. Without
 * `update` or `add` the package calls `get` and `set` instead. Without `lock` it joins refreshes within one process only. Calls may overlap, also for one id. No
 * method may wait for a lock that is held: the work inside a lock calls the store.
 *
 * On failure, reject. A rejection means "unknown": the grant is kept. `undefined` means that the user is logged out,
 * and `false` that another process was faster. Reject rather than wait: a method that does not answer within a few
 * seconds counts as rejected, and a write that was queued until then may undo what happened in between. Errors need
 * not be free of secrets: the package never passes them on unchanged.
 *
 * Return copies, so that a caller's later change of an object changes nothing in the store. If the store has a time
 * to live, it must exceed the lifetime of a refresh token, not of an access token: never derive it from `expiresAt`.
 *
 * Ids that begin with `login:` are marks of used logins. The package deletes them after some minutes; a process that ends
 * before leaves them to the time to live, which may be 12 minutes for such an id. Those that begin with `limit:` hold shares
 * of the option `concurrency`; a minute is enough for them. Those that begin with `frame:` hold logins on their way from a
 * popup to its frame, up to 2 MB each; two minutes are enough for them.
 *
 * `tokenStoreChecks` of `passport-oauth-app/conformance` checks most of this.
 */
export interface TokenStore {
  /**
   * Resolves to the grant, or to `undefined` if it was never set, was deleted, or has expired.
   *
   * Reads what was written last, by any process: from the primary, not from a replica that may lag behind, nor through a
   * proxy or a cache that reads elsewhere. A process that reads an old grant under the lock sends a used refresh token.
   */
  get(id: string): Promise<StoredGrant | undefined>;
  /** Creates or replaces the grant, and restarts its time to live. */
  set(id: string, grant: StoredGrant): Promise<void>;
  /** Removes the grant. Given a `version`, a store that can compare removes only that version. */
  delete(id: string, version?: number): Promise<void>;
  /**
   * Replaces the grant only while its version is still `version`, and restarts its time to live. Resolves to `false`
   * if the version differs or the grant is gone. Never creates a grant.
   *
   * Atomic: of several calls with the same `version`, in any process, one resolves to `true`. Compare exactly, up to
   * 2^53 - 1, and for equality only: versions have no order.
   */
  update?(id: string, grant: StoredGrant, version: number): Promise<boolean>;
  /**
   * Creates the grant only if the id has none, or an expired one. Resolves to `false` if there is one.
   *
   * Atomic: of several calls for an id, in any process, one resolves to `true`, and none replaces what a `set` stored.
   */
  add?(id: string, grant: StoredGrant): Promise<boolean>;
  /**
   * Runs `work` while no other caller, in any process, runs work for the same id. Settles as `work` does, with its very
   * result or error. Locks of other ids are independent. `set`, `update` and `delete` of the id remain possible for
   * every caller and do not free the lock.
   *
   * Rejects without running `work` if the lock cannot be acquired in time. The lock of a holder that died must become
   * free after a lease of about half a minute, longer than any refresh. A holder that was frozen for longer may run
   * beside the next one; `update` then refuses its write. A failure to release the lock is not an error.
   *
   * A lock that hands its lease to `work` has it counted from the moment at which it was asked for. Otherwise it is
   * taken for one of 30 s that begins with `work`.
   */
  lock?<T>(id: string, work: (lease?: HeldLease) => Promise<T>): Promise<T>;
  /**
   * Yields the ids of all grants, or of those whose ids begin with `prefix`, in any order. Ids that begin with `login:`, `limit:` or `frame:`, and locks, are no grants.
   *
   * Reads page by page: neither this process nor the store holds the whole list, and other calls run in between. A grant that
   * exists throughout is yielded, perhaps twice if the storage is reorganized during the iteration. One that is created or
   * deleted during the iteration may be yielded or not. The iteration rejects if the store fails.
   */
  list?(prefix?: string): AsyncIterable<string>;
  /**
   * Calls `changed` for each grant that another process deletes, sets, adds or ends (an `update` that keeps the version),
   * soon after it did. Returns a function that stops this, and closes what it has opened.
   *
   * Best effort, in the background: it neither throws nor rejects. While nothing can be heard of changes it goes on trying;
   * once it hears of them, at first and again, it calls `changed('')`: anything may have changed. Changes of the own process
   * may be reported too.
   *
   * @param changed Gets the id, and the version that is stored now if the grant was set or added.
   */
  watch?(changed: (id: string, version?: number) => void): () => void;
}

/** A token store with all methods but `watch`. */
export type ListedTokenStore = Required<Omit<TokenStore, 'watch'>>;

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

/** Ten years: beyond any use, and within the range of every store. */
const MAX_TTL_SECONDS = 10 * 365 * 24 * 60 * 60;

/** Reads the option `ttl` of a store: seconds that a grant is kept after its last write. Default: 30 days. */
export const ttlSeconds: Optional<number> = withDefault(30 * 24 * 60 * 60, number(1, MAX_TTL_SECONDS, 'seconds'));

/** A refresh seldom takes more than 20 seconds: one HTTP request of 10 s and a second attempt. */
export const DEFAULT_LEASE_SECONDS = 30;

/** Longest lease, in seconds. If its owner dies, the user waits that long. */
export const MAX_LEASE_SECONDS = 600;

/** Reads the option `lease` of a store: seconds. */
export const leaseSeconds: Optional<number> = withDefault(
  DEFAULT_LEASE_SECONDS,
  number(1, MAX_LEASE_SECONDS, 'seconds'),
);

/** Lengths of the leases of locks, in milliseconds. */
const lengths = new WeakMap<object, number>();

/** Records the length of a lock's lease, in milliseconds. */
export function ofLength<Lock extends object>(leaseMs: number, lock: Lock): Lock {
  lengths.set(lock, leaseMs);
  return lock;
}

/** Returns the length of the lease of a token store's lock, in milliseconds; `undefined` for any other lock. */
export function leaseMsOf(lock: object | undefined): number | undefined {
  return lock && lengths.get(lock);
}

/** Prefix of the ids of marks. A mark shows other processes that a login has been used. */
export const MARK_PREFIX = 'login:';

/** Prefix of the ids of shares. Such a record holds how many requests each process may run at once for an account. */
export const SHARE_PREFIX = 'limit:';

/** What ids of hand-overs begin with. A record under one holds the session that a popup has for its frame. */
export const HAND_OVER_PREFIX = 'frame:';

/** How long a store keeps what is no grant, in seconds, by what its id begins with. */
const TTL_SECONDS: Readonly<Record<string, number>> = {
  // Its login expires after ten minutes, and clocks of several hosts differ a little.
  [MARK_PREFIX]: 12 * 60,
  // It is renewed each half second while it is in use.
  [SHARE_PREFIX]: 60,
  // Its process deletes it after one minute.
  [HAND_OVER_PREFIX]: 2 * 60,
};

/** Returns how long a store keeps what it has under an id, in milliseconds: grants for `ttl` seconds, anything else for minutes. */
export function ttlMsOf(id: string, ttl: number): number {
  return Math.ceil(Math.min(ttl, TTL_SECONDS[id.slice(0, id.indexOf(':') + 1)] ?? ttl) * 1000);
}

/** Returns true for the id of a mark, share or hand-over, which is no grant. */
export function isMark(id: string): boolean {
  return Number.isFinite(ttlMsOf(id, Number.POSITIVE_INFINITY));
}

/**
 * Returns the grant in `json`, or `undefined` for anything else. A damaged record counts as no grant: the next login
 * replaces it, where an error would persist until the time to live ends.
 */
export function parseGrant(json: string): StoredGrant | undefined {
  try {
    return asStoredGrant(JSON.parse(json));
  } catch {
    return undefined;
  }
}

/** Returns `value` if it is a stored grant, whatever further fields it has, else `undefined`. */
export function asStoredGrant(value: unknown): StoredGrant | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (!('version' in value) || !Number.isSafeInteger(value.version)) return undefined;
  if (!('expiresAt' in value) || typeof value.expiresAt !== 'number') return undefined;
  return 'sealed' in value && typeof value.sealed === 'string' ? (value as StoredGrant) : undefined;
}
