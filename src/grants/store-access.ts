import { OAuthAppError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { withTimeout } from '../stores/time-limit.js';
import type { TokenStore } from '../stores/token-store.js';

/** How long to wait for a store's lock; longer than the lease of the stores of this package. */
const LOCK_LIMIT_MS = 45_000;
/** How long the result of work waits for the store to take its lock back. */
const RELEASE_LIMIT_MS = 2_000;
/** For how long after a failure the store counts as out of reach, if nothing has succeeded since. */
const DOWN_MS = 1_000;
/** How long other processes may need to save what they hold in memory, once the store is back. */
const LATELY_MS = 60_000;

/**
 * The application's token store, which may throw, hang, or do as it likes: whatever goes wrong is a TokenStoreError,
 * and it is known whether it has worked lately.
 */
export class StoreAccess {
  readonly #store: TokenStore;
  readonly #onRecovery: () => void;
  #isFailing = false;
  /** On the clock of `performance`, which nobody sets. */
  #failedAt = Number.NEGATIVE_INFINITY;

  /** @param onRecovery Called when the store works again after it has failed. */
  constructor(store: TokenStore, onRecovery: () => void) {
    this.#store = store;
    this.#onRecovery = onRecovery;
  }

  /** Whether the store has just failed, so that there is no use in waiting for it. */
  get isDown(): boolean {
    return this.#isFailing && performance.now() - this.#failedAt < DOWN_MS;
  }

  /** Whether the store has failed within the last minute, so that somebody may hold a pair that is still to be saved. */
  get hasFailedLately(): boolean {
    return performance.now() - this.#failedAt < LATELY_MS;
  }

  /** Does something with the store. @throws TokenStoreError for whatever that throws */
  async use<T>(task: (store: TokenStore) => Promise<T>): Promise<T> {
    try {
      const result = await task(this.#store);
      this.#worked();
      return result;
    } catch (error) {
      throw this.#failed(error);
    }
  }

  /** The error for a store that has not answered within its time. */
  late(what: string): OAuthAppError {
    return this.#failed(lateFor(what));
  }

  /**
   * Runs `work` under the store's lock for the id, or right away if the store has no locks. Settles as `work` does,
   * whatever the lock makes of it.
   */
  async locked<T>(id: string, work: () => Promise<T>): Promise<T> {
    if (!this.#store.lock) return await work();
    const turn = new Turn(work);
    const over = this.#lock(id, turn);
    await withTimeout(Promise.race([turn.start, over]), LOCK_LIMIT_MS, () => {
      turn.giveUp();
      return lateFor('lock');
    });
    const result = turn.result ?? Promise.reject(this.#failed(new Error('The lock has not run its work')));
    await result.catch(nothing);
    // The next refresh shall find the lock free, but nobody waits for a store that does not take it back.
    await withTimeout(over, RELEASE_LIMIT_MS, () => lateFor('unlock')).catch(nothing);
    return await result;
  }

  /** Resolves when the lock was given back. Rejects if it could not be had; not if the work failed, or the giving back. */
  async #lock(id: string, turn: Turn<unknown>): Promise<void> {
    try {
      await this.#store.lock?.(id, () => turn.take());
    } catch (error) {
      if (turn.result === undefined) throw this.#failed(error);
    }
  }

  #worked(): void {
    if (!this.#isFailing) return;
    this.#isFailing = false;
    this.#onRecovery();
  }

  #failed(error: unknown): OAuthAppError {
    // A lock that others hold for long says nothing about the store.
    if (error instanceof TokenStoreError && error.code === 'ERR_TOKEN_STORE_LOCKED') return error;
    this.#isFailing = true;
    this.#failedAt = performance.now();
    if (error instanceof OAuthAppError) return error;
    return new TokenStoreError('The token store failed. No grant was given up; the next request asks it again.', {
      cause: safeCause(error),
    });
  }
}

function lateFor(what: string): TokenStoreError {
  return new TokenStoreError(
    `The token store did not answer in time (${what}). No grant was given up; the next request asks it again.`,
    { code: 'ERR_TOKEN_STORE_TIMEOUT' },
  );
}

/** Work that waits for a lock, and runs once however often the lock calls it. */
class Turn<T> {
  readonly start: Promise<void>;
  result: Promise<T> | undefined;
  readonly #work: () => Promise<T>;
  #begin = nothing;
  #isGivenUp = false;

  constructor(work: () => Promise<T>) {
    this.#work = work;
    this.start = new Promise((resolve) => {
      this.#begin = resolve;
    });
  }

  take(): Promise<T> {
    if (this.#isGivenUp) return Promise.reject(new Error('Nobody waits for this lock any more'));
    this.result ??= this.#work();
    this.#begin();
    return this.result;
  }

  giveUp(): void {
    this.#isGivenUp = true;
  }
}

function nothing(): void {}
