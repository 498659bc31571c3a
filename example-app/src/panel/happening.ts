import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { Request } from 'express';
import type { ApiEvent, GrantLostEvent, LoginEvent, RefreshEvent } from 'passport-oauth-app';

type Told =
  | { readonly kind: 'login'; readonly event: LoginEvent }
  | { readonly kind: 'refresh'; readonly event: RefreshEvent }
  | { readonly kind: 'api'; readonly event: ApiEvent }
  | { readonly kind: 'grant-lost'; readonly event: GrantLostEvent };

/** What the package told on its diagnostics channels, and where and when. */
export type Happening = Told & {
  /** The process that it happened in. */
  readonly pid: number;
  /** Epoch milliseconds. */
  readonly at: number;
  /** Id of the user on whose behalf it was, and the `state` of the callback, where there was a request. */
  readonly cause: Cause | undefined;
};

/** The request that led to something. */
export interface Cause {
  readonly userId: string | undefined;
  readonly state: string | undefined;
}

const causes = new AsyncLocalStorage<Cause>();

/** Runs a request's handlers so that whatever happens in them is known to be its doing. */
export function because(req: Request, handlers: () => void): void {
  const { state } = req.query;
  causes.run({ userId: req.user?.id, state: typeof state === 'string' ? state : undefined }, handlers);
}

/**
 * Hears of everything that happens in this process.
 *
 * @returns Ends it.
 */
export function hear(tell: (happening: Happening) => void): () => void {
  const surroundings = () => ({ pid: process.pid, at: Date.now(), cause: causes.getStore() });
  // What stands on a channel is known by the channel's name; see the events in the package's documentation.
  const ears: readonly (readonly [string, (event: unknown) => void])[] = [
    ['login', (event) => tell({ kind: 'login', event: event as LoginEvent, ...surroundings() })],
    ['refresh', (event) => tell({ kind: 'refresh', event: event as RefreshEvent, ...surroundings() })],
    ['api', (event) => tell({ kind: 'api', event: event as ApiEvent, ...surroundings() })],
    ['grant-lost', (event) => tell({ kind: 'grant-lost', event: event as GrantLostEvent, ...surroundings() })],
  ];
  for (const [name, ear] of ears) subscribe(`passport-oauth-app:${name}`, ear);
  return () => {
    for (const [name, ear] of ears) unsubscribe(`passport-oauth-app:${name}`, ear);
  };
}
