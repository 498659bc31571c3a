import type { IncomingMessage } from 'node:http';
import { ApiClient } from '../api/api-client.js';
import { type Readers, readOptions, withDefault, wrong } from '../checks.js';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import { MAX_RESPONSE_HEADERS, safeReturnTo } from '../request/browser-cookie.js';
import {
  asRouted,
  browserUrl,
  isPrefetch,
  originalUrl,
  pathOf,
  queryOf,
  redirect,
  refuseFramework,
} from '../request/incoming-request.js';
import { returnCookieOf, unprepared } from '../request/request-clients.js';
import { clientProperty, type Handler } from './api-client.js';

/** Options of {@link requireAuthorization}. */
export interface RequireAuthorizationOptions {
  /** Path of the login route, where browsers that request a page are redirected. Default: no redirect, always the error. */
  readonly login?: string | undefined;
  /** The request's property that holds the client, as told to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

const READERS: Readers<{ readonly login: string | undefined; readonly property: string }> = {
  login: withDefault(undefined, (option, value) => {
    if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
    throw wrong(option, 'expected the path of the login route, such as /login');
  }),
  property: clientProperty,
};

/**
 * Creates middleware that calls the next handler if the request has a grant. Otherwise it redirects a browser that
 * requests a page to `login`, which leads back to the page; any other request gets a `NotAuthorizedError` (401).
 *
 * @throws ConfigurationError that names the wrong or unknown option
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property } = readOptions('requireAuthorization(options)', options, READERS);
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) {
      if (refuseFramework(req, res, next)) return;
      const message = `The request has no req.${property}: mount apiClient(strategy) before requireAuthorization().`;
      return next(new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' }));
    }
    const pending = unprepared.get(client)?.prepareFully();
    if (pending) return void pending.then(() => passIfAuthorized(req, res, next));
    if (client.authorized) return next();
    if (login === undefined || !isPageRequest(req))
      return next(new NotAuthorizedError('Log in first: this request is not authorized.'));
    const url = browserUrl(req);
    const guarded = asRouted(pathOf(url)) === asRouted(pathOf(login)) ? 'login' : guardsCallback(req) && 'callback';
    if (guarded) {
      const message = `requireAuthorization({ login }) is mounted before the ${guarded} route, which nobody could reach then. Mount it on the routes that need a login, or after the routes of login and callback.`;
      return next(new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' }));
    }
    const page = safeReturnTo(url);
    const whole = withReturnTo(login, page);
    const location = whole.length > MAX_LOCATION ? login : whole;
    // For a login page of the application that links to the login route. Nobody has asked for a prefetched page yet. A long
    // page stands in one place only.
    if (!isPrefetch(req)) returnCookieOf(client)?.remember(req, res, page, location.length);
    res.setHeader('Cache-Control', 'no-store');
    redirect(res, location);
  };
}

/** Longest address of a redirect, in characters. */
const MAX_LOCATION = MAX_RESPONSE_HEADERS - 300;

/** Adds the page to the address of the login route: each tab comes back to its own. Other origins have no use for it. */
function withReturnTo(login: string, page: string): string {
  if (!login.startsWith('/') || login.startsWith('//')) return login;
  const [address = '', ...fragment] = login.split('#');
  const url = `${address}${address.includes('?') ? '&' : '?'}${new URLSearchParams({ returnTo: page })}`;
  return [url, ...fragment].join('#');
}

/** Returns true for a callback of a login that this browser has begun. */
function guardsCallback(req: IncomingMessage): boolean {
  const query = queryOf(originalUrl(req));
  return (
    /^[\w-]{43}$/.test(query.get('state') ?? '') &&
    (query.has('code') || query.has('error')) &&
    (req.headers.cookie ?? '').includes('.login.')
  );
}

/** Returns true if a person waits for a page. A script would follow the redirect to the service's consent page. */
function isPageRequest({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode === 'navigate') return true;
  // A browser sends the destination as well. Node's fetch sends the mode alone: its Accept header decides.
  if (mode !== undefined && headers['sec-fetch-dest'] !== undefined) return false;
  return headers['x-requested-with'] === undefined && /\btext\/html\b/i.test(headers.accept ?? '');
}
