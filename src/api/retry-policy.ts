import type { TransportFault } from '../http/transport-error.js';
import { MAX_TIMER_MS } from '../waiting.js';

/** Limits of the further tries of one call. */
export interface RetryLimits {
  /** Further tries after the first one. */
  readonly limit: number;
  /** Maximum wait before one try, in milliseconds. A longer `Retry-After` ends the call. */
  readonly maxDelayMs: number;
  /** Maximum of all waits together, in milliseconds. */
  readonly maxTotalMs: number;
  /** Maximum wait before one try if the service asks for none, in milliseconds. */
  readonly maxBackOffMs: number;
}

/** Some seconds at most: a browser waits for most calls. */
export const DEFAULT_RETRY: RetryLimits = Object.freeze({
  limit: 2,
  maxDelayMs: 10_000,
  maxTotalMs: 15_000,
  maxBackOffMs: 10_000,
});

/**
 * After a 429, unless the call sets limits. It says that the request was not performed (RFC 6585, 4), so it is no failure while
 * there is time.
 */
export const THROTTLED_RETRY: RetryLimits = Object.freeze({
  limit: Infinity,
  maxDelayMs: 30_000,
  maxTotalMs: 30_000,
  maxBackOffMs: 2_000,
});

/** Upper bound of the wait before the second try; doubles with each further one. */
const BASE_DELAY_MS = 250;

/** A failed try, and what came before it. */
export interface FailedTry {
  readonly method: string;
  /** True without a body, or with one that can be sent again. */
  readonly isReplayable: boolean;
  /** Failed tries so far, this one included. */
  readonly failures: number;
  /** Milliseconds waited between tries so far. */
  readonly waitedMs: number;
  /** Milliseconds left to the whole call; `Infinity` for no limit. */
  readonly remainingMs: number;
  readonly failure: TryFailure;
}

/** A response that asks for another try, or a fault of the connection. */
export type TryFailure =
  | { readonly status: number; readonly retryAfterMs: number | undefined }
  | { readonly kind: TransportFault; readonly sent: boolean };

/** Sending one of these twice has the same effect as once (RFC 9110, 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);

const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/**
 * Returns the milliseconds to wait before the next try; `undefined` for none.
 *
 * @param random From 0 up to 1: full jitter, so that clients that failed together do not come back together
 */
export function retryDelay(failed: FailedTry, limits: RetryLimits, random: number): number | undefined {
  if (failed.failures > limits.limit || !mayBeTriedAgain(failed)) return undefined;
  const asked = 'status' in failed.failure ? (failed.failure.retryAfterMs ?? 0) : 0;
  if (asked > limits.maxDelayMs) return undefined;
  // The jitter is added: other clients got the same `Retry-After`.
  const backOff = Math.min(BASE_DELAY_MS * 2 ** (failed.failures - 1), limits.maxBackOffMs);
  const delay = asked + random * backOff;
  const isInTime = failed.waitedMs + delay <= limits.maxTotalMs && delay < Math.min(failed.remainingMs, MAX_TIMER_MS);
  return isInTime ? delay : undefined;
}

function mayBeTriedAgain({ method, isReplayable, failure }: FailedTry): boolean {
  if (!isReplayable) return false;
  const isIdempotent = IDEMPOTENT.has(method);
  // 429 says that the request was not performed (RFC 6585, 4), so that any method may be repeated.
  if ('status' in failure) return failure.status === 429 || (RETRIED_STATUSES.has(failure.status) && isIdempotent);
  // A timeout is not repeated: the caller has waited long enough.
  return failure.kind === 'connect' || failure.kind === 'reset' ? isIdempotent || !failure.sent : false;
}
