/** `setTimeout` fires at once beyond 2^31 - 1 ms, so longer waits are cut in pieces. */
const MAX_WAIT_MS = 2 ** 30;

/** Least time between two looks at all that waits: bounds the work, and with it how late an expiry may be. */
const RESOLUTION_MS = 20;

/** Something that ends when its time is over. */
export interface Expiring {
  /** When, on the clock of {@link Deadlines}; `Infinity` for never. Set by `Deadlines`. */
  expiresAt: number;
  expire(): void;
}

/**
 * One timer for all requests in flight.
 *
 * A timer for each request costs more than the rest of a deadline: nearly every request ends long before. Here a
 * request enters a set and leaves it, and the set is looked through when the earliest deadline known is due.
 */
export class Deadlines {
  readonly #waiting = new Set<Expiring>();
  #timer: NodeJS.Timeout | undefined;
  #nextLook = Infinity;

  /** How many wait. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Has `entry.expire()` called after `timeoutMs`, some 20 ms late at most, unless it is removed before. */
  add(entry: Expiring, timeoutMs: number): void {
    if (this.#waiting.size === 0) this.#timer?.ref();
    this.#waiting.add(entry);
    this.extend(entry, timeoutMs);
  }

  /** Counts `timeoutMs` anew from now. */
  extend(entry: Expiring, timeoutMs: number): void {
    const now = performance.now();
    entry.expiresAt = now + timeoutMs;
    if (entry.expiresAt < this.#nextLook) this.#lookAt(entry.expiresAt, now);
  }

  remove(entry: Expiring): void {
    // The timer stays for the next request, but must not keep the process alive.
    if (this.#waiting.delete(entry) && this.#waiting.size === 0) this.#timer?.unref();
  }

  /** Ends all that wait, now. */
  endAll(): void {
    for (const entry of this.#waiting) this.#end(entry);
  }

  #lookAt(time: number, now: number): void {
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(time - now, RESOLUTION_MS), MAX_WAIT_MS);
    this.#nextLook = now + waitMs;
    this.#timer = setTimeout(() => this.#look(), Math.ceil(waitMs));
    if (this.#waiting.size === 0) this.#timer.unref();
  }

  #look(): void {
    this.#timer = undefined;
    this.#nextLook = Infinity;
    const now = performance.now();
    let earliest = Infinity;
    for (const entry of this.#waiting) {
      if (entry.expiresAt > now) earliest = Math.min(earliest, entry.expiresAt);
      else this.#end(entry);
    }
    if (earliest < this.#nextLook) this.#lookAt(earliest, now);
  }

  #end(entry: Expiring): void {
    this.remove(entry);
    entry.expire();
  }
}
