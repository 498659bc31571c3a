import { OAuthAppError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import type { TokenStore } from '../stores/token-store.js';
import { KeyedQueue, withTimeout } from '../stores/waiting.js';

/** How old a lock may be, on each clock, in milliseconds. */
export interface LockAge {
  /** On the monotonic clock, which stops while some machines are suspended. */
  readonly ageMs: number;
  /** On the wall clock, which may be set. */
  readonly wallAgeMs: number;
}

/** A lock of the store, as the work under it sees it. */
export interface HeldLock {
  /** Returns true if the lock was taken longer ago, on any of the clocks. */
  isOlderThan(limit: LockAge): boolean;
  /** Holds the lock until the promise has settled too. The caller of `locked` does not wait for it. */
  holdUntil(promise: Promise<unknown>): void;
}

/** Time limits of a write, in milliseconds. */
export interface WriteLimits {
  /** How long its caller waits. */
  readonly waitMs: number;
  /** When it is abandoned, so that the next write of the grant starts. */
  readonly abandonMs: number;
}

/**
 * A write to the token store.
 *
 * Its signal aborts when the write is abandoned: anything it has read may be stale by then, so it must start no further
 * operation and leave the cache alone. Call `signal.throwIfAborted()` after each `await`.
 */
export type WriteTask<T> = (store: TokenStore, signal: AbortSignal) => Promise<T>;

/** How long to wait for a store's lock; longer than the lease of this package's stores. */
const LOCK_WAIT_MS = 45_000;
/** How long to wait for the release of a lock. */
const RELEASE_WAIT_MS = 2_000;
/** How long to wait for writes before the process ends. */
const DRAIN_MS = 2_000;
/** How long after a failure the store counts as down, if nothing has succeeded since. */
const DOWN_MS = 1_000;
/** How long after a failure other processes may still hold tokens that they have to save. */
const RECENTLY_MS = 60_000;

/**
 * Calls the application's token store, which may throw, hang or misbehave: every failure becomes a TokenStoreError.
 * Tracks whether the store works. Runs writes of one grant one after the other, in the order in which they were requested.
 */
export class StoreAccess {
  readonly #store: TokenStore;
  readonly #clock: () => number;
  readonly #onRecovery: () => void;
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
  }

  /** True if the store has failed within the last second and not succeeded since. */
  get isDown(): boolean {
    return this.#isFailing && performance.now() - this.#failedAt < DOWN_MS;
  }

  /** True if the store has failed within the last minute, so that another process may hold unsaved tokens. */
  get hasFailedRecently(): boolean {
    return performance.now() - this.#failedAt < RECENTLY_MS;
  }

  /**
   * Calls the store. `task` goes on by itself after its time limit, and when the signal aborts.
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

  /** Abandons the writes that run, so that those that wait behind them get a chance before the process ends. */
  abandonWrites(): void {
    for (const write of this.#runningWrites) write.abort(this.#failed(timeoutError('write')));
  }

  /**
   * Runs `work` under the store's lock for the id, or at once if the store has no locks. Settles as `work` does, also
   * if the lock hands the result on wrongly, runs `work` twice, or is never released.
   *
   * @param signal Ends the wait for the lock with its reason.
   * @throws TokenStoreError if the lock cannot be had; the signal's reason, as it is
   */
  async locked<T>(id: string, work: (lock: HeldLock) => Promise<T>, signal?: AbortSignal): Promise<T> {
    if (!this.#store.lock) return await work(NO_LOCK);
    const turn = new LockTurn(work, this.#clock);
    const released = this.#takeLock(id, turn);
    try {
      const taken = Promise.race([turn.taken, released]);
      await withTimeout(taken, LOCK_WAIT_MS, () => timeoutError('lock'), signal);
    } catch (error) {
      turn.giveUp();
      throw error;
    }
    await turn.result.catch(ignore);
    if (!turn.isHeld) await waitForRelease(released);
    return await turn.result;
  }

  /** Waits until all writes that were requested have settled, and all locks that are held are released, each for a while. */
  async drain(): Promise<void> {
    await withTimeout(this.#writes.drain(), DRAIN_MS, () => this.#failed(timeoutError('write'))).catch(ignore);
    await waitForRelease(Promise.all(this.#releases));
  }

  /** Resolves when the lock was released, and rejects if it could not be had. A failed release or a failed work is no failure of the lock. */
  async #takeLock(id: string, turn: LockTurn<unknown>): Promise<void> {
    // Async, so that a store that throws counts as one that rejects.
    const locking = (async () => this.#store.lock?.(id, () => turn.take()))();
    const released = locking.then(ignore, ignore);
    this.#releases.add(released);
    try {
      await locking;
      if (!turn.wasTaken) throw new Error('The lock did not run its work');
    } catch (error) {
      if (!turn.wasTaken) throw this.#failed(error);
    } finally {
      this.#releases.delete(released);
    }
  }

  #failed(error: unknown): OAuthAppError {
    // A lock that others hold for long says nothing about the store.
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

/** Stands for the lock of a store that has none. */
const NO_LOCK: HeldLock = { isOlderThan: () => false, holdUntil: ignore };

/** Work that waits for a lock. Runs once, however often the lock calls it. */
class LockTurn<T> implements HeldLock {
  /** Resolves when the lock was taken. */
  readonly taken: Promise<void>;
  /** Settles as the work does. */
  readonly result: Promise<T>;
  readonly #clock: () => number;
  readonly #holds: Promise<unknown>[] = [];
  #takenAt: { readonly monotonic: number; readonly wall: number } | undefined;
  #isGivenUp = false;
  #begin = ignore;

  constructor(work: (lock: HeldLock) => Promise<T>, clock: () => number) {
    this.#clock = clock;
    this.taken = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.result = this.taken.then(() => work(this));
  }

  get wasTaken(): boolean {
    return this.#takenAt !== undefined;
  }

  /** True if the lock is to be held longer than the work runs. */
  get isHeld(): boolean {
    return this.#holds.length > 0;
  }

  isOlderThan({ ageMs, wallAgeMs }: LockAge): boolean {
    const { monotonic, wall } = this.#takenAt ?? { monotonic: 0, wall: 0 };
    return performance.now() - monotonic > ageMs || this.#clock() - wall > wallAgeMs;
  }

  holdUntil(promise: Promise<unknown>): void {
    this.#holds.push(promise.catch(ignore));
  }

  /** Begins the work. Called by the lock, which is released when the promise settles. */
  async take(): Promise<T> {
    if (this.#isGivenUp) throw new Error('No caller waits for this lock any more');
    this.#takenAt ??= { monotonic: performance.now(), wall: this.#clock() };
    this.#begin();
    await this.result.catch(ignore);
    // Further ones may be added meanwhile.
    for (const hold of this.#holds) await hold;
    return await this.result;
  }

  giveUp(): void {
    this.#isGivenUp = true;
  }
}

function ignore(): void {}
