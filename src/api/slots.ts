import type { Deadlines, Expiring } from '../http/deadlines.js';

/** Thrown to calls that wait while no slot becomes free for too long. */
export class NoSlot extends Error {}

/** A call that waits for a slot. */
interface Waiting {
  /** On the monotonic clock. */
  readonly since: number;
  proceed(error?: NoSlot): void;
}

/** Lets as many calls run at once as there are slots; the others wait in the order of their arrival. */
export class Slots implements Expiring {
  running = 0;
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  readonly #count: () => number;
  readonly #deadlines: Deadlines;
  readonly #patienceMs: number;
  /** A Set keeps the order of arrival, and a call that gives up leaves it at once. */
  readonly #waiting = new Set<Waiting>();
  /** When a slot became free last, on the monotonic clock. */
  #movedAt = -Infinity;

  /**
   * @param count Returns how many slots there are now
   * @param patienceMs How long each call waits without any slot becoming free, in milliseconds
   */
  constructor(count: () => number, deadlines: Deadlines, patienceMs: number) {
    this.#count = count;
    this.#deadlines = deadlines;
    this.#patienceMs = patienceMs;
  }

  /** Number of calls that run or wait. */
  get wanted(): number {
    return this.running + this.#waiting.size;
  }

  /** Takes a slot. Returns `undefined` if one is free. @throws NoSlot, the signal's reason */
  take(signal: AbortSignal | undefined): Promise<void> | undefined {
    if (this.running >= this.#count()) return this.#wait(signal);
    this.running++;
    return undefined;
  }

  release(): void {
    this.running--;
    this.admit();
  }

  /** Gives the free slots to the calls that have waited longest. */
  admit(): void {
    for (const next of this.#waiting) {
      if (this.running >= this.#count()) return;
      this.running++;
      this.#movedAt = performance.now();
      if (this.#waiting.size > 1) this.#deadlines.extend(this, this.#patienceMs);
      next.proceed();
    }
  }

  /** Ends the calls that have waited for too long. Later ones have more time. */
  expire(now: number): void {
    for (const waiting of this.#waiting) {
      const leftMs = Math.max(waiting.since, this.#movedAt) + this.#patienceMs - now;
      if (leftMs > 0) {
        this.#deadlines.add(this, leftMs);
        return;
      }
      waiting.proceed(new NoSlot());
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) this.#deadlines.remove(this);
        signal?.removeEventListener('abort', giveUp);
      };
      const waiting: Waiting = {
        since: performance.now(),
        proceed: (error) => {
          leave();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      const giveUp = () => {
        leave();
        reject(signal?.reason);
      };
      if (signal?.aborted) return giveUp();
      if (this.#waiting.size === 0) this.#deadlines.add(this, this.#patienceMs);
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', giveUp);
    });
  }
}
