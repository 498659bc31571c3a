import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ApiClient, partsOf } from '../api/api-client.js';
import { type Optional, optionError, withDefault } from '../checks.js';
import { HeaderBudget, hasLoginCookie } from '../session/cookies.js';
import { clientsOf } from '../session/request-clients.js';
import { redirect, safeReturnTo } from '../session/return-to.js';
import { asRouted, isPrefetch, pathOf, type Visit } from '../session/visit.js';

/** Reads the path of the login route, where browsers that request a page are redirected. Default: no redirect. */
export const loginRoute: Optional<string | undefined> = withDefault(undefined, (option, value) => {
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw optionError(option, 'expected the path of the login route, such as /login');
});

/** Returns the login route for a request's client, where `{tenant}` stands for its tenant; `undefined` if it has none. */
export function loginFor(login: string | undefined, client: ApiClient | undefined): string | undefined {
  if (!login?.includes('{tenant}')) return login;
  return client?.tenant && login.replaceAll('{tenant}', client.tenant);
}

/** Returns true if a request asks for the login route itself. */
export function isLoginRoute({ browserUrl }: Visit, login: string): boolean {
  return asRouted(pathOf(browserUrl)) === asRouted(pathOf(login));
}

/** Returns which part of a login a request is: the login route, or the callback of a login that this browser began. */
export function partOfLogin(visit: Visit, login: string): 'login' | 'callback' | undefined {
  if (isLoginRoute(visit, login)) return 'login';
  const { query } = visit;
  const isAnswer = /^[\w-]{43}$/.test(query.get('state') ?? '') && (query.has('code') || query.has('error'));
  return isAnswer && hasLoginCookie(visit) ? 'callback' : undefined;
}

/** Requests whose address may hold a signed token that names a user: the query must not be passed on. */
export const holdsToken: WeakSet<IncomingMessage> = new WeakSet();

/** Matches a path that may hold a signed token: 240 bits of base64url in a row, as signatures have. A UUID is shorter. */
const MAY_BE_TOKEN = /[\w-]{40}/;

/** Returns the page that a login leads back to. */
export function pageOf({ req, browserUrl: url }: Visit): string {
  if (!holdsToken.has(req)) return safeReturnTo(url);
  const path = pathOf(url);
  return MAY_BE_TOKEN.test(path) ? '/' : safeReturnTo(path);
}

/** Redirects a browser to the login route, which leads back to the requested page. @param client The request's, if it has one. */
export function redirectToLogin(visit: Visit, res: ServerResponse, login: string, client: ApiClient | undefined): void {
  const page = pageOf(visit);
  const whole = withReturnTo(login, page);
  const location = new HeaderBudget(visit, res).hasRoomForLocation(whole.length) ? whole : login;
  const help = client && clientsOf(client)?.options;
  if (client && help) {
    const { grantId, authorized, isRefused } = partsOf(client).source;
    // A login that leads here again counts as a round.
    if (isRefused) help.returns.recordReturn(visit, res, 'useless');
    else if (grantId !== undefined && !authorized) help.returns.recordReturn(visit, res, 'lost');
    // For a login page of the application that links to the login route. The user has not asked for a prefetched page yet.
    if (!isPrefetch(visit.headers)) help.returnCookie.remember(visit, res, page, location.length);
  }
  res.setHeader('Cache-Control', 'no-store');
  redirect(res, location);
}

/** Adds the page to the address of the login route: each tab comes back to its own. Other origins have no use for it. */
function withReturnTo(login: string, page: string): string {
  if (!login.startsWith('/') || login.startsWith('//')) return login;
  const [address = '', ...fragment] = login.split('#');
  const url = `${address}${address.includes('?') ? '&' : '?'}${new URLSearchParams({ returnTo: page })}`;
  return [url, ...fragment].join('#');
}
