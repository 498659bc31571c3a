import { type HttpHeaders, type HttpRequest, retryAfterMs } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { MAX_TIMER_MS } from '../waiting.js';
import type { Permit } from './account-limiter.js';
import type { Credential } from './api-context.js';
import { isTokenRefused } from './api-error.js';
import { type ApiBase, redirectTarget } from './base-urls.js';
import { type CallRequest, DEFAULT_RETRY, type RetryLimits } from './call-options.js';

const MAX_REDIRECTS = 5;

/** Two, since the first may have returned a token that another process obtained earlier, and that the API refuses too. */
const MAX_RENEWALS = 2;

/**
 * After a 429, unless the call sets limits. It says that the request was not performed (RFC 6585, 4), so it is no failure while
 * there is time.
 */
const THROTTLED_RETRY: RetryLimits = {
  limit: Infinity,
  maxDelayMs: 30_000,
  maxTotalMs: 30_000,
  maxBackOffMs: 2_000,
};

/** The same if the call has a time limit. */
const THROTTLED_RETRY_IN_TIME: RetryLimits = { ...THROTTLED_RETRY, maxDelayMs: Infinity, maxTotalMs: Infinity };

/** Upper bound of the wait before the second try; doubles with each further one. */
const BASE_DELAY_MS = 250;

/** Sending one of these twice has the same effect as once (RFC 9110, 9.2.2). */
const IDEMPOTENT: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS']);

const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Failed tries of one kind, and the milliseconds waited after them. */
interface Tries {
  readonly count: number;
  readonly waitedMs: number;
}

/** State of a call between two tries. Replaced, never changed. */
export interface CallState {
  readonly requests: number;
  /** True once a request may have reached the service. */
  readonly sent: boolean;
  readonly failed: Tries;
  /** Refusals with 429, which `THROTTLED_RETRY` limits. */
  readonly throttled: Tries;
  readonly redirects: number;
  /** Path and query of the redirect that is followed. */
  readonly redirectedTo: string | undefined;
  /** How often a newer credential was requested. */
  readonly renewals: number;
  /** Credential of a renewal, until a response shows whether the API accepts it. */
  readonly renewed: Credential | undefined;
}

const NONE: Tries = { count: 0, waitedMs: 0 };

/** State of a call before its first try. */
export const START: CallState = Object.freeze({
  requests: 0,
  sent: false,
  failed: NONE,
  throttled: NONE,
  redirects: 0,
  redirectedTo: undefined,
  renewals: 0,
  renewed: undefined,
});

/** A request of a call, with its response or, once it was sent, its fault. */
export interface Attempt<A> {
  readonly credential: Credential;
  readonly base: ApiBase;
  readonly path: string;
  /** True if a redirect has led to this path. */
  readonly isRedirected: boolean;
  readonly request: HttpRequest;
  /** Its permit among the requests of the account, if these are limited. */
  readonly permit: Permit | undefined;
  answer: A | undefined;
  fault: unknown;
  /** True if a newer token is available, whether or not the call can use it. */
  isTokenRenewed: boolean;
}

/** Returns the state after a request that was no success. */
export function afterAttempt<A>(state: CallState, { answer, fault }: Attempt<A>): CallState {
  const sent = state.sent || !(fault instanceof TransportError) || fault.sent;
  const renewed = answer === undefined ? state.renewed : undefined;
  return { ...state, requests: state.requests + 1, sent, renewed };
}

/** What a call does after a request that was no success. */
export type NextStep =
  /** The response, or the fault, ends the call. */
  | { readonly next: 'end' }
  /** It asks for a newer credential. */
  | { readonly next: 'renew' }
  /** It sends another request. */
  | { readonly next: 'send'; readonly state: CallState; readonly delayMs: number };

/** What a decision depends on, apart from the call. */
export interface Circumstances {
  /** Epoch milliseconds. */
  readonly now: number;
  /** Milliseconds left to the whole call; `Infinity` for no limit. */
  readonly remainingMs: number;
  /** From 0 up to 1. */
  readonly random: number;
}

const END: NextStep = { next: 'end' };

/** Decides what follows a request that was no success. */
export function decideNext(
  state: CallState,
  {
    answer,
    fault,
    base,
    path,
    request: { origin },
  }: Attempt<{ readonly status: number; readonly headers: HttpHeaders }>,
  call: CallRequest,
  circumstances: Circumstances,
): NextStep {
  if (answer === undefined) return fault instanceof TransportError ? retry(state, fault, call, circumstances) : END;
  if (isTokenRefused(answer) && state.renewals < MAX_RENEWALS) return { next: 'renew' };
  const target = redirectTarget(call, answer, { origin, prefix: base.prefix }, path);
  if (target !== undefined && state.redirects < MAX_REDIRECTS)
    return { next: 'send', delayMs: 0, state: { ...state, redirects: state.redirects + 1, redirectedTo: target } };
  const { status, headers } = answer;
  return retry(state, { status, retryAfterMs: retryAfterMs(headers, circumstances.now) }, call, circumstances);
}

/** A response that asks for another try, or a fault of the connection. */
type TryFailure = { readonly status: number; readonly retryAfterMs: number | undefined } | TransportError;

function retry(
  state: CallState,
  failure: TryFailure,
  call: CallRequest,
  { remainingMs, random }: Circumstances,
): NextStep {
  const isThrottled = call.retry === DEFAULT_RETRY && 'status' in failure && failure.status === 429;
  const throttledRetry = call.timeoutMs === undefined ? THROTTLED_RETRY : THROTTLED_RETRY_IN_TIME;
  const limits = isThrottled ? throttledRetry : call.retry;
  const kind = isThrottled ? 'throttled' : 'failed';
  const { count, waitedMs } = state[kind];
  const askedMs = 'status' in failure ? (failure.retryAfterMs ?? 0) : 0;
  if (count >= limits.limit || askedMs > limits.maxDelayMs || !mayBeSentAgain(call, failure)) return END;
  // Full jitter: clients that failed together do not come back together, even if all got the same `Retry-After`.
  const delayMs = askedMs + random * Math.min(BASE_DELAY_MS * 2 ** count, limits.maxBackOffMs);
  if (waitedMs + delayMs > limits.maxTotalMs || delayMs >= Math.min(remainingMs, MAX_TIMER_MS)) return END;
  return { next: 'send', delayMs, state: { ...state, [kind]: { count: count + 1, waitedMs: waitedMs + delayMs } } };
}

function mayBeSentAgain(call: CallRequest, failure: TryFailure): boolean {
  if (!isReplayable(call)) return false;
  const isIdempotent = IDEMPOTENT.has(call.method);
  // 429 says that the request was not performed (RFC 6585, 4), so that any method may be repeated.
  if ('status' in failure) return failure.status === 429 || (RETRIED_STATUSES.has(failure.status) && isIdempotent);
  // A timeout is not repeated: the caller has waited long enough.
  return failure.kind === 'connect' || failure.kind === 'reset' ? isIdempotent || !failure.sent : false;
}

/** Returns true if the body of a call can be sent again, or it has none. */
export function isReplayable({ body }: CallRequest): boolean {
  return body?.isReplayable !== false;
}
