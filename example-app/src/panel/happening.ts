import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ApiEvent, GrantLostEvent, LoginEvent, RefreshEvent } from 'passport-oauth-app';

type Published =
  | { readonly kind: 'login'; readonly event: LoginEvent }
  | { readonly kind: 'refresh'; readonly event: RefreshEvent }
  | { readonly kind: 'api'; readonly event: ApiEvent }
  | { readonly kind: 'grant-lost'; readonly event: GrantLostEvent };

/** An event of the package, with the process, the time and the request it belongs to. */
export type Happening = Published & {
  /** The process that published it. */
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** `undefined` outside a request. */
  readonly cause: Cause | undefined;
};

/** The request that led to an event. */
export interface Cause {
  readonly userId: string | undefined;
  /** The `state` parameter of a callback. */
  readonly state?: string | undefined;
  /** The call of a burst. Also sent to the service, as the header `X-Call`. */
  readonly call?: BurstCall | undefined;
}

/** One of several calls that were made at once. */
export interface BurstCall {
  readonly burst: string;
  readonly number: number;
}

const causes = new AsyncLocalStorage<Cause>();

/** Runs `work`; the events that it leads to carry `cause`. */
export function because<T>(cause: Cause, work: () => T): T {
  return causes.run(cause, work);
}

/**
 * Subscribes to the package's diagnostics channels in this process.
 *
 * @returns Unsubscribes.
 */
export function hear(clock: () => number, tell: (happening: Happening) => void): () => void {
  const surroundings = () => ({ pid: process.pid, at: clock(), cause: causes.getStore() });
  // The name of a channel determines the type of its events; see docs/events.md.
  const listeners: readonly (readonly [string, (event: unknown) => void])[] = [
    ['login', (event) => tell({ kind: 'login', event: event as LoginEvent, ...surroundings() })],
    ['refresh', (event) => tell({ kind: 'refresh', event: event as RefreshEvent, ...surroundings() })],
    ['api', (event) => tell({ kind: 'api', event: event as ApiEvent, ...surroundings() })],
    ['grant-lost', (event) => tell({ kind: 'grant-lost', event: event as GrantLostEvent, ...surroundings() })],
  ];
  for (const [name, listener] of listeners) subscribe(`passport-oauth-app:${name}`, listener);
  return () => {
    for (const [name, listener] of listeners) unsubscribe(`passport-oauth-app:${name}`, listener);
  };
}
