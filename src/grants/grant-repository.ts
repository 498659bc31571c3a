import { ageOf, LONG_AGO, type Moment, momentOf } from '../clock.js';
import { type OnChange, StoreAccess, type WriteLimits } from '../stores/store-access.js';
import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import {
  type EndedGrant,
  endedGrant,
  type Grant,
  type GrantCodec,
  hasSameTokens,
  isLaterSibling,
  isOlder,
} from './grant.js';

/** Options of a {@link GrantRepository}. */
export interface GrantRepositoryOptions {
  /** Passport's name for the strategy. Keeps the ids of several strategies apart. */
  readonly strategyName: string;
  readonly store: TokenStore;
  readonly codec: GrantCodec;
  /** How many grants are cached, and for how long one is used without reading the store. `undefined` or a `ttlMs` of 0 turns the cache off. */
  readonly cache: { readonly max: number; readonly ttlMs: number } | undefined;
  /** Refreshed grants that the store does not have yet. */
  readonly unsaved?: ReadonlyMap<string, { readonly grant: Grant }>;
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
const READ_TIMEOUT_MS = 5_000;
/** Time limit of a read while the cache still has the grant as it was last seen. */
const KNOWN_READ_TIMEOUT_MS = 1_000;
/** Maximum age of a running read that a caller joins, in milliseconds: an older one may hang. */
const JOIN_MS = 500;
/** Both delay the writes behind them: a late save may replace newer tokens, and a late removal a newer login. */
const SAVE: WriteLimits = { waitMs: 2_000, abandonMs: 15_000 };
const REMOVAL: WriteLimits = { waitMs: 5_000, abandonMs: 15_000 };
/** A save that compares versions is refused if it arrives late. Callers wait less than for a read: they have the grant in memory. */
const UPDATE: WriteLimits = { waitMs: 2_000, abandonMs: 2_000 };

/** How often a compare-and-set is tried that loses against other processes. */
const MAX_TRIES = 4;

interface RunningRead {
  readonly since: Moment;
  readonly result: Promise<Grant | undefined>;
}

/** A deletion in progress. */
export interface Removal {
  /** `unknown` once the store failed or took too long: it may have deleted the grant, or may do so later. */
  outcome: 'running' | 'unknown' | 'removed';
  /** What the store was last asked to delete. */
  grant: Grant | undefined;
  /** Resolves once the store has answered that, if only with an error. */
  answer: Promise<unknown> | undefined;
  /** Rejects with TokenStoreError if the grant is not known to be deleted in time. */
  done: Promise<void>;
}

/**
 * Reads and writes the grants of one token store, decoded and cached. All methods reject with TokenStoreError if the store fails.
 *
 * Writes of one grant run in sequence in this process, and the cache follows them within the same task: a slow save cannot undo
 * a later logout.
 */
export class GrantRepository {
  readonly #options: GrantRepositoryOptions;
  readonly #idPrefix: string;
  /** The store itself: its writes and locks, and whether it works. */
  readonly access: StoreAccess;
  /** Grants as they were last seen, and when. The oldest is dropped first: tracking use would cost more than it saves. */
  readonly #cache = new Map<string, Moment & { readonly grant: Grant }>();
  /** Running reads in the order of their starts, except those that a write, or a read that began later, has overtaken. */
  readonly #reads = new Map<string, readonly RunningRead[]>();
  /** The versions that are being saved, unless another process has changed the grant since. */
  readonly #saves = new Map<string, number>();
  /** `undefined` until a grant is cached. */
  #stopListening: (() => void) | undefined;
  readonly #onChange: OnChange = (storeId, version) => this.#changed(storeId, version);

  constructor(options: GrantRepositoryOptions) {
    this.#options = options;
    // Ids of different strategies never collide, because `encodeURIComponent` leaves no `+` in either part.
    this.#idPrefix = `${encodeURIComponent(options.strategyName)}+`;
    this.access = new StoreAccess(options.store, options.onRecovery, options.clock);
  }

  /** Returns the id under which the store keeps the grant: printable ASCII. */
  storeId(id: string): string {
    return this.#idPrefix + encodeURIComponent(id);
  }

  /** Returns the grant without I/O: unsaved, seen within the cache's time to live, or at any time while the store is down. */
  known(id: string): Grant | undefined {
    const { unsaved, cache, clock } = this.#options;
    const newest = unsaved?.get(id)?.grant;
    if (newest) return newest;
    const seen = this.#cache.get(id);
    if (!seen) return undefined;
    const isFresh = cache && ageOf(seen, clock) < cache.ttlMs;
    return isFresh || this.access.isDown ? seen.grant : undefined;
  }

  /** Returns the stored grant, or the one last seen if the store fails. Concurrent callers share one read. */
  async read(id: string): Promise<Grant | undefined> {
    const last = this.#cache.get(id)?.grant;
    const askedAt = performance.now();
    const running = this.#reads.get(id)?.at(-1);
    try {
      const joined = running && askedAt - running.since.monotonic < JOIN_MS ? await running.result : undefined;
      if (joined) return joined;
      // A login may have been saved since the joined read began.
      const newest = this.#reads.get(id)?.at(-1);
      if (newest && newest.since.monotonic >= askedAt) return await newest.result;
      return await this.readAnew(id, last ? KNOWN_READ_TIMEOUT_MS : READ_TIMEOUT_MS);
    } catch (error) {
      // A logout may have removed it during the read.
      const stillLast = last && this.#cache.get(id)?.grant;
      if (stillLast) return stillLast;
      throw error;
    }
  }

  /**
   * Returns the grant as the store has it now, and caches it unless a write has overtaken the read. If this process has seen a
   * newer grant of the same login, the store has lost a write in a failover: writes the newer one over it.
   */
  readAnew(id: string, limitMs: number = READ_TIMEOUT_MS): Promise<Grant | undefined> {
    // The process may be suspended until the answer is old: it counts as seen when it was asked for.
    const since = momentOf(this.#options.clock);
    const result = this.#readAndCache(id, since, limitMs);
    this.#reads.set(id, [...(this.#reads.get(id) ?? []), { since, result }]);
    return result;
  }

  async #readAndCache(id: string, since: Moment, limitMs: number): Promise<Grant | undefined> {
    let place = -1;
    let stored: Grant | EndedGrant | undefined;
    try {
      stored = await this.access.use((store) => this.#load(store, id), 'get', limitMs);
    } finally {
      const reads = this.#reads.get(id) ?? [];
      place = reads.findIndex((read) => read.since === since);
      if (place + 1 < reads.length) this.#reads.set(id, reads.slice(place + 1));
      else this.#reads.delete(id);
    }
    const found = stored && 'ended' in stored ? undefined : stored;
    if (place < 0) return found;
    const last = this.#cache.get(id)?.grant;
    if (stored && last && stored.version !== last.version) {
      if (isOlder(stored, last)) {
        const isSaved = await this.replace(id, last, stored.version).catch(() => true);
        return isSaved ? last : this.readAnew(id);
      }
      if (found && isOlder(last, found) && !this.#options.store.lock && !this.access.hasFailedRecently)
        this.#options.onUnlockedRefresh();
    }
    this.#remember(id, found, since, false);
    return found;
  }

  /** Returns the newest grant without caching it: unsaved, or as the store has it now, a tombstone too. */
  async peek(id: string): Promise<Grant | EndedGrant | undefined> {
    const { unsaved } = this.#options;
    return unsaved?.get(id)?.grant ?? (await this.access.use((store) => this.#load(store, id), 'get', READ_TIMEOUT_MS));
  }

  /**
   * Returns true if the store has no such grant, or a tombstone of it. A record that cannot be decoded may be a grant: another
   * process may have the key. @throws TokenStoreError
   */
  async isGone(id: string): Promise<boolean> {
    const storeId = this.storeId(id);
    const record = await this.access.use((store) => store.get(storeId), 'get', READ_TIMEOUT_MS);
    const stored = record && (await this.#options.codec.decode(storeId, record));
    return !record || (stored !== undefined && 'ended' in stored);
  }

  /** Saves the grant of a login in place of any other. @param whenSaved Called before this process can see the grant. */
  create(id: string, grant: Grant, whenSaved: (() => void) | undefined): Promise<boolean> {
    return this.#save(id, grant, SAVE, whenSaved, async (store, storeId, record) => {
      await store.set(storeId, record);
      return true;
    });
  }

  /** Saves a grant unless the store has one, or a tombstone. Returns whether it did. @param whenSaved As for {@link create}. */
  async add(id: string, grant: Grant, whenSaved: () => void): Promise<boolean> {
    // A store without `add` is asked under its lock whether it has a grant: of several that are added one wins.
    const lock = this.#options.store.add ? undefined : await this.access.acquire(this.storeId(id));
    try {
      return await this.#save(id, grant, SAVE, whenSaved, async (store, storeId, record, signal) => {
        if (store.add) return await store.add(storeId, record);
        if (await store.get(storeId)) return false;
        signal.throwIfAborted();
        await store.set(storeId, record);
        return true;
      });
    } finally {
      await lock?.release();
    }
  }

  /**
   * Saves a refreshed grant if the store has the given version, or an older grant of the same login, which the service no longer
   * accepts; without a lock, also an earlier sibling. Returns false if the store has another grant, or none.
   *
   * @param version `undefined` if the store had none: saves the grant if it still has none, or a tombstone.
   */
  replace(id: string, grant: Grant, version: number | undefined): Promise<boolean> {
    const limits = this.#options.store.update ? UPDATE : SAVE;
    return this.#save(id, grant, limits, undefined, async (store, storeId, record, signal) => {
      const isFirst = version === undefined;
      let saved = await (isFirst ? store.add?.(storeId, record) : store.update?.(storeId, record, version));
      for (let tries = 1; !saved && tries < MAX_TRIES; tries++) {
        signal.throwIfAborted();
        const stored = await this.#load(store, id);
        signal.throwIfAborted();
        if (!stored && !isFirst) break;
        // An abandoned write took effect after all. A new `retryAt` does not change the version.
        const isSameVersion = stored?.version === grant.version;
        saved = isSameVersion && ('ended' in stored || stored.retryAt === grant.retryAt);
        if (saved) break;
        const isReplaceable =
          !stored ||
          isSameVersion ||
          isOlder(stored, grant) ||
          ('ended' in stored ? isFirst : !store.lock && isLaterSibling(grant, stored));
        if (!isReplaceable) break;
        if (store.update && stored) saved = await store.update(storeId, record, stored.version);
        else {
          await store.set(storeId, record);
          saved = true;
        }
      }
      signal.throwIfAborted();
      if (!saved) this.#remember(id, undefined);
      return saved ?? false;
    });
  }

  /**
   * Deletes the grant by its version. In a store that compares versions, a late delete cannot remove a later login. A grant
   * that is first seen once the removal is `unknown` is kept: it may be of a later login.
   *
   * @param whenRemoved Called before any other write of the grant starts, with the grant that was deleted; `undefined` if there
   *   was none, or none that can be read. The removal may be `unknown` by then.
   */
  remove(id: string, whenRemoved?: (grant: Grant | undefined) => void): Removal {
    const last = this.#cache.get(id)?.grant;
    const storeId = this.storeId(id);
    this.#remember(id, undefined);
    const removal: Removal = { outcome: 'running', grant: undefined, answer: undefined, done: Promise.resolve() };
    const written = this.access.write(id, REMOVAL, async (store, signal) => {
      const erase = async (grant: Grant | undefined, version: number) => {
        const deletion = store.delete(storeId, version);
        if (grant) Object.assign(removal, { grant, answer: Promise.allSettled([deletion]) });
        await deletion;
        signal.throwIfAborted();
      };
      // Most likely the store has what was seen last: so no later read finds it. A store that does not compare versions
      // would delete tokens that were never read.
      if (last && store.update) await erase(last, last.version);
      let removed: { readonly grant: Grant | undefined; readonly lineage: string | undefined } | undefined;
      for (let tries = 0; ; tries++) {
        const record = await store.get(storeId);
        const stored = record && (await this.#options.codec.decode(storeId, record));
        signal.throwIfAborted();
        // Gone, or replaced by a login that came later.
        if (!record || (removed && removed.lineage !== stored?.lineage)) break;
        if (tries === MAX_TRIES) throw new Error('The grant is still there after it was deleted');
        if (removal.outcome === 'unknown' && !removed) throw new Error('The grant was read too late to be deleted');
        removed = { grant: stored && 'ended' in stored ? undefined : stored, lineage: stored?.lineage };
        await erase(removed.grant, record.version);
      }
      this.#remember(id, undefined);
      removal.outcome = 'removed';
      whenRemoved?.(removed ? removed.grant : last);
    });
    removal.done = written.catch((error: unknown) => {
      if (removal.outcome === 'running') removal.outcome = 'unknown';
      throw error;
    });
    return removal;
  }

  /**
   * Ends a grant that the service has refused, with all older grants of its login. Returns `gone` if the store has none, as after
   * a logout or an eviction, and `kept` if it has another one.
   *
   * A store that compares versions keeps a tombstone: another process with an unsaved successor can replace it.
   */
  end(id: string, refused: Grant): Promise<'ended' | 'gone' | 'kept'> {
    return this.access.write(id, REMOVAL, async (store, signal) => {
      const storeId = this.storeId(id);
      this.#remember(id, undefined);
      for (let tries = 0; tries < MAX_TRIES; tries++) {
        const stored = await this.#load(store, id);
        if (!stored) return 'gone';
        if ('ended' in stored) return 'ended';
        if (!hasSameTokens(stored, refused) && !isOlder(stored, refused)) return 'kept';
        const tombstone = await this.#options.codec.encode(storeId, endedGrant(stored));
        signal.throwIfAborted();
        if (store.update) {
          if (await store.update(storeId, tombstone, stored.version)) return 'ended';
        } else {
          await store.delete(storeId, stored.version);
          return 'ended';
        }
        signal.throwIfAborted();
      }
      return 'kept';
    });
  }

  /** Stops listening to changes by other processes, and closes the connection for them. */
  stopWatching(): void {
    this.#stopListening?.();
    this.#stopListening = () => undefined;
  }

  /** Returns the id of a grant by that of its record; `undefined` for records of other strategies. */
  grantId(storeId: string): string | undefined {
    if (!storeId.startsWith(this.#idPrefix)) return undefined;
    try {
      return decodeURIComponent(storeId.slice(this.#idPrefix.length));
    } catch {
      return undefined;
    }
  }

  /** Applies a change that the store reports, perhaps of this process: see {@link TokenStore.watch}. */
  #changed(storeId: string, version: number | undefined): void {
    const id = storeId === '' ? undefined : this.grantId(storeId);
    if (id === undefined && storeId !== '') return;
    const all = () => [...this.#cache.keys(), ...this.#reads.keys(), ...this.#saves.keys()];
    for (const each of id === undefined ? all() : [id]) {
      // Another process may have changed what this one has just saved, before the save was answered.
      if (this.#saves.get(each) !== version) this.#saves.delete(each);
      const seen = this.#cache.get(each);
      if (seen && seen.grant.version === version) continue;
      this.#reads.delete(each);
      if (id !== undefined && version === undefined) this.#cache.delete(each);
      // Kept for a failure or a failover of the store.
      else if (seen) this.#cache.set(each, { grant: seen.grant, ...LONG_AGO });
    }
  }

  /** Encodes a grant, saves it by `save`, and caches it if that resolves to true. */
  #save(
    id: string,
    grant: Grant,
    limits: WriteLimits,
    whenSaved: (() => void) | undefined,
    save: (store: TokenStore, storeId: string, record: StoredGrant, signal: AbortSignal) => Promise<boolean>,
  ): Promise<boolean> {
    return this.access.write(id, limits, async (store, signal) => {
      let since = momentOf(this.#options.clock);
      const storeId = this.storeId(id);
      const record = await this.#options.codec.encode(storeId, grant);
      signal.throwIfAborted();
      this.#saves.set(id, grant.version);
      try {
        if (!(await save(store, storeId, record, signal))) return false;
        signal.throwIfAborted();
      } finally {
        if (this.#saves.get(id) === grant.version) this.#saves.delete(id);
        else since = LONG_AGO;
      }
      whenSaved?.();
      this.#remember(id, grant, since);
      return true;
    });
  }

  async #load(store: TokenStore, id: string): Promise<Grant | EndedGrant | undefined> {
    const { codec, onUnreadable } = this.#options;
    const storeId = this.storeId(id);
    const record = await store.get(storeId);
    if (!record) return undefined;
    const stored = await codec.decode(storeId, record);
    if (!stored) onUnreadable(id);
    return stored;
  }

  /** Caches a grant, or that there is none. @param isWritten By a write: running reads may have seen an older one, and are ignored. */
  #remember(id: string, grant: Grant | undefined, since = LONG_AGO, isWritten = true): void {
    const { cache, store } = this.#options;
    if (isWritten) {
      this.access.hub.notify(this.storeId(id), undefined, this.#onChange);
      this.#reads.delete(id);
    }
    // Deleted first, so that the order of the map is the order of age.
    this.#cache.delete(id);
    if (grant === undefined || !cache?.ttlMs) return;
    const { monotonic, wall } = since;
    this.#cache.set(id, { grant, monotonic, wall });
    this.#stopListening ??= this.access.hub.listen(store, this.#onChange);
    const [oldest = id] = this.#cache.keys();
    if (this.#cache.size > cache.max) this.#cache.delete(oldest);
  }
}
