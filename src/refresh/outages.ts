import { ServiceUnavailableError } from '../errors.js';
import { Backoffs } from './backoff.js';

/** When the refreshes of so many grants have failed, and none has been answered, the service itself counts as down. */
const SERVICE_DOWN_AFTER = 5;

/** The key of the service itself. Ids of grants hold no white space. */
const SERVICE = 'the service';

/**
 * What is known of the token endpoint's bad moments.
 *
 * A grant whose refresh failed is left alone for a growing moment. When grant after grant fails, or the service asks
 * for a pause, all are: nobody waits for a time-out that somebody else has just waited for.
 */
export class Outages {
  readonly #backOffs = new Backoffs();
  /** Grants that failed since the service answered last; not more than count. */
  readonly #failed = new Set<string>();

  get size(): number {
    return this.#backOffs.size;
  }

  /** How long the grant is to be left alone still, in milliseconds. @param now Epoch milliseconds. */
  remainingMs(id: string, now: number): number {
    return Math.max(this.#backOffs.remainingMs(id, now), this.#backOffs.remainingMs(SERVICE, now));
  }

  /** @throws ServiceUnavailableError while the grant is to be left alone. @param now Epoch milliseconds. */
  check(id: string, now: number): void {
    const leftMs = this.remainingMs(id, now);
    if (leftMs > 0) {
      throw new ServiceUnavailableError(
        'The token endpoint failed a moment ago; it is not asked again yet. The grant is kept.',
        {
          retryAfter: Math.ceil(leftMs / 1000),
        },
      );
    }
  }

  /** Notes a failure. @returns The same failure, saying when a new try makes sense. */
  failed(id: string, failure: ServiceUnavailableError, now: number): ServiceUnavailableError {
    const askedMs = failure.retryAfter === undefined ? undefined : failure.retryAfter * 1000;
    const ms = this.#backOffs.lengthen(id, now, askedMs);
    if (this.#failed.size < SERVICE_DOWN_AFTER) this.#failed.add(id);
    if (askedMs !== undefined || this.#failed.size >= SERVICE_DOWN_AFTER)
      this.#backOffs.lengthen(SERVICE, now, askedMs);
    const { message, code, cause } = failure;
    return new ServiceUnavailableError(message, { code, cause, retryAfter: Math.ceil(ms / 1000) });
  }

  /** Notes that the service answered, be it with a refusal. */
  answered(id: string): void {
    this.#failed.clear();
    this.#backOffs.clear(id);
    this.#backOffs.clear(SERVICE);
  }

  /** Forgets the grant. */
  forget(id: string): void {
    this.#backOffs.clear(id);
  }
}
