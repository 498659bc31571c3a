import type { ServerResponse } from 'node:http';
import type { SealedCookieOptions } from './cookies.js';
import type { Visit } from './visit.js';

/** Carries the scopes that a page needs to the next login, and what came of it back to the page. */
export interface PageScopes {
  /**
   * Has the next login that leads back to the page ask for these scopes, whichever route begins it.
   *
   * @param grantId Of the request, if it has a grant.
   * @returns false if that leads nowhere: earlier logins did not begin, or there is no room for a cookie
   */
  ask(visit: Visit, res: ServerResponse, page: string, scope: readonly string[], grantId: string | undefined): boolean;
  /** Returns the scopes that a page asked for, separated by spaces. They are for one login. */
  take(visit: Visit, res: ServerResponse, page: string, grantId: string | undefined): string | undefined;
  /** Records which scopes of a login were not granted; an empty list for none. */
  recordRefused(visit: Visit, res: ServerResponse, scope: readonly string[]): void;
  /** Returns true if one of the scopes was refused a moment ago, and the user has not asked for the page again. */
  isRefused(visit: Visit, res: ServerResponse, scope: readonly string[]): boolean;
}

/** Creates the {@link PageScopes} of a strategy. */
export type CreatePageScopes = (options: Omit<SealedCookieOptions, 'maxAgeS' | 'binding'>) => PageScopes;

let create: CreatePageScopes | undefined;

/** Has strategies carry the scopes of pages: called by the first `requireAuthorization({ scope })` of the process. */
export function installPageScopes(factory: CreatePageScopes): void {
  create = factory;
}

/** Returns a function that returns the page scopes of a strategy, made when they are first needed; `undefined` if no page needs any. */
export function pageScopesOf(options: () => Parameters<CreatePageScopes>[0]): () => PageScopes | undefined {
  let scopes: PageScopes | undefined;
  return () => {
    scopes ??= create?.(options());
    return scopes;
  };
}
