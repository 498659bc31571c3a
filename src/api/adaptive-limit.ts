/** How long a refusal is remembered, in milliseconds. */
const MEMORY_MS = 30_000;

/**
 * How many requests of an account this process may have running, as the service's refusals show. A 429 halves it, and each
 * success adds a little (additive increase, multiplicative decrease, as in RFC 5681, 3.1).
 *
 * Requests to the token endpoint are limited by response times instead: under load it slows down rather than refusing. API calls
 * are too different from each other for that.
 */
export class AdaptiveLimit {
  /** How often it was lowered. */
  decreases = 0;
  readonly #max: number;
  #value: number;
  #refusedAt = -Infinity;

  /** @param max `Infinity` for no limit until the first refusal */
  constructor(max: number) {
    this.#max = max;
    this.#value = max;
  }

  get value(): number {
    return this.#value === this.#max || this.isRemembered ? this.#value : this.#max;
  }

  /** True for a while after a refusal. */
  get isRemembered(): boolean {
    return performance.now() - this.#refusedAt <= MEMORY_MS;
  }

  accepted(): void {
    this.#value = Math.min(this.#max, this.value + 1 / this.value);
  }

  /** @param running Requests that were running when the service refused */
  refused(running: number): void {
    this.#value = Math.max(1, Math.min(this.value, running) / 2);
    this.#refusedAt = performance.now();
    this.decreases++;
  }
}
