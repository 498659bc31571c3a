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
 * already apart for each strategy.
 *
 * Every method rejects if the store could not do its work: a rejection means "not known", and no grant is ever
 * given up because of one. A method that does not answer within a few seconds counts as rejected.
 *
 * The order of calls: a login calls `set`; a request calls `get` (unless the grant is cached); a refresh calls
 * `lock`, then `get` again inside of it, then `update`; a logout calls `delete`. A store without `update` gets a
 * `get` and a `set` instead; one without `lock` gets its refreshes joined within one process alone.
 */
export interface TokenStore {
  /** Resolves to the grant, or to `undefined` if there is none (never set, deleted, or past its time to live). */
  get(id: string): Promise<StoredGrant | undefined>;
  /** Creates or replaces the grant, and starts its time to live anew. */
  set(id: string, grant: StoredGrant): Promise<void>;
  /** Removes the grant. Resolves also if there was none. */
  delete(id: string): Promise<void>;
  /**
   * Replaces the grant only while its version is still `version`; resolves to false if it changed or is gone.
   * Atomic: of several calls with the same `version`, in any process, one resolves to true.
   */
  update?(id: string, grant: StoredGrant, version: number): Promise<boolean>;
  /**
   * Runs `work` while no one else, in any process, runs work for the same id, and settles as `work` does.
   * Rejects without running `work` if the lock cannot be had. A holder that dies must free the lock in time.
   */
  lock?<T>(id: string, work: () => Promise<T>): Promise<T>;
}
