import { withTimeout } from '../stores/time-limit.js';
import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import { compareAndSet } from './compare-and-set.js';
import { type Grant, hasSameTokens, newVersion } from './grant.js';
import type { GrantCache } from './grant-cache.js';
import type { GrantCodec } from './grant-codec.js';
import { StoreAccess } from './store-access.js';
import { goesOn, type Write, type WriteLimits, WriteQueue } from './write-queue.js';

/** What a repository is made of. */
export interface GrantRepositoryOptions {
  readonly store: TokenStore;
  readonly codec: GrantCodec;
  readonly cache: GrantCache | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Called for a record that is there and cannot be read; it is kept. */
  readonly onUnreadable: (id: string) => void;
  /** Called when the store works again after it has failed. */
  readonly onRecovery: () => void;
}

/** How long a store may take to answer a look, in milliseconds. */
const READ_LIMIT_MS = 5_000;
/** The same where the cache still has what was read last. */
const READ_AGAIN_LIMIT_MS = 1_000;
/** How old a look may be for others to join it: they need not wait as long as the one that may be stuck. */
const JOIN_MS = 500;
/** A late save may put an older pair in place of a newer, and a late removal may end a newer login: both hold up what follows. */
const SAVE: WriteLimits = { waitMs: 2_000, lostMs: 15_000 };
const REMOVAL: WriteLimits = { waitMs: 5_000, lostMs: 15_000 };
/** A save that compares versions is refused if it arrives late, and waited for less than a look: there is memory to fall back on. */
const UPDATE: WriteLimits = { waitMs: 2_000, lostMs: 2_000 };

/**
 * Pauses before a refused grant is given up, in milliseconds: whoever was faster may not have saved its pair yet, for
 * want of a lock or since its first try to save it has failed. A user who did revoke the grant waits for it once.
 */
const PAUSES: readonly number[] = [50, 150, 300];
/** The same where the store has failed lately: it was perhaps the save of the winner's pair that failed. */
const PAUSES_AFTER_FAILURE: readonly number[] = [...PAUSES, 500, 1_000];

/** A look into the store that is under way. */
interface Look {
  readonly grant: Promise<Grant | undefined>;
  /** On the clock of `performance`. */
  readonly since: number;
}

/** What a record holds, instead of tokens, in the moment before it is deleted. */
const ENDED = 'ended';

/**
 * The grants of one token store: decoded, cached, and written in order.
 *
 * Writes of one grant run one after the other in this process, and the cache follows them within the same task: a
 * logout is never overtaken by the save that it cancels, however slow that one is.
 *
 * All methods take ids of the store, and reject with TokenStoreError if the store fails.
 */
export class GrantRepository {
  readonly #options: GrantRepositoryOptions;
  readonly #store: StoreAccess;
  readonly #writes: WriteQueue;
  /** Looks under way that no write has overtaken, the newest last. */
  readonly #reads = new Map<string, Set<Look>>();
  readonly #updateLimits: WriteLimits;

  constructor(options: GrantRepositoryOptions) {
    this.#options = options;
    this.#store = new StoreAccess(options.store, options.onRecovery);
    this.#writes = new WriteQueue(this.#store);
    this.#updateLimits = options.store.update ? UPDATE : SAVE;
  }

  /** Number of writes and reads under way, by id. */
  get pending(): number {
    return this.#writes.size + this.#reads.size;
  }

  /** How long to wait, time and again, for another pair to turn up before a refused one is given up. */
  get pausesBeforeLoss(): readonly number[] {
    return this.#store.hasFailedLately ? PAUSES_AFTER_FAILURE : PAUSES;
  }

  /** The grant as far as this process knows it without asking: seen lately, or last while the store is down. */
  cached(id: string): Grant | undefined {
    const { cache, clock } = this.#options;
    return cache?.get(id, clock()) ?? (this.#store.isDown ? cache?.last(id) : undefined);
  }

  /** The grant as the store has it, or had it last if it fails now. Requests that ask at once share one look. */
  read(id: string): Promise<Grant | undefined> {
    const last = this.#options.cache?.last(id);
    const reading = this.#joinRead(id) ?? this.#startRead(id, last ? READ_AGAIN_LIMIT_MS : READ_LIMIT_MS);
    // Looked up again: a logout may have come in between.
    return last ? reading.catch((error) => this.#options.cache?.last(id) ?? Promise.reject(error)) : reading;
  }

  /** The grant as the store has it now, never one that a look under way may have seen earlier. */
  readAnew(id: string): Promise<Grant | undefined> {
    return this.#startRead(id, READ_LIMIT_MS);
  }

  /** Keeps the grant of a login, in place of whatever was there. @param whenSaved Called before anybody in this process can see it. */
  create(id: string, grant: Grant, whenSaved: () => void = nothing): Promise<void> {
    return this.#writes.run(id, SAVE, async (store, write) => {
      const record = await this.#options.codec.write(id, grant);
      goesOn(write);
      await store.set(id, record);
      if (write.isLost) return;
      whenSaved();
      this.#wrote(id, grant);
    });
  }

  /** Keeps a refreshed grant if the store still has one of the given versions; false if it has another one or none. */
  replace(id: string, grant: Grant, versions: readonly number[]): Promise<boolean> {
    const compare = async (store: TokenStore, write: Write) => {
      const record = await this.#options.codec.write(id, grant);
      const saved = await compareAndSet(store, id, record, versions, write);
      if (!write.isLost) this.#wrote(id, saved ? grant : undefined);
      return saved;
    };
    return this.#writes.run(id, this.#updateLimits, compare);
  }

  /** Removes the grant. @param whenRemoved Called before anything else is done with the id. */
  remove(id: string, whenRemoved: () => void = nothing): Promise<void> {
    this.#wrote(id, undefined);
    return this.#writes.run(id, REMOVAL, async (store, write) => {
      await store.delete(id);
      if (write.isLost) return;
      this.#wrote(id, undefined);
      whenRemoved();
    });
  }

  /** Removes the grant if the store has it with the very same tokens; false if it has another one. */
  removeRefused(id: string, refused: Grant): Promise<boolean> {
    return this.#writes.run(id, REMOVAL, async (store, write) => {
      this.#wrote(id, undefined);
      const record = await store.get(id);
      const stored = await this.#decode(id, record);
      if (!record || !stored) return true;
      if (!hasSameTokens(stored, refused)) return false;
      // Marked first, so that a newer pair that comes in just now is not deleted in place of the refused one.
      goesOn(write);
      const mark = { version: newVersion(), expiresAt: record.expiresAt, sealed: ENDED };
      if (store.update && !(await store.update(id, mark, record.version))) return false;
      goesOn(write);
      await store.delete(id);
      if (!write.isLost) this.#wrote(id, undefined);
      return true;
    });
  }

  /** Runs `work` under the store's lock for the id, or right away if the store has no locks. */
  locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#store.locked(id, work);
  }

  /** Counts the writes that are under way as lost: the process ends soon, and what waits behind them has one more chance. */
  loseWrites(): void {
    this.#writes.lose();
  }

  /** Resolves when all writes that are under way have settled, or have had their time. */
  async drain(): Promise<void> {
    await this.#writes.drain(SAVE.waitMs);
  }

  #joinRead(id: string): Promise<Grant | undefined> | undefined {
    const look = [...(this.#reads.get(id) ?? [])].at(-1);
    return look && performance.now() - look.since < JOIN_MS ? look.grant : undefined;
  }

  #startRead(id: string, limitMs: number): Promise<Grant | undefined> {
    const loaded = this.#store.use((store) => store.get(id)).then((record) => this.#decode(id, record));
    const look: Look = { grant: withTimeout(loaded, limitMs, () => this.#store.late('get')), since: performance.now() };
    this.#reads.set(id, (this.#reads.get(id) ?? new Set()).add(look));
    look.grant.then(
      (grant) => this.#looked(id, look, () => this.#cache(id, grant)),
      () => this.#looked(id, look, nothing),
    );
    return look.grant;
  }

  /** Ends a look, and with it those that began earlier. A write that came in between knows better, and has taken it out of the map. */
  #looked(id: string, look: Look, seen: () => void): void {
    const open = this.#reads.get(id);
    if (!open?.has(look)) return;
    for (const earlier of open) {
      open.delete(earlier);
      if (earlier === look) break;
    }
    if (open.size === 0) this.#reads.delete(id);
    seen();
  }

  async #decode(id: string, record: StoredGrant | undefined): Promise<Grant | undefined> {
    if (record === undefined || record === null || record.sealed === ENDED) return undefined;
    const grant = await this.#options.codec.read(id, record);
    if (!grant) this.#options.onUnreadable(id);
    return grant;
  }

  /** What a write has left there: no look under way knows better. */
  #wrote(id: string, grant: Grant | undefined): void {
    this.#reads.delete(id);
    this.#cache(id, grant);
  }

  #cache(id: string, grant: Grant | undefined): void {
    const { cache, clock } = this.#options;
    if (grant) cache?.set(id, grant, clock());
    else cache?.delete(id);
  }
}

function nothing(): void {}
