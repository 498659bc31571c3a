import type { TransportFault } from '../http/transport-error.js';

/** How often and for how long a failed request is tried again, in milliseconds. Some seconds at most: a browser waits for most calls. */
const POLICY = {
  /** Tries in all, the first one among them. */
  maxTries: 3,
  /** Upper bound of the wait before the second try; doubles with each further one. */
  baseDelayMs: 250,
  /** Longest `Retry-After` that is waited for; a longer one ends the call at once. */
  maxRetryAfterMs: 10_000,
  /** Most that one call waits between its tries, together. */
  maxTotalMs: 15_000,
} as const;

/** One failed try, and what came before it. */
export interface FailedTry {
  readonly method: string;
  /** Whether the body, if any, can be sent again. */
  readonly replayable: boolean;
  /** Tries so far, this one among them. */
  readonly tries: number;
  /** Milliseconds waited between tries so far. */
  readonly waitedMs: number;
  /** Milliseconds left to the whole call; `Infinity` for no limit. */
  readonly remainingMs: number;
  readonly failure: TryFailure;
}

/** An answer that asks for another try, or no answer. */
export type TryFailure =
  | { readonly status: number; readonly retryAfterMs: number | undefined }
  | { readonly kind: TransportFault; readonly left: boolean };

/** Sending one of these twice has the same effect as once (RFC 9110, 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);

const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/** Faults of the connection. A time-out is none: the caller has waited long enough. */
const RETRIED_FAULTS: ReadonlySet<TransportFault> = new Set<TransportFault>(['connect', 'reset']);

/**
 * Milliseconds to wait before the next try; `undefined` for giving up.
 *
 * @param random From 0 up to 1: full jitter, so that clients that failed together do not come back together
 */
export function retryDelay(failed: FailedTry, random: number): number | undefined {
  if (failed.tries >= POLICY.maxTries || !mayBeTriedAgain(failed)) return undefined;
  const asked = 'status' in failed.failure ? (failed.failure.retryAfterMs ?? 0) : 0;
  if (asked > POLICY.maxRetryAfterMs) return undefined;
  // The jitter comes on top: everybody else was told the same time.
  const delay = asked + random * POLICY.baseDelayMs * 2 ** (failed.tries - 1);
  const isInTime = failed.waitedMs + delay <= POLICY.maxTotalMs && delay < failed.remainingMs;
  return isInTime ? delay : undefined;
}

function mayBeTriedAgain({ method, replayable, failure }: FailedTry): boolean {
  if (!replayable) return false;
  if ('status' in failure) return RETRIED_STATUSES.has(failure.status) && IDEMPOTENT.has(method);
  return RETRIED_FAULTS.has(failure.kind) && (IDEMPOTENT.has(method) || !failure.left);
}
