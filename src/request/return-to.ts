import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'cookie';
import { isSecure } from './incoming-request.js';

const MAX_LENGTH = 2048;

/** Control characters and white space, which browsers drop or read as an end, and the backslash, which they read as a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\x00-\x20\x7f\\]/;

/** Holds a path of this origin and nothing else. The path is checked when it is read. */
const COOKIE = 'oauth-app.return-to';

/** Long enough to reach the login route, to which the browser is redirected at once. */
const COOKIE_MAX_AGE_S = 10 * 60;

/**
 * Returns `value` if it is a path of this origin that a browser can return to after the login, else `/`.
 *
 * Refuses what a browser could take for another origin, also after it has resolved dot segments.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_LENGTH || !value.startsWith('/') || UNSAFE.test(value))
    return '/';
  if (!URL.canParse(value, 'http://relative.invalid')) return '/';
  const { origin, pathname, search, hash } = new URL(value, 'http://relative.invalid');
  const path = pathname + search + hash;
  // Percent-encoding can make a path nine times as long.
  return origin === 'http://relative.invalid' && !path.startsWith('//') && path.length <= MAX_LENGTH ? path : '/';
}

/**
 * Stores a page's path in a cookie, for the login route to read.
 *
 * A cookie, so that visitors who are sent to log in leave nothing in the session store.
 */
export function rememberReturnTo(req: IncomingMessage, res: ServerResponse, path: string): void {
  setReturnCookie(req, res, encodeURIComponent(safeReturnTo(path)), COOKIE_MAX_AGE_S);
}

/** Returns the path of the cookie, and ends the cookie, so that a later login does not lead there. */
export function takeReturnTo(req: IncomingMessage, res: ServerResponse): string | undefined {
  const value = parse(req.headers.cookie ?? '')[COOKIE];
  if (value === undefined) return undefined;
  setReturnCookie(req, res, '', 0);
  return safeReturnTo(value);
}

function setReturnCookie(req: IncomingMessage, res: ServerResponse, value: string, maxAge: number): void {
  const secure = isSecure(req) ? '; Secure' : '';
  res.appendHeader('Set-Cookie', `${COOKIE}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Lax${secure}`);
}
