import { ageOf, type Moment, momentOf } from '../clock.js';
import { OAuthAppError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { KeyedQueue, withTimeout } from '../waiting.js';
import { DEFAULT_LEASE_SECONDS, type HeldLease, type TokenStore } from './token-store.js';

/** Time limits of a write, in milliseconds. */
export interface WriteLimits {
  /** How long its caller waits. */
  readonly waitMs: number;
  /** When it is abandoned, so that the next write of the grant starts. */
  readonly abandonMs: number;
}

/**
 * A write to the token store. Calls `signal.throwIfAborted()` after each `await`: when a write is abandoned, what it has read may
 * be stale, so it starts no operation and leaves the cache alone.
 */
export type WriteTask<T> = (store: TokenStore, signal: AbortSignal) => Promise<T>;

/** How long to wait for a store's lock; longer than the lease of this package's stores. */
const LOCK_WAIT_MS = 45_000;
/** How long to wait for the check whether a lock is still held. */
const CHECK_MS = 5_000;
/** How long to wait for the release of a lock. */
const RELEASE_WAIT_MS = 2_000;
/** How long to wait for writes before the process ends. */
const DRAIN_MS = 2_000;
/** How long after a failure the store counts as down, if nothing has succeeded since. */
const DOWN_MS = 1_000;
/** How long after a failure other processes may still hold tokens that they have to save. */
const RECENTLY_MS = 60_000;

/**
 * Calls the application's token store, which may throw, hang or misbehave: every failure becomes a TokenStoreError. Runs writes
 * of one grant in sequence.
 */
export class StoreAccess {
  readonly #store: TokenStore;
  readonly #clock: () => number;
  readonly #onRecovery: () => void;
  /** What the strategies of this process that use the store share. */
  readonly hub: StoreHub;
  readonly #writes = new KeyedQueue();
  readonly #runningWrites = new Set<AbortController>();
  /** Settle when locks that are held are released. */
  readonly #releases = new Set<Promise<void>>();
  #isFailing = false;
  /** On the monotonic clock. */
  #failedAt = Number.NEGATIVE_INFINITY;

  /** @param onRecovery Called when the store works again after a failure. @param clock Epoch milliseconds. */
  constructor(store: TokenStore, onRecovery: () => void, clock: () => number = Date.now) {
    this.#store = store;
    this.#clock = clock;
    this.#onRecovery = onRecovery;
    this.hub = hubOf(store);
  }

  /** True if the store has locks. */
  get hasLock(): boolean {
    return this.#store.lock !== undefined;
  }

  /** Lists the ids of the store's records; `undefined` if it cannot. */
  list(prefix: string): AsyncIterable<string> | undefined {
    return this.#store.list?.(prefix);
  }

  /** True if the store failed within the last second, and has not succeeded since. */
  get isDown(): boolean {
    return this.#isFailing && performance.now() - this.#failedAt < DOWN_MS;
  }

  /** True if the store failed within the last minute: another process may hold unsaved tokens. */
  get hasFailedRecently(): boolean {
    return performance.now() - this.#failedAt < RECENTLY_MS;
  }

  /**
   * Calls the store, which may answer without a promise. `task` goes on by itself after its time limit, and when the signal aborts.
   *
   * @throws TokenStoreError for any failure or time-out; an OAuthAppError, thrown or as the signal's reason, is passed on
   */
  async use<T>(
    task: (store: TokenStore) => Promise<T>,
    operation: string,
    limitMs: number,
    signal?: AbortSignal,
  ): Promise<T> {
    try {
      const result = await withTimeout(task(this.#store), limitMs, () => timeoutError(operation), signal);
      if (this.#isFailing) {
        this.#isFailing = false;
        this.#onRecovery();
      }
      return result;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /**
   * Settles as `task` does.
   *
   * @throws TokenStoreError if the store fails or `waitMs` ends; the write goes on until `abandonMs`, when its signal aborts
   */
  write<T>(id: string, { waitMs, abandonMs }: WriteLimits, task: WriteTask<T>): Promise<T> {
    const written = this.#writes.run(id, async () => {
      const write = new AbortController();
      this.#runningWrites.add(write);
      try {
        return await this.use((store) => task(store, write.signal), 'write', abandonMs, write.signal);
      } catch (error) {
        write.abort(error);
        throw error;
      } finally {
        this.#runningWrites.delete(write);
      }
    });
    return withTimeout(written, waitMs, () => this.#failed(timeoutError('write')));
  }

  /** Abandons running writes, so that those behind them are tried before the process ends. */
  abandonWrites(): void {
    for (const write of this.#runningWrites) write.abort(this.#failed(timeoutError('write')));
  }

  /**
   * Takes the store's lock for the id, or that of this process if the store has no locks.
   *
   * @param signal Ends the wait for the lock with its reason.
   * @throws TokenStoreError if the lock is not acquired; the signal's reason, as it is
   */
  async acquire(id: string, signal?: AbortSignal): Promise<HeldLock> {
    const store = this.#store;
    let end = ignore;
    if (!store.lock) {
      end = await this.hub.locks.turn(id, LOCK_WAIT_MS, () => timeoutError('lock'), signal);
      return new HeldLock({ leaseMs: Number.POSITIVE_INFINITY, ageMs: 0 }, this.#clock, end);
    }
    let [isTaken, isGivenUp] = [false, false];
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    let released = Promise.resolve();
    const taking = new Promise<HeldLease | undefined>((resolve, reject) => {
      const work = async (lease?: HeldLease): Promise<void> => {
        if (isGivenUp) throw new Error('No caller is waiting for this lock');
        isTaken = true;
        resolve(lease);
        await ended;
      };
      // Async, so that a store that throws counts as one that rejects.
      const locking = (async () => store.lock?.(id, work))();
      released = locking.then(
        () => reject(new Error('The lock did not run its work')),
        // A failed release is no failure of the lock.
        (error) => reject(isTaken ? error : this.#failed(error)),
      );
    });
    this.#releases.add(released);
    void released.then(() => this.#releases.delete(released));
    try {
      const lease = await withTimeout(taking, LOCK_WAIT_MS, () => timeoutError('lock'), signal);
      const isHeld = lease && (() => this.use(() => lease.isHeld(), 'lock', CHECK_MS));
      const { leaseMs = DEFAULT_LEASE_SECONDS * 1000, ageMs = 0 }: Partial<HeldLease> = lease ?? {};
      return new HeldLock({ leaseMs, ageMs, isHeld }, this.#clock, () => {
        end();
        return waitForRelease(released);
      });
    } catch (error) {
      isGivenUp = true;
      end();
      throw error instanceof OAuthAppError ? error : this.#failed(error);
    }
  }

  /** Waits, for a while, until all writes have settled and all locks are released. */
  async drain(): Promise<void> {
    await withTimeout(this.#writes.drain(), DRAIN_MS, () => timeoutError('write')).catch(ignore);
    await waitForRelease(Promise.all(this.#releases));
  }

  #failed(error: unknown): OAuthAppError {
    // A lock that another process holds says nothing about the store.
    if (error instanceof TokenStoreError && error.code === 'ERR_TOKEN_STORE_LOCKED') return error;
    this.#isFailing = true;
    this.#failedAt = performance.now();
    if (error instanceof OAuthAppError) return error;
    return new TokenStoreError('The token store failed. All grants are kept; the next request calls it again.', {
      cause: safeCause(error),
    });
  }
}

/** Waits so that the next refresh finds the lock free, but not for long: the release does not change the result. */
async function waitForRelease(released: Promise<unknown>): Promise<void> {
  await withTimeout(released, RELEASE_WAIT_MS, () => timeoutError('unlock')).catch(ignore);
}

function timeoutError(operation: string): TokenStoreError {
  return new TokenStoreError(
    `The token store did not answer in time (${operation}). All grants are kept; the next request calls it again.`,
    { code: 'ERR_TOKEN_STORE_TIMEOUT' },
  );
}

function ignore(): void {}

/** How long a save takes at most, with some reserve, in milliseconds. */
const SAVE_MS = 3_000;
/** How much longer than a token request a lease must be to keep every login, in milliseconds: time for two saves. */
export const LEASE_RESERVE_MS = 5_000;
/** Longest time for which a lock is held for saves that fail, in milliseconds. */
const MAX_HOLD_MS = 15_000;

/** What is known of a lock when it is acquired. */
interface AcquiredLock extends Pick<HeldLease, 'leaseMs' | 'ageMs'> {
  /** As in {@link HeldLock}. */
  readonly isHeld?: (() => Promise<boolean>) | undefined;
}

/** A lock of the token store that this process has. Its age counts from when the store was asked: the lease may have begun then. */
export class HeldLock {
  /** Resolves to false if the store has lost the lock, or given it to another owner. `undefined` if the store cannot check. */
  readonly isHeld: (() => Promise<boolean>) | undefined;
  readonly #leaseMs: number;
  readonly #clock: () => number;
  readonly #askedAt: Moment;
  readonly #end: () => void | Promise<void>;
  readonly #holds: Promise<unknown>[] = [];
  #maxAgeMs = 0;
  #trustsWallClock = true;
  #isReleased = false;

  /** @param end Releases the lock; a promise resolves when it was released, or after a while. */
  constructor({ leaseMs, ageMs, isHeld }: AcquiredLock, clock: () => number, end: () => void | Promise<void>) {
    this.isHeld = isHeld;
    this.#leaseMs = leaseMs;
    this.#clock = clock;
    this.#askedAt = momentOf(clock, ageMs);
    this.#end = end;
  }

  /** Limits the age up to which {@link maySend} is true, so that a request of `requestMs` and its save end before the lease. */
  limitTo(requestMs: number, maxAgeMs: number = Number.POSITIVE_INFINITY, trustsWallClock = true): this {
    const isEnough = this.#leaseMs >= requestMs + LEASE_RESERVE_MS;
    // Under a lease that is too short, each request may outlive it: most do not.
    this.#maxAgeMs = Math.min(maxAgeMs, isEnough ? this.#leaseMs - requestMs - SAVE_MS : this.#leaseMs / 2);
    this.#trustsWallClock = trustsWallClock;
    return this;
  }

  /** True while a refresh token may be sent under the lock. */
  get maySend(): boolean {
    return !this.#isReleased && ageOf(this.#askedAt, this.#trustsWallClock ? this.#clock : undefined) <= this.#maxAgeMs;
  }

  /**
   * Returns how long the lock is held for an unsaved pair, in milliseconds: its last save ends before the lease. By the monotonic
   * clock alone: a wall clock that was set forward must not give the lock to a process that knows the old pair only.
   */
  holdMs(): number {
    const leftMs = this.#leaseMs - ageOf(this.#askedAt) - Math.min(SAVE_MS, this.#leaseMs / 2);
    return Math.max(0, Math.min(MAX_HOLD_MS, leftMs));
  }

  /** Holds the lock until the promise has settled. {@link release} does not wait for it. */
  holdUntil(promise: Promise<unknown>): void {
    this.#holds.push(promise.catch(() => undefined));
  }

  /** Releases the lock, now or once everything that it is held for has settled. Waits for the store only if it is now. */
  async release(): Promise<void> {
    const hold = this.#holds.shift();
    if (hold) return void hold.then(() => this.release());
    this.#isReleased = true;
    await this.#end();
  }
}

/** Called with the id of a record that may have changed, and the version that is stored now; see {@link TokenStore.watch}. */
export type OnChange = (storeId: string, version?: number) => void;

const hubs = new WeakMap<TokenStore, StoreHub>();
/** The hubs of all token stores over a session store, by prefix. */
const sessionHubs = new WeakMap<object, Map<string, StoreHub>>();

/** Returns a token store over a session store, whose hub is that of all token stores with this prefix over it. */
export function overSessionStore<S extends TokenStore>(tokenStore: S, sessionStore: object, prefix: string): S {
  const byPrefix = sessionHubs.get(sessionStore) ?? new Map<string, StoreHub>();
  const hub = byPrefix.get(prefix) ?? new StoreHub();
  sessionHubs.set(sessionStore, byPrefix.set(prefix, hub));
  hubs.set(tokenStore, hub);
  return tokenStore;
}

/** Returns the hub of a store: the same for all strategies of this process that use it. */
function hubOf(store: TokenStore): StoreHub {
  const hub = hubs.get(store) ?? new StoreHub();
  hubs.set(store, hub);
  return hub;
}

/** What the strategies that use a store object share: the lock where the store has none, and the connection that reports changes. */
class StoreHub {
  /** The locks of ids in this process. */
  readonly locks: KeyedQueue = new KeyedQueue();
  /** Weakly held: a strategy that is dropped without `close()` is not kept by its store. */
  readonly #listeners = new Set<WeakRef<OnChange>>();
  readonly #dropped = new FinalizationRegistry<WeakRef<OnChange>>((listener) => this.#remove(listener));
  #stopWatching: (() => void) | undefined;

  /**
   * Calls `listener`, which it does not keep alive, for changes by other processes. Opens the store's connection for that with
   * the first listener, and closes it with the last. Returns the function that ends this.
   */
  listen(store: TokenStore, listener: OnChange): () => void {
    const reference = new WeakRef(listener);
    this.#listeners.add(reference);
    this.#dropped.register(listener, reference);
    this.#stopWatching ??= store.watch?.((id, version) => this.notify(id, version));
    return () => this.#remove(reference);
  }

  /** Notifies the strategies of a change, but not the one that made it. @param writer The listener of that one. */
  notify(storeId: string, version: number | undefined, writer?: OnChange): void {
    for (const reference of this.#listeners) {
      const listener = reference.deref();
      if (listener !== writer) listener?.(storeId, version);
    }
  }

  #remove(listener: WeakRef<OnChange>): void {
    if (!this.#listeners.delete(listener) || this.#listeners.size > 0) return;
    this.#stopWatching?.();
    this.#stopWatching = undefined;
  }
}
