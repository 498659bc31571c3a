import { type HttpRequest, type HttpResponse, retryAfterMs } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import { MAX_TIMER_MS } from '../waiting.js';
import type { Permit } from './account-limiter.js';
import type { Credential } from './api-context.js';
import { isTokenRefused } from './api-error.js';
import { type ApiBase, redirectTarget } from './base-urls.js';
import { type CallRequest, DEFAULT_RETRY, type RetryLimits } from './call-request.js';

const MAX_REDIRECTS = 5;

/** Two: the first may return a token that another process obtained earlier, and that the API rejects too. */
const MAX_RENEWALS = 2;

/** Limits after a 429, unless the call sets them. It was not performed (RFC 6585, 4), so that any call may be repeated. */
const THROTTLED_RETRY: RetryLimits = {
  limit: Infinity,
  maxDelayMs: 30_000,
  maxTotalMs: 30_000,
  maxBackOffMs: 2_000,
};

/** The same for a call with a time limit. */
const THROTTLED_RETRY_IN_TIME: RetryLimits = { ...THROTTLED_RETRY, maxDelayMs: Infinity, maxTotalMs: Infinity };

/** Maximum wait before the second try; doubles with each further one. */
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
  /** Refusals with 429, if {@link THROTTLED_RETRY} limits them. */
  readonly throttled: Tries;
  readonly redirects: number;
  /** Path and query of the last redirect. */
  readonly redirectedTo: string | undefined;
  /** How often a newer credential was requested. */
  readonly renewals: number;
  /** The renewed credential, until a response shows whether the API accepts it. */
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

/** The part of a response that is there before its body. */
export type ResponseHead = Pick<HttpResponse, 'status' | 'headers'>;

/** A request of a call, with its response or, once it was sent, its fault. */
export interface Attempt {
  readonly credential: Credential;
  readonly base: ApiBase;
  readonly isRedirected: boolean;
  readonly request: HttpRequest;
  /** Set if the account is limited. */
  readonly permit: Permit | undefined;
  answer: ResponseHead | undefined;
  fault: unknown;
  /** True if a newer token is available, whether or not the call can use it. */
  isTokenRenewed: boolean;
}

/** Returns the state after a request that did not succeed. */
export function afterAttempt(state: CallState, { answer, fault }: Attempt): CallState {
  const sent = state.sent || !(fault instanceof TransportError) || fault.sent;
  const renewed = answer === undefined ? state.renewed : undefined;
  return { ...state, requests: state.requests + 1, sent, renewed };
}

/** Another try, and the wait before it. */
export interface NextTry {
  readonly state: CallState;
  readonly delayMs: number;
}

/**
 * Decides what follows a request that did not succeed: another one, `renew` for one with a newer credential, or `undefined` for
 * the end of the call.
 *
 * @param at Epoch milliseconds, the milliseconds left to the whole call (`Infinity` for no limit), and a number from 0 up to 1
 */
export function decideNext(
  state: CallState,
  attempt: Attempt,
  call: CallRequest,
  at: { readonly now: number; readonly remainingMs: number; readonly random: number },
): NextTry | 'renew' | undefined {
  const { answer, fault, base, request } = attempt;
  if (answer !== undefined) {
    if (isTokenRefused(answer) && state.renewals < MAX_RENEWALS) return 'renew';
    const redirectedTo = redirectTarget(call, answer, { origin: request.origin, prefix: base.prefix }, request.path);
    if (redirectedTo !== undefined && state.redirects < MAX_REDIRECTS)
      return { delayMs: 0, state: { ...state, redirects: state.redirects + 1, redirectedTo } };
  }
  if (!mayBeSentAgain(call, answer?.status, fault)) return undefined;
  const isThrottled = call.retry === DEFAULT_RETRY && answer?.status === 429;
  const throttledRetry = call.timeoutMs === undefined ? THROTTLED_RETRY : THROTTLED_RETRY_IN_TIME;
  const limits = isThrottled ? throttledRetry : call.retry;
  const kind = isThrottled ? 'throttled' : 'failed';
  const { count, waitedMs } = state[kind];
  const askedMs = (answer && retryAfterMs(answer.headers, at.now)) ?? 0;
  if (count >= limits.limit || askedMs > limits.maxDelayMs) return undefined;
  // Full jitter: clients that failed together do not come back together, even if all got the same `Retry-After`.
  const delayMs = askedMs + at.random * Math.min(BASE_DELAY_MS * 2 ** count, limits.maxBackOffMs);
  if (waitedMs + delayMs > limits.maxTotalMs || delayMs >= Math.min(at.remainingMs, MAX_TIMER_MS)) return undefined;
  return { delayMs, state: { ...state, [kind]: { count: count + 1, waitedMs: waitedMs + delayMs } } };
}

function mayBeSentAgain(call: CallRequest, status: number | undefined, fault: unknown): boolean {
  if (call.body?.isReplayable === false) return false;
  const isIdempotent = IDEMPOTENT.has(call.method);
  if (status !== undefined) return status === 429 || (RETRIED_STATUSES.has(status) && isIdempotent);
  // A timeout is not repeated: the caller has waited long enough.
  const isBroken = fault instanceof TransportError && (fault.kind === 'connect' || fault.kind === 'reset');
  return isBroken && (isIdempotent || !fault.sent);
}
