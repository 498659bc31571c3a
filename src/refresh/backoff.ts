interface BackOff {
  /** How often in a row. */
  readonly step: number;
  /** Epoch milliseconds. */
  readonly until: number;
}

const FIRST_MS = 1_000;
const MAX_MS = 30_000;
/** Most keys at once; beyond it the oldest is forgotten, which costs one more try. */
const MAX_KEYS = 10_000;

/** Moments during which something is not tried, by key: 1 s at first, doubled each time, 30 s at most. */
export class Backoffs {
  readonly #entries = new Map<string, BackOff>();

  get size(): number {
    return this.#entries.size;
  }

  /** How long the key is to be left alone still, in milliseconds; 0 where it is free. @param now Epoch milliseconds. */
  remainingMs(key: string, now: number): number {
    const entry = this.#entries.get(key);
    const left = entry === undefined ? 0 : entry.until - now;
    // More than any moment lasts: the clock was set back, and the moment is over for all we know.
    return left > 0 && left <= MAX_MS ? left : 0;
  }

  /** Leaves the key alone for its next moment, and returns how long that is. @param askedMs What the service asked for; counts within 1 s to 30 s. */
  lengthen(key: string, now: number, askedMs?: number): number {
    this.#forgetSpent(now);
    const former = this.#entries.get(key);
    const leftMs = this.remainingMs(key, now);
    // What fails together is one failure: the moment grows once.
    const step = leftMs > 0 ? (former?.step ?? 1) : (former?.step ?? 0) + 1;
    const growing = leftMs > 0 ? leftMs : FIRST_MS * 2 ** Math.min(step - 1, 10);
    const ms = Math.min(Math.max(askedMs ?? growing, leftMs, FIRST_MS), MAX_MS);
    this.#entries.delete(key);
    this.#entries.set(key, { step, until: now + ms });
    if (this.#entries.size > MAX_KEYS) this.#forgetOldest();
    return ms;
  }

  clear(key: string): void {
    this.#entries.delete(key);
  }

  /** Moments that ended long ago say nothing about the next one. The order of the map is about the order in which they end. */
  #forgetSpent(now: number): void {
    for (const [key, { until }] of this.#entries) {
      if (Math.abs(now - until) <= MAX_MS) return;
      this.#entries.delete(key);
    }
  }

  #forgetOldest(): void {
    for (const key of this.#entries.keys()) {
      this.#entries.delete(key);
      return;
    }
  }
}
