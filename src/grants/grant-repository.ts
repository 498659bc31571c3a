import { withTimeout } from '../stores/time-limit.js';
import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import { type Grant, hasSameTokens, newVersion } from './grant.js';
import type { GrantCache } from './grant-cache.js';
import type { GrantCodec } from './grant-codec.js';
import { StoreAccess } from './store-access.js';
import { type WriteLimits, WriteQueue } from './write-queue.js';

/** Parts of a {@link GrantRepository}. */
export interface GrantRepositoryOptions {
  readonly store: TokenStore;
  readonly codec: GrantCodec;
  readonly cache: GrantCache | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Called for a record that cannot be decoded. The record is kept. */
  readonly onUnreadable: (id: string) => void;
  /** Called when the store works again after a failure. */
  readonly onRecovery: () => void;
}

/** Time limit of a read, in milliseconds. */
const READ_MS = 5_000;
/** Time limit of a read while the cache still has the grant as it was last seen. */
const READ_AGAIN_MS = 1_000;
/** Age up to which a running read is joined: later callers need not wait as long as one that may hang. */
const JOIN_MS = 500;
/** A late save may replace newer tokens, and a late removal may remove a newer login: both delay the writes behind them. */
const SAVE: WriteLimits = { waitMs: 2_000, abandonMs: 15_000 };
const REMOVAL: WriteLimits = { waitMs: 5_000, abandonMs: 15_000 };
/** A save that compares versions is refused if it arrives late. Callers wait less than for a read: they have the grant in memory. */
const UPDATE: WriteLimits = { waitMs: 2_000, abandonMs: 2_000 };

/** A read of the store that runs. */
interface RunningRead {
  readonly grant: Promise<Grant | undefined>;
  /** On the monotonic clock. */
  readonly since: number;
}

/** Stands in a record in place of the tokens, between the refusal of a grant and its deletion. */
const ENDED = 'ended';

/**
 * Reads and writes the grants of one token store, decoded and cached.
 *
 * Writes of one grant run one after the other in this process, and the cache follows them within the same task: a slow
 * save never overtakes the logout that cancels it.
 *
 * All methods take ids of the store, and reject with TokenStoreError if the store fails.
 */
export class GrantRepository {
  readonly #options: GrantRepositoryOptions;
  readonly #store: StoreAccess;
  readonly #writes: WriteQueue;
  /** Running reads that no write has overtaken, the newest last. */
  readonly #reads = new Map<string, Set<RunningRead>>();

  constructor(options: GrantRepositoryOptions) {
    this.#options = options;
    this.#store = new StoreAccess(options.store, options.onRecovery);
    this.#writes = new WriteQueue(this.#store);
  }

  /** True if the store has failed within the last minute, so that another process may hold unsaved tokens. */
  get hasFailedRecently(): boolean {
    return this.#store.hasFailedRecently;
  }

  /** Returns the grant without I/O: seen within the cache's time to live, or at any time while the store is down. */
  cached(id: string): Grant | undefined {
    const { cache, clock } = this.#options;
    return cache?.get(id, clock()) ?? (this.#store.isDown ? cache?.last(id) : undefined);
  }

  /** Returns the stored grant, or the one last seen if the store fails. Concurrent callers share one read. */
  read(id: string): Promise<Grant | undefined> {
    const { cache } = this.#options;
    const last = cache?.last(id);
    const newest = [...(this.#reads.get(id) ?? [])].at(-1);
    const canJoin = newest && performance.now() - newest.since < JOIN_MS;
    const reading = canJoin ? newest.grant : this.#startRead(id, last ? READ_AGAIN_MS : READ_MS);
    // Looked up again: a logout may have removed it meanwhile.
    return last ? reading.catch((error) => cache?.last(id) ?? Promise.reject(error)) : reading;
  }

  /** Returns the grant as the store has it now. Never joins a read that may have seen an older one. */
  readAnew(id: string): Promise<Grant | undefined> {
    return this.#startRead(id, READ_MS);
  }

  /** Saves the grant of a login in place of any other. @param whenSaved Called before this process can see the grant. */
  create(id: string, grant: Grant, whenSaved: () => void): Promise<void> {
    return this.#writes.run(id, SAVE, async (store, signal) => {
      const record = await this.#options.codec.encode(id, grant);
      signal.throwIfAborted();
      await store.set(id, record);
      signal.throwIfAborted();
      whenSaved();
      this.#remember(id, grant);
    });
  }

  /** Saves a refreshed grant if the store still has one of the given versions. Returns false if it has another grant, or none. */
  replace(id: string, grant: Grant, versions: readonly number[]): Promise<boolean> {
    const limits = this.#options.store.update ? UPDATE : SAVE;
    return this.#writes.run(id, limits, async (store, signal) => {
      const record = await this.#options.codec.encode(id, grant);
      const saved = await compareAndSet(store, id, record, versions, signal);
      signal.throwIfAborted();
      this.#remember(id, saved ? grant : undefined);
      return saved;
    });
  }

  /** Deletes the grant. @param whenRemoved Called before any other write of the grant starts. */
  remove(id: string, whenRemoved: () => void): Promise<void> {
    this.#remember(id, undefined);
    return this.#writes.run(id, REMOVAL, async (store, signal) => {
      await store.delete(id);
      signal.throwIfAborted();
      this.#remember(id, undefined);
      whenRemoved();
    });
  }

  /** Deletes the grant if the store has it with the same tokens. Returns false if the store has another grant. */
  removeRefused(id: string, refused: Grant): Promise<boolean> {
    return this.#writes.run(id, REMOVAL, async (store, signal) => {
      this.#remember(id, undefined);
      const record = await store.get(id);
      const stored = await this.#decode(id, record);
      if (!record || !stored) return true;
      if (!hasSameTokens(stored, refused)) return false;
      signal.throwIfAborted();
      // Marked first, so that newer tokens that are saved just now are not deleted in place of the refused ones.
      const mark = { version: newVersion(), expiresAt: record.expiresAt, sealed: ENDED };
      if (store.update && !(await store.update(id, mark, record.version))) return false;
      signal.throwIfAborted();
      await store.delete(id);
      signal.throwIfAborted();
      this.#remember(id, undefined);
      return true;
    });
  }

  /** Runs `work` under the store's lock for the id, or at once if the store has no locks. */
  locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#store.locked(id, work);
  }

  /** Abandons the writes that run, so that those that wait behind them get a chance before the process ends. */
  abandonWrites(): void {
    this.#writes.abandonAll();
  }

  /** Resolves when all running writes have settled, or have exceeded their time limit. */
  async drain(): Promise<void> {
    await this.#writes.drain(SAVE.waitMs);
  }

  #startRead(id: string, limitMs: number): Promise<Grant | undefined> {
    const loaded = this.#store.use((store) => store.get(id)).then((record) => this.#decode(id, record));
    const grant = withTimeout(loaded, limitMs, () => this.#store.timedOut('get'));
    const read: RunningRead = { grant, since: performance.now() };
    this.#reads.set(id, (this.#reads.get(id) ?? new Set()).add(read));
    grant.then(
      (found) => this.#endRead(id, read) && this.#cache(id, found),
      () => this.#endRead(id, read),
    );
    return grant;
  }

  /** Ends a read and those that began before it. Returns false if a write has overtaken it: its result may be stale. */
  #endRead(id: string, read: RunningRead): boolean {
    const reads = this.#reads.get(id);
    if (!reads?.has(read)) return false;
    for (const earlier of reads) {
      reads.delete(earlier);
      if (earlier === read) break;
    }
    if (reads.size === 0) this.#reads.delete(id);
    return true;
  }

  async #decode(id: string, record: StoredGrant | undefined): Promise<Grant | undefined> {
    if (record === undefined || record === null || record.sealed === ENDED) return undefined;
    const grant = await this.#options.codec.decode(id, record);
    if (!grant) this.#options.onUnreadable(id);
    return grant;
  }

  /** Caches the result of a write. Running reads may have seen an older grant, so their results are ignored. */
  #remember(id: string, grant: Grant | undefined): void {
    this.#reads.delete(id);
    this.#cache(id, grant);
  }

  #cache(id: string, grant: Grant | undefined): void {
    const { cache, clock } = this.#options;
    if (grant) cache?.set(id, grant, clock());
    else cache?.delete(id);
  }
}

/** Returns true once the store has `record` in place of one of the versions, and false if it has another record or none. */
async function compareAndSet(
  store: TokenStore,
  id: string,
  record: StoredGrant,
  versions: readonly number[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const version of store.update ? versions : []) {
    signal.throwIfAborted();
    if (await store.update?.(id, record, version)) return true;
  }
  const current = await store.get(id);
  // An abandoned write that took effect after all was this one.
  if (current?.version === record.version) return true;
  if (store.update || !current || !versions.includes(current.version)) return false;
  signal.throwIfAborted();
  await store.set(id, record);
  return true;
}
