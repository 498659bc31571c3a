import { withTimeout } from '../stores/time-limit.js';
import type { TokenStore } from '../stores/token-store.js';
import { type EndedGrant, endedGrant, type Grant, hasSameTokens, isOlder } from './grant.js';
import type { GrantCache } from './grant-cache.js';
import type { GrantCodec } from './grant-codec.js';
import { RunningReads } from './running-reads.js';
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
  /** Called when another process has refreshed a grant in a store without a lock. */
  readonly onUnlockedRefresh: () => void;
}

/** Time limit of a read, in milliseconds. */
const READ_MS = 5_000;
/** Time limit of a read while the cache still has the grant as it was last seen. */
const READ_AGAIN_MS = 1_000;
/** A late save may replace newer tokens, and a late removal may remove a newer login: both delay the writes behind them. */
const SAVE: WriteLimits = { waitMs: 2_000, abandonMs: 15_000 };
const REMOVAL: WriteLimits = { waitMs: 5_000, abandonMs: 15_000 };
/** A save that compares versions is refused if it arrives late. Callers wait less than for a read: they have the grant in memory. */
const UPDATE: WriteLimits = { waitMs: 2_000, abandonMs: 2_000 };

/** How often a compare-and-set is tried that loses against other processes. */
const MAX_TRIES = 4;

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
  /** The store itself: its locks, and whether it works. */
  readonly store: StoreAccess;
  readonly #writes: WriteQueue;
  readonly #reads = new RunningReads<Grant | undefined>();

  constructor(options: GrantRepositoryOptions) {
    this.#options = options;
    this.store = new StoreAccess(options.store, options.onRecovery, options.clock);
    this.#writes = new WriteQueue(this.store);
  }

  /** Returns the grant without I/O: seen within the cache's time to live, or at any time while the store is down. */
  cached(id: string): Grant | undefined {
    const { cache, clock } = this.#options;
    return cache?.get(id, clock()) ?? (this.store.isDown ? cache?.last(id) : undefined);
  }

  /** Returns the stored grant, or the one last seen if the store fails. Concurrent callers share one read. */
  read(id: string): Promise<Grant | undefined> {
    const { cache } = this.#options;
    const last = cache?.last(id);
    const reading = this.#reads.join(id) ?? this.#startRead(id, last ? READ_AGAIN_MS : READ_MS);
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

  /**
   * Saves a refreshed grant if the store has the given version, or any older grant of the same login: that one is
   * invalid at the service. Returns false if the store has another grant, or none.
   */
  replace(id: string, grant: Grant, version: number): Promise<boolean> {
    const limits = this.#options.store.update ? UPDATE : SAVE;
    return this.#writes.run(id, limits, async (store, signal) => {
      const record = await this.#options.codec.encode(id, grant);
      signal.throwIfAborted();
      let saved = (await store.update?.(id, record, version)) ?? false;
      for (let tries = 1; !saved && tries < MAX_TRIES; tries++) {
        signal.throwIfAborted();
        const stored = await this.#load(store, id);
        signal.throwIfAborted();
        // An abandoned write that took effect after all was this one.
        saved = stored?.version === grant.version;
        if (saved || !stored || !this.#isReplaceable(stored, grant)) break;
        saved = store.update
          ? await store.update(id, record, stored.version)
          : await store.set(id, record).then(() => true);
      }
      signal.throwIfAborted();
      this.#remember(id, saved ? grant : undefined);
      return saved;
    });
  }

  /**
   * Deletes the grant, by its version: a delete that takes effect late never removes the grant of a later login. @param
   * whenRemoved Called before any other write of the grant starts.
   */
  remove(id: string, whenRemoved: () => void): Promise<void> {
    const last = this.#options.cache?.last(id);
    this.#remember(id, undefined);
    return this.#writes.run(id, REMOVAL, async (store, signal) => {
      // Most likely the store has what was seen last. At once, so that no later read finds it.
      if (last) await store.delete(id, last.version);
      signal.throwIfAborted();
      let removed: { readonly lineage: string | undefined } | undefined;
      for (let tries = 0; ; tries++) {
        const record = await store.get(id);
        const lineage = record && (await this.#options.codec.decode(id, record))?.lineage;
        signal.throwIfAborted();
        // Gone, or replaced by a login that came later.
        if (!record || (removed && removed.lineage !== lineage)) break;
        if (tries === MAX_TRIES) throw new Error('The grant is still there after it was deleted');
        await store.delete(id, record.version);
        signal.throwIfAborted();
        removed = { lineage };
      }
      this.#remember(id, undefined);
      whenRemoved();
    });
  }

  /**
   * Ends a grant that the service has refused, with all older grants of its login. Returns false if the store has another one.
   *
   * Another process may hold the grant after it and be unable to save it. So a store that can compare versions keeps a
   * mark that this process can replace, until a login replaces it or its time to live ends.
   */
  end(id: string, refused: Grant): Promise<boolean> {
    return this.#writes.run(id, REMOVAL, async (store, signal) => {
      this.#remember(id, undefined);
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const stored = await this.#load(store, id);
        if (!stored || 'ended' in stored) return true;
        if (!hasSameTokens(stored, refused) && !isOlder(stored, refused)) return false;
        const mark = await this.#options.codec.encode(id, endedGrant(stored));
        signal.throwIfAborted();
        if (!store.update) return await store.delete(id, stored.version).then(() => true);
        if (await store.update(id, mark, stored.version)) return true;
        signal.throwIfAborted();
      }
      return false;
    });
  }

  /** Abandons the writes that run, so that those that wait behind them get a chance before the process ends. */
  abandonWrites(): void {
    this.#writes.abandonAll();
  }

  /** Resolves when all running writes have settled and all locks are released, or have exceeded their time limits. */
  async drain(): Promise<void> {
    await this.#writes.drain(SAVE.waitMs);
    await this.store.drain();
  }

  #startRead(id: string, limitMs: number): Promise<Grant | undefined> {
    const loaded = this.store.use((store) => this.#load(store, id));
    const found = withTimeout(loaded, limitMs, () => this.store.timedOut('get'));
    const read = found.then(
      (stored) => this.#withNewest(id, stored, end()),
      (error: unknown) => {
        end();
        throw error;
      },
    );
    const end = this.#reads.add(id, read);
    return read;
  }

  /**
   * Returns the grant that a read has found, and caches it unless a write has overtaken the read. If this process has
   * seen a newer grant of the same login, the store has lost a write in a failover: writes the newer one over it.
   */
  async #withNewest(
    id: string,
    stored: Grant | EndedGrant | undefined,
    isCurrent: boolean,
  ): Promise<Grant | undefined> {
    const found = stored && 'ended' in stored ? undefined : stored;
    if (!isCurrent) return found;
    const last = this.#options.cache?.last(id);
    if (stored && last && isOlder(stored, last)) {
      const isSaved = await this.replace(id, last, stored.version).catch(() => true);
      return isSaved ? last : this.#startRead(id, READ_MS);
    }
    if (found && last && isOlder(last, found) && !this.#options.store.lock && !this.store.hasFailedRecently)
      this.#options.onUnlockedRefresh();
    this.#cache(id, found);
    return found;
  }

  async #load(store: TokenStore, id: string): Promise<Grant | EndedGrant | undefined> {
    const record = await store.get(id);
    if (record === undefined || record === null) return undefined;
    const stored = await this.#options.codec.decode(id, record);
    if (!stored) this.#options.onUnreadable(id);
    return stored;
  }

  /**
   * Returns true if the service no longer accepts the stored grant, but the given one. Without a lock, two processes may
   * refresh at once, and a service with a grace period answers both: the later answer counts.
   */
  #isReplaceable(stored: Grant | EndedGrant, grant: Grant): boolean {
    if (isOlder(stored, grant)) return true;
    if (this.#options.store.lock || 'ended' in stored) return false;
    const isSibling = stored.lineage === grant.lineage && stored.generation === grant.generation;
    return isSibling && grant.expiresAt - grant.lifetimeMs > stored.expiresAt - stored.lifetimeMs;
  }

  /** Caches the result of a write. Running reads may have seen an older grant, so their results are ignored. */
  #remember(id: string, grant: Grant | undefined): void {
    this.#reads.overtake(id);
    this.#cache(id, grant);
  }

  #cache(id: string, grant: Grant | undefined): void {
    const { cache, clock } = this.#options;
    if (grant) cache?.set(id, grant, clock());
    else cache?.delete(id);
  }
}
