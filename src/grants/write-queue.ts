import { KeyedQueue } from '../stores/keyed-queue.js';
import { withTimeout } from '../stores/time-limit.js';
import type { TokenStore } from '../stores/token-store.js';
import type { StoreAccess } from './store-access.js';

/** A write that is under way. Once it is lost, others have gone on: what becomes of it must change nothing in memory any more. */
export interface Write {
  readonly isLost: boolean;
}

/** What a lost write has read may be old by now. @throws where the write is lost */
export function goesOn({ isLost }: Write): void {
  if (isLost) throw new Error('This write was given up');
}

/** Times of a write, in milliseconds. */
export interface WriteLimits {
  /** How long its caller waits. */
  readonly waitMs: number;
  /** When it counts as lost, and no longer holds up those after it. */
  readonly lostMs: number;
}

/** The writes to a token store: those of one grant one after the other, in the order in which they were told. */
export class WriteQueue {
  readonly #store: StoreAccess;
  readonly #queue = new KeyedQueue();
  /** Makes each write that runs late. */
  readonly #lateNow = new Set<() => void>();

  constructor(store: StoreAccess) {
    this.#store = store;
  }

  /** How many grants have a write that runs or waits. */
  get size(): number {
    return this.#queue.size;
  }

  /** Settles as `task` does. @throws TokenStoreError if the store fails, or takes too long: then the task goes on by itself */
  run<T>(
    id: string,
    { waitMs, lostMs }: WriteLimits,
    task: (store: TokenStore, write: Write) => Promise<T>,
  ): Promise<T> {
    const late = () => this.#store.late('write');
    const written = this.#queue.run(id, () => {
      const write = { isLost: false };
      const lose = () => {
        write.isLost = true;
        return late();
      };
      const running = this.#store.use((store) => task(store, write));
      return withTimeout(running, lostMs, lose, this.#lateNow);
    });
    return withTimeout(written, waitMs, late);
  }

  /** Counts the writes that run as lost: the process ends soon, and what waits behind them has one more chance. */
  lose(): void {
    for (const giveUp of this.#lateNow) giveUp();
  }

  /** Resolves when all writes that are known now have settled, or after a while. */
  async drain(limitMs: number): Promise<void> {
    await withTimeout(this.#queue.drain(), limitMs, () => this.#store.late('write')).catch(() => {});
  }
}
