import type { ServerResponse } from 'node:http';
import { endCookie, type SealedCookieOptions, setCookie } from './cookies.js';
import type { Visit } from './visit.js';

/** Lifetime of the return cookie, in seconds: long enough for a page that links to the login route. */
const RETURN_MAX_AGE_S = 10 * 60;

/** Maximum length of a path to return to, in characters. */
const MAX_RETURN_TO = 2048;

/** Control characters and white space, which browsers drop or read as an end, and the backslash, which they read as a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\x00-\x20\x7f\\]/;

/**
 * Remembers, in a cookie of one strategy, the path to return to after the login, for links without `returnTo`. So visitors who
 * are sent to log in leave nothing in the session store. The path is checked when it is read.
 */
export class ReturnCookie {
  readonly #name: string;

  /** @param name Differs for each application of a host. */
  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Stores a page's path, or `/` for an unsafe one. Ends the cookie if it does not fit, so that no older path is followed.
   *
   * @param location Characters of the address that the response redirects to.
   */
  remember(visit: Visit, res: ServerResponse, path: string, location = 0): void {
    setCookie(visit, res, this.#name, safeReturnTo(path), RETURN_MAX_AGE_S, location);
  }

  /** Returns the stored path, and ends the cookie, so that a later login does not lead there. */
  take(visit: Visit, res: ServerResponse): string | undefined {
    const value = visit.cookie(this.#name);
    if (value === undefined) return undefined;
    endCookie(visit, res, this.#name);
    return safeReturnTo(value);
  }
}

/**
 * Returns the normalized path if `value` is one of this origin, else `/`. Refuses what a browser could take for another origin,
 * even after it has resolved dot segments.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_RETURN_TO || !value.startsWith('/')) return '/';
  // In query and fragment a backslash is a character like any other, but not every reader knows that.
  const [, path = '', rest = ''] = /^([^?#]*)(.*)$/s.exec(value) ?? [];
  const text = path + rest.replaceAll('\\', '%5C');
  if (UNSAFE.test(text) || !URL.canParse(text, 'http://relative.invalid')) return '/';
  const { origin, pathname, search, hash } = new URL(text, 'http://relative.invalid');
  const safe = pathname + search + hash;
  // Percent-encoding can make a path nine times as long.
  return origin === 'http://relative.invalid' && !safe.startsWith('//') && safe.length <= MAX_RETURN_TO ? safe : '/';
}

/** Returns a URL as the header `Location` can hold it. */
export function locationOf(url: string): string {
  return url.toWellFormed().replace(/[^\x21-\x7e]+/g, encodeURIComponent);
}

/** Redirects with 302. Connect's responses have no `redirect`. */
export function redirect(res: ServerResponse, url: string): void {
  res.statusCode = 302;
  res.setHeader('Location', locationOf(url));
  res.setHeader('Content-Length', '0');
  res.end();
}

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

/** What the cookies of a strategy's {@link PageScopes} have in common. */
export type PageScopesOptions = Omit<SealedCookieOptions, 'maxAgeS' | 'binding'>;

/** Set by the first `requireAuthorization({ scope })` of the process: before it, no page needs scopes. */
export const pageScopesFactory: { create?: (options: PageScopesOptions) => PageScopes } = {};
