import { TransportError } from '../http/transport-error.js';
import type { ApiBase } from './api-base.js';
import type { Credential } from './credential.js';

/** State of a call between two tries. Replaced, never changed. */
export interface Progress {
  readonly requests: number;
  readonly failures: number;
  readonly waitedMs: number;
  readonly redirects: number;
  /** Path and query of the redirect that is followed. */
  readonly redirectedTo: string | undefined;
  /** Credential of a renewal after a 401, until a response tells if the API accepts it. */
  readonly renewed: Credential | undefined;
  readonly mayRenew: boolean;
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
  redirects: 0,
  redirectedTo: undefined,
  renewed: undefined,
  mayRenew: true,
  isRenewedInVain: false,
  sent: false,
});

/** A request that was sent, with its response or the fault that it ended with. */
export interface Attempt<A> {
  readonly credential: Credential;
  readonly base: ApiBase;
  readonly path: string;
  answer: A | undefined;
  fault: unknown;
}

/** Returns the state after a request that brought no success. */
export function afterAttempt<A>(progress: Progress, { answer, fault }: Attempt<A>): Progress {
  const sent = progress.sent || !(fault instanceof TransportError) || fault.sent;
  const renewed = answer === undefined ? progress.renewed : undefined;
  return { ...progress, requests: progress.requests + 1, sent, renewed };
}
