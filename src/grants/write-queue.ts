import { KeyedQueue } from '../stores/keyed-queue.js';
import { withTimeout } from '../stores/time-limit.js';
import type { TokenStore } from '../stores/token-store.js';
import type { StoreAccess } from './store-access.js';

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

/** Runs writes to a token store: those of one grant one after the other, in the order in which they were requested. */
export class WriteQueue {
  readonly #store: StoreAccess;
  readonly #queue = new KeyedQueue();
  readonly #running = new Set<AbortController>();

  constructor(store: StoreAccess) {
    this.#store = store;
  }

  /** Settles as `task` does. @throws TokenStoreError if the store fails or exceeds the limits; the task then goes on by itself */
  run<T>(id: string, { waitMs, abandonMs }: WriteLimits, task: WriteTask<T>): Promise<T> {
    const written = this.#queue.run(id, async () => {
      const write = new AbortController();
      this.#running.add(write);
      try {
        return await this.#store.use((store) => task(store, write.signal), 'write', abandonMs, write.signal);
      } catch (error) {
        write.abort(error);
        throw error;
      } finally {
        this.#running.delete(write);
      }
    });
    return withTimeout(written, waitMs, () => this.#store.timedOut('write'));
  }

  /** Abandons the writes that run, so that those that wait behind them get a chance before the process ends. */
  abandonAll(): void {
    for (const write of this.#running) write.abort(this.#store.timedOut('write'));
  }

  /** Resolves when all writes that were requested until now have settled, or after `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    await withTimeout(this.#queue.drain(), limitMs, () => this.#store.timedOut('write')).catch(() => {});
  }
}
