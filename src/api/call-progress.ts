import type { HttpStreamRequest } from '../http/message.js';
import { TransportError } from '../http/transport-error.js';
import type { ApiBase, Credential } from './api-context.js';
import type { Place } from './concurrency-limiter.js';

/** State of a call between two tries. Replaced, never changed. */
export interface Progress {
  readonly requests: number;
  readonly failures: number;
  readonly waitedMs: number;
  /** Refusals with 429 that `THROTTLED_RETRY` bounds, and the milliseconds waited after them. */
  readonly throttles: number;
  readonly throttledMs: number;
  readonly redirects: number;
  /** Path and query of the redirect that is followed. */
  readonly redirectedTo: string | undefined;
  /** Credential of a renewal after a 401, until a response tells if the API accepts it. */
  readonly renewed: Credential | undefined;
  /** How often a newer credential was asked for after a 401. */
  readonly renewals: number;
  /** True if a newer token is at hand that this call cannot use. */
  readonly isRenewedInVain: boolean;
  /** True once a request may have reached the service. */
  readonly sent: boolean;
}

/** State of a call before its first try. */
export const START: Progress = Object.freeze({
  requests: 0,
  failures: 0,
  waitedMs: 0,
  throttles: 0,
  throttledMs: 0,
  redirects: 0,
  redirectedTo: undefined,
  renewed: undefined,
  renewals: 0,
  isRenewedInVain: false,
  sent: false,
});

/** A request of a call, with its response or the fault that it ended with once it was sent. */
export interface Attempt<A> {
  readonly credential: Credential;
  readonly base: ApiBase;
  readonly path: string;
  /** True if a redirect has led to this path. */
  readonly isRedirected: boolean;
  readonly request: HttpStreamRequest;
  /** The place that it takes among the requests of its account, if these are limited. */
  readonly place: Place | undefined;
  answer: A | undefined;
  fault: unknown;
}

/** Returns the state after a request that brought no success. */
export function afterAttempt<A>(progress: Progress, { answer, fault }: Attempt<A>): Progress {
  const sent = progress.sent || !(fault instanceof TransportError) || fault.sent;
  const renewed = answer === undefined ? progress.renewed : undefined;
  return { ...progress, requests: progress.requests + 1, sent, renewed };
}
