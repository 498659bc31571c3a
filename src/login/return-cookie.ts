import type { IncomingMessage, ServerResponse } from 'node:http';
import { isSecure } from './incoming.js';
import { safeReturnTo } from './return-to.js';

/** Holds a path of this origin and nothing else; it is checked when it is read. */
export const RETURN_COOKIE = 'oauth-app.return-to';

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

/** Takes the path from the browser. */
export function forgetReturnTo(req: IncomingMessage, res: ServerResponse): void {
  setCookie(req, res, '', 0);
}

function setCookie(req: IncomingMessage, res: ServerResponse, value: string, maxAge: number): void {
  const secure = isSecure(req) ? '; Secure' : '';
  res.appendHeader(
    'Set-Cookie',
    `${RETURN_COOKIE}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Lax${secure}`,
  );
}
