import type { IncomingMessage } from 'node:http';
import { ApiClient } from '../api/api-client.js';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import { originalUrl, redirect } from '../request/incoming-request.js';
import { rememberReturnTo } from '../request/return-to.js';
import type { Handler } from './api-client.js';

/** Options of {@link requireAuthorization}. */
export interface RequireAuthorizationOptions {
  /** Path of the login route, where browsers that request a page are redirected. Default: no redirect, always the error. */
  readonly login?: string | undefined;
  /** The request's property that holds the client, as told to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/**
 * Creates middleware that calls the next handler if the request has a grant. Otherwise it redirects a browser that
 * requests a page to `login`, which leads back to the page; any other request gets a `NotAuthorizedError` (401).
 *
 * @throws ConfigurationError for options of the wrong type
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property = 'apiClient' } = options;
  if (login !== undefined && (typeof login !== 'string' || !/^[\x21-\x7e]+$/.test(login))) {
    throw new ConfigurationError('login: expected the path of the login route, such as /login', { option: 'login' });
  }
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) {
      const message = `The request has no req.${property}: mount apiClient(strategy) before requireAuthorization().`;
      return next(new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' }));
    }
    if (client.authorized) return next();
    if (login === undefined || !isPageRequest(req))
      return next(new NotAuthorizedError('Log in first: this request is not authorized.'));
    rememberReturnTo(req, res, originalUrl(req));
    res.setHeader('Cache-Control', 'no-store');
    redirect(res, login);
  };
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
