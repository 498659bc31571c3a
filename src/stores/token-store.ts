/**
 * One grant as a store keeps it: plain JSON, small, and never to be interpreted by the store.
 *
 * A store must give back exactly what it was given, fields that it does not know included.
 */
export interface StoredGrant {
  /** Differs after every write of the grant; a safe integer. What {@link TokenStore.update} compares. */
  readonly version: number;
  /** When the access token expires, in epoch milliseconds. For display and housekeeping; it decides nothing. */
  readonly expiresAt: number;
  /** The tokens and what belongs to them, in one opaque string: a JWE where `encryptionKeys` are set. */
  readonly sealed: string;
}

/**
 * Keeps grants. Ids are printable ASCII without white space, at most 1,024 characters, already escaped and
 * already apart for each strategy. They differ by case too, and may hold `%`, `+`, `*` and dots: a store whose keys
 * cannot (names of files, columns that fold case) must escape or hash them, not cut them off.
 *
 * The order of calls: a login calls `set`; a request calls `get` (unless the grant is cached); a refresh calls
 * `lock`, then `get` again inside of it, then `update`; a logout calls `delete`. A store without `update` gets a
 * `get` and a `set` instead; one without `lock` gets its refreshes joined within one process alone. Calls may come
 * at the same time, for one id as well, and none of them may wait for what holds a lock: `work` calls the store.
 *
 * On failure, reject: a rejection means "not known", and no grant is ever given up because of one, where an
 * `undefined` or a `false` means that the user is logged out or that another process was faster. Reject rather than
 * wait: a method that does not answer within a few seconds counts as rejected, and a write that was queued for then
 * may undo what happened in between. What is thrown need not be cleaned of secrets; it is not passed on as it is.
 *
 * What comes out must not be what went in: copies, so that a caller's later change changes nothing. A time to live,
 * if the store has one, has to be longer than a refresh token lives, not an access token: never go by `expiresAt`.
 *
 * `tokenStoreChecks` of `passport-oauth-app/conformance` tells whether a store does all of this.
 */
export interface TokenStore {
  /** Resolves to the grant, or to `undefined` if there is none (never set, deleted, or past its time to live). */
  get(id: string): Promise<StoredGrant | undefined>;
  /** Creates or replaces the grant, and starts its time to live anew. */
  set(id: string, grant: StoredGrant): Promise<void>;
  /** Removes the grant. Resolves also if there was none. */
  delete(id: string): Promise<void>;
  /**
   * Replaces the grant only while its version is still `version`, and then starts its time to live anew; resolves to
   * false if it changed or is gone. Never creates one.
   * Atomic: of several calls with the same `version`, in any process, one resolves to true. Compare exactly, up to
   * 2^53 - 1, and only for equality: versions are not in order.
   */
  update?(id: string, grant: StoredGrant, version: number): Promise<boolean>;
  /**
   * Runs `work` while no one else, in any process, runs work for the same id, and settles as `work` does: with its
   * very result or error. Locks of other ids go on meanwhile, however many. `set`, `update` and `delete` of the id
   * are allowed to everyone and do not free the lock.
   *
   * Rejects without running `work` if the lock cannot be had in time. A holder that dies must free it in time: after
   * a lease of half a minute or so, longer than any refresh. One that was frozen for longer than that may run on
   * beside the next holder; `update` then refuses what it writes. If giving the lock back fails, that is no error.
   */
  lock?<T>(id: string, work: () => Promise<T>): Promise<T>;
}
