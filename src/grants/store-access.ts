import { OAuthAppError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { withTimeout } from '../stores/time-limit.js';
import type { TokenStore } from '../stores/token-store.js';

/** How long to wait for a store's lock; longer than the lease of this package's stores. */
const LOCK_WAIT_MS = 45_000;
/** How long to wait for the release of a lock. */
const RELEASE_WAIT_MS = 2_000;
/** How long after a failure the store counts as down, if nothing has succeeded since. */
const DOWN_MS = 1_000;
/** How long after a failure other processes may still hold tokens that they have to save. */
const RECENTLY_MS = 60_000;

/**
 * Calls the application's token store, which may throw, hang or misbehave: every failure becomes a TokenStoreError.
 * Tracks whether the store works.
 */
export class StoreAccess {
  readonly #store: TokenStore;
  readonly #onRecovery: () => void;
  #isFailing = false;
  /** On the monotonic clock. */
  #failedAt = Number.NEGATIVE_INFINITY;

  /** @param onRecovery Called when the store works again after a failure. */
  constructor(store: TokenStore, onRecovery: () => void) {
    this.#store = store;
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

  /** Calls the store. @throws TokenStoreError for whatever `task` throws */
  async use<T>(task: (store: TokenStore) => Promise<T>): Promise<T> {
    try {
      const result = await task(this.#store);
      if (this.#isFailing) {
        this.#isFailing = false;
        this.#onRecovery();
      }
      return result;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** Returns the error for an operation that has exceeded its time limit. */
  timedOut(operation: string): OAuthAppError {
    return this.#failed(timeoutError(operation));
  }

  /**
   * Runs `work` under the store's lock for the id, or at once if the store has no locks. Settles as `work` does, also
   * if the lock hands the result on wrongly, runs `work` twice, or is never released.
   *
   * @throws TokenStoreError if the lock cannot be had
   */
  async locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (!this.#store.lock) return await work();
    const turn = new LockTurn(work);
    const released = this.#takeLock(id, turn);
    await waitForLock(turn, released);
    await turn.result.catch(ignore);
    await waitForRelease(released);
    return await turn.result;
  }

  /** Resolves when the lock was released, and rejects if it could not be had. A failed release or a failed work is no failure of the lock. */
  async #takeLock(id: string, turn: LockTurn<unknown>): Promise<void> {
    try {
      await this.#store.lock?.(id, () => turn.take());
      if (!turn.wasTaken) throw new Error('The lock did not run its work');
    } catch (error) {
      if (!turn.wasTaken) throw this.#failed(error);
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

/** Resolves when the work has begun. @throws TokenStoreError if the lock fails or takes too long */
async function waitForLock(turn: LockTurn<unknown>, released: Promise<void>): Promise<void> {
  await withTimeout(Promise.race([turn.taken, released]), LOCK_WAIT_MS, () => {
    turn.giveUp();
    return timeoutError('lock');
  });
}

/** Waits so that the next refresh finds the lock free, but not for long: the release does not change the result. */
async function waitForRelease(released: Promise<void>): Promise<void> {
  await withTimeout(released, RELEASE_WAIT_MS, () => timeoutError('unlock')).catch(ignore);
}

function timeoutError(operation: string): TokenStoreError {
  return new TokenStoreError(
    `The token store did not answer in time (${operation}). All grants are kept; the next request calls it again.`,
    { code: 'ERR_TOKEN_STORE_TIMEOUT' },
  );
}

/** Work that waits for a lock. Runs once, however often the lock calls it. */
class LockTurn<T> {
  /** Resolves when the lock was taken. */
  readonly taken: Promise<void>;
  /** Settles as the work does. */
  readonly result: Promise<T>;
  wasTaken = false;
  #isGivenUp = false;
  #begin = ignore;

  constructor(work: () => Promise<T>) {
    this.taken = new Promise((resolve) => {
      this.#begin = resolve;
    });
    this.result = this.taken.then(work);
  }

  /** Begins the work. Called by the lock. */
  take(): Promise<T> {
    if (this.#isGivenUp) return Promise.reject(new Error('No caller waits for this lock any more'));
    this.wasTaken = true;
    this.#begin();
    return this.result;
  }

  giveUp(): void {
    this.#isGivenUp = true;
  }
}

function ignore(): void {}
