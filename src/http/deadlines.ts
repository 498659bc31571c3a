/** `setTimeout` fires at once beyond 2^31 - 1 ms, so longer waits are cut in pieces. */
const MAX_WAIT_MS = 2 ** 30;

/** Least time between two scans: bounds the work, and with it how late an expiry may be. */
const RESOLUTION_MS = 20;

/** A scan that is later than this, in milliseconds, follows a suspension or a busy event loop: responses may wait to be read. */
const LATE_MS = 500;

/** Something that ends at a deadline. */
export interface Expiring {
  /** The deadline, on the clock of {@link Deadlines}; `Infinity` for none. Set by `Deadlines`. */
  expiresAt: number;
  expire(): void;
}

/**
 * One timer for all requests in flight.
 *
 * Most requests finish long before their deadline, so a timer each is wasteful. Requests join a set; a single timer
 * scans it at the earliest deadline.
 */
export class Deadlines {
  readonly #waiting = new Set<Expiring>();
  #timer: NodeJS.Timeout | undefined;
  #nextScan = Infinity;
  #isPostponed = false;

  /** Number of entries that have not expired. */
  get size(): number {
    return this.#waiting.size;
  }

  /** Calls `entry.expire()` after `timeoutMs`, at most some 20 ms late, unless it is removed before. */
  add(entry: Expiring, timeoutMs: number): void {
    if (this.#waiting.size === 0) this.#timer?.ref();
    this.#waiting.add(entry);
    this.extend(entry, timeoutMs);
  }

  /** Moves the deadline to `timeoutMs` from now. */
  extend(entry: Expiring, timeoutMs: number): void {
    const now = performance.now();
    entry.expiresAt = now + timeoutMs;
    if (entry.expiresAt < this.#nextScan) this.#scheduleScan(entry.expiresAt, now);
  }

  remove(entry: Expiring): void {
    // The timer stays for the next request, but must not keep the process alive.
    if (this.#waiting.delete(entry) && this.#waiting.size === 0) this.#timer?.unref();
  }

  /** Expires all entries now. */
  endAll(): void {
    for (const entry of this.#waiting) this.#end(entry);
  }

  #scheduleScan(time: number, now: number): void {
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(time - now, RESOLUTION_MS), MAX_WAIT_MS);
    this.#nextScan = now + waitMs;
    this.#timer = setTimeout(() => this.#scan(), Math.ceil(waitMs));
    if (this.#waiting.size === 0) this.#timer.unref();
  }

  #scan(): void {
    const now = performance.now();
    const lateMs = now - this.#nextScan;
    this.#timer = undefined;
    this.#nextScan = Infinity;
    // Timers run before sockets are read: whatever has arrived meanwhile gets one turn of the event loop.
    this.#isPostponed = lateMs > LATE_MS && !this.#isPostponed;
    if (this.#isPostponed) {
      this.#scheduleScan(now, now);
      return;
    }
    let earliest = Infinity;
    for (const entry of this.#waiting) {
      if (entry.expiresAt > now) earliest = Math.min(earliest, entry.expiresAt);
      else this.#end(entry);
    }
    if (earliest < this.#nextScan) this.#scheduleScan(earliest, now);
  }

  #end(entry: Expiring): void {
    this.remove(entry);
    entry.expire();
  }
}
