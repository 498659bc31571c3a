import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'cookie';
import { isSecure } from './incoming-request.js';
import { safeReturnTo } from './return-to.js';

/** Holds a path of this origin and nothing else; it is checked when it is read. */
const RETURN_COOKIE = 'oauth-app.return-to';

/** Long enough to reach the login route, to which the browser is redirected at once. */
const MAX_AGE_S = 10 * 60;

/**
 * Has the browser bring a page's path along to the login route.
 *
 * In a cookie and not in the session, so that visitors who are sent to log in leave nothing in the session store.
 */
export function rememberReturnTo(req: IncomingMessage, res: ServerResponse, path: string): void {
  setCookie(req, res, encodeURIComponent(safeReturnTo(path)), MAX_AGE_S);
}

/** The path that the browser brings along, taken from it so that a later login does not go there as well. */
export function takeReturnTo(req: IncomingMessage, res: ServerResponse): string | undefined {
  const value = parse(req.headers.cookie ?? '')[RETURN_COOKIE];
  if (value === undefined) return undefined;
  setCookie(req, res, '', 0);
  return safeReturnTo(value);
}

function setCookie(req: IncomingMessage, res: ServerResponse, value: string, maxAge: number): void {
  const secure = isSecure(req) ? '; Secure' : '';
  res.appendHeader(
    'Set-Cookie',
    `${RETURN_COOKIE}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Lax${secure}`,
  );
}
