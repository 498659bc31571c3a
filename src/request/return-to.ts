import type { IncomingMessage, ServerResponse } from 'node:http';
import { endCookie, readCookie, setCookie } from './browser-cookie.js';

const MAX_LENGTH = 2048;

/** Control characters and white space, which browsers drop or read as an end, and the backslash, which they read as a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\x00-\x20\x7f\\]/;

/** Long enough for a page that links to the login route. */
const COOKIE_MAX_AGE_S = 10 * 60;

/**
 * Returns `value` if it is a path of this origin that a browser can return to after the login, else `/`.
 *
 * Refuses what a browser could take for another origin, also after it has resolved dot segments.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_LENGTH || !value.startsWith('/')) return '/';
  // In query and fragment a backslash is a character like any other, but not every reader knows that.
  const [, path = '', rest = ''] = /^([^?#]*)(.*)$/s.exec(value) ?? [];
  const text = path + rest.replaceAll('\\', '%5C');
  if (UNSAFE.test(text) || !URL.canParse(text, 'http://relative.invalid')) return '/';
  const { origin, pathname, search, hash } = new URL(text, 'http://relative.invalid');
  const safe = pathname + search + hash;
  // Percent-encoding can make a path nine times as long.
  return origin === 'http://relative.invalid' && !safe.startsWith('//') && safe.length <= MAX_LENGTH ? safe : '/';
}

/**
 * The cookie that holds the path of a page for the login route, of one strategy: it stands in for the parameter `returnTo`
 * where a page links to the login route.
 *
 * A cookie, so that visitors who are sent to log in leave nothing in the session store. It holds a path and nothing
 * else, and is checked when it is read.
 */
export class ReturnCookie {
  readonly #name: string;

  /** @param name Differs for each application of a host. */
  constructor(name: string) {
    this.#name = name;
  }

  /** Stores a page's path. Ends the cookie if the path is too long for it, so that no older one is followed. */
  remember(req: IncomingMessage, res: ServerResponse, path: string): void {
    setCookie(req, res, this.#name, safeReturnTo(path), COOKIE_MAX_AGE_S);
  }

  /** Returns the stored path, and ends the cookie, so that a later login does not lead there. */
  take(req: IncomingMessage, res: ServerResponse): string | undefined {
    const value = readCookie(req, this.#name);
    if (value === undefined) return undefined;
    endCookie(req, res, this.#name);
    return safeReturnTo(value);
  }
}
