import { remainingMs } from '../clock.js';
import { cloneError, ServiceUnavailableError } from '../errors.js';

interface Backoff {
  /** Number of failures in a row. */
  readonly failures: number;
  /** Epoch milliseconds. */
  readonly until: number;
  /** What callers get during the backoff; `undefined` for an endpoint that failed. */
  readonly refusal?: Error | undefined;
}

const FIRST_MS = 1_000;
const MAX_MS = 30_000;
/** Largest number of keys. The oldest is dropped beyond it, which costs one more try. */
const MAX_KEYS = 10_000;

/**
 * Exponential backoffs by key: 1 s after the first failure, doubled with each further one, 30 s at most. `delete` ends
 * one. Roughly in the order in which they end.
 */
export class Backoffs extends Map<string, Backoff> {
  /** Returns how long the key is not to be tried, in milliseconds; 0 if it may be tried now. @param now Epoch milliseconds. */
  remainingMs(key: string, now: number): number {
    const backoff = this.get(key);
    return backoff === undefined ? 0 : remainingMs(backoff.until, now, MAX_MS);
  }

  /**
   * Starts the key's next backoff and returns its length. Failures during a backoff do not lengthen it.
   *
   * @param requestedMs What the service asked for; counts within 1 s to 30 s.
   * @param refusal What the service answered.
   */
  fail(key: string, now: number, requestedMs?: number, refusal?: Error): number {
    for (const [ended, { until }] of this) {
      if (Math.abs(now - until) <= MAX_MS) break;
      this.delete(ended);
    }
    const failures = this.get(key)?.failures ?? 0;
    const leftMs = this.remainingMs(key, now);
    const ownMs = leftMs || FIRST_MS * 2 ** Math.min(failures, 10);
    const ms = Math.min(Math.max(requestedMs ?? ownMs, leftMs || FIRST_MS), MAX_MS);
    this.delete(key);
    this.set(key, { failures: leftMs > 0 ? failures : failures + 1, until: now + ms, refusal });
    const [oldest = key] = this.keys();
    if (this.size > MAX_KEYS) this.delete(oldest);
    return ms;
  }
}

/** Number of grants whose refreshes must fail, with no answer in between, before the endpoint counts as down for all. */
const DOWN_AFTER_GRANTS = 5;

/** Key of the endpoint itself. No grant has an empty id. */
const ENDPOINT = '';

/**
 * Keeps the backoffs of the token endpoint: one for each grant whose refresh failed, and one for all grants, when many
 * fail in a row. So callers do not wait one after the other for the same time-out. A pause that the service asks for
 * (`Retry-After`, RFC 9110, 10.2.3) holds for all grants and for its whole time: an answer to another request does not end it.
 */
export class EndpointBackoff {
  readonly #backoffs = new Backoffs();
  /** Grants that failed since the endpoint last answered, up to the number that counts. */
  readonly #failed = new Set<string>();
  /** End of the pause that the service has asked for, in epoch milliseconds. */
  #pausedUntil = 0;

  /** Returns how long the grant is not to be refreshed, in milliseconds. @param now Epoch milliseconds. */
  remainingMs(id: string, now: number): number {
    const pauseMs = remainingMs(this.#pausedUntil, now, MAX_MS);
    return Math.max(pauseMs, this.#backoffs.remainingMs(id, now), this.#backoffs.remainingMs(ENDPOINT, now));
  }

  /** Returns how long no grant is to be refreshed, in milliseconds. @param now Epoch milliseconds. */
  pauseMs(now: number): number {
    return this.remainingMs(ENDPOINT, now);
  }

  /** Returns the error for callers during a backoff of the grant, if there is one. @param now Epoch milliseconds. */
  error(id: string, now: number): Error | undefined {
    const leftMs = this.#backoffs.size === 0 && this.#pausedUntil === 0 ? 0 : this.remainingMs(id, now);
    if (leftMs === 0) return undefined;
    const refusal = this.#backoffs.remainingMs(id, now) > 0 ? this.#backoffs.get(id)?.refusal : undefined;
    if (refusal) return cloneError(refusal) as Error;
    const message = 'The token endpoint has just failed; it is tried again later. The grant is kept.';
    return new ServiceUnavailableError(message, { retryAfter: leftMs / 1000 });
  }

  /** Records a failure. Returns the same failure with the time after which a new try makes sense. */
  fail(id: string, failure: ServiceUnavailableError, now: number): ServiceUnavailableError {
    const requestedMs = failure.retryAfter === undefined ? undefined : failure.retryAfter * 1000;
    const ms = this.#backoffs.fail(id, now, requestedMs);
    if (this.#failed.size < DOWN_AFTER_GRANTS) this.#failed.add(id);
    // The answer to a request that was sent before a longer pause began does not shorten it.
    if (requestedMs !== undefined) this.#pausedUntil = now + Math.max(ms, remainingMs(this.#pausedUntil, now, MAX_MS));
    else if (this.#failed.size >= DOWN_AFTER_GRANTS) this.#backoffs.fail(ENDPOINT, now);
    const { message, code, cause } = failure;
    return new ServiceUnavailableError(message, { code, cause, retryAfter: ms / 1000 });
  }

  /**
   * Records an answer that gave a grant of the application no token: a refusal, or an unusable one. The next try would most
   * likely get the same, and a busy job makes many.
   */
  refuse(id: string, refusal: Error, now: number): void {
    this.#failed.clear();
    this.#backoffs.delete(ENDPOINT);
    this.#backoffs.fail(id, now, undefined, refusal);
  }

  /** Joins a backoff of the grant that another process has begun. @param retryAt Epoch milliseconds. One that no backoff reaches comes from a clock that differs. */
  join(id: string, now: number, retryAt: number): void {
    const leftMs = remainingMs(retryAt, now, MAX_MS);
    if (leftMs > 0) this.#backoffs.fail(id, now, leftMs);
  }

  /** Records an answer, be it a refusal. */
  succeed(id: string): void {
    this.#failed.clear();
    this.#backoffs.delete(id);
    this.#backoffs.delete(ENDPOINT);
  }

  /** Forgets a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    this.#backoffs.delete(id);
  }
}
