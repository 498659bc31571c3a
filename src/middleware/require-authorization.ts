import type { IncomingMessage } from 'node:http';
import { ApiClient } from '../api/api-client.js';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import { sendToLogin } from '../request/login-redirect.js';
import type { Handler } from './api-client.js';

/** Options of {@link requireAuthorization}. */
export interface RequireAuthorizationOptions {
  /** Where a browser that asks for a page is sent: the path of the login route. Without it everything gets the error. */
  readonly login?: string | undefined;
  /** The request's property that `apiClient` was told to use. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/**
 * Middleware that lets a request pass if it has a grant. Else a browser that asks for a page goes to `login`, and
 * after the login back to the page; anything else gets a `NotAuthorizedError` (401).
 *
 * @throws ConfigurationError for options of another type
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property = 'apiClient' } = options;
  if (login !== undefined && (typeof login !== 'string' || !/^[\x21-\x7e]+$/.test(login))) {
    throw new ConfigurationError('login: expected the path of the login route, such as /login', { option: 'login' });
  }
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) return next(noClient(property));
    if (client.authorized) return next();
    if (login === undefined || !isPageRequest(req))
      return next(new NotAuthorizedError('Log in first: this request is not authorized.'));
    sendToLogin(req, res, login);
  };
}

/** Whether a person waits for a page: a script that follows the redirect would end up on the service's consent page. */
function isPageRequest({ method, headers }: IncomingMessage): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode === 'navigate') return true;
  // A browser tells what it fetches for as well. Node's fetch sends the mode alone: it counts by what it accepts.
  if (mode !== undefined && headers['sec-fetch-dest'] !== undefined) return false;
  return headers['x-requested-with'] === undefined && /\btext\/html\b/i.test(headers.accept ?? '');
}

function noClient(property: string): ConfigurationError {
  return new ConfigurationError(
    `apiClient(strategy) has to stand before requireAuthorization(): the request has no req.${property}.`,
    {
      code: 'ERR_NO_API_CLIENT',
    },
  );
}
