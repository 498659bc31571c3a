import type { IncomingMessage } from 'node:http';
import { ApiClient, contextOf } from '../api/api-client.js';
import { type Readers, readOptions, withDefault } from '../checks.js';
import { ConfigurationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import { isPageRequest, originalUrl, queryOf, refuseFramework } from '../request/incoming-request.js';
import { unprepared } from '../request/request-clients.js';
import { clientProperty, type Handler, strategyNameFor } from './api-client.js';
import { type Frame, frameOption } from './embedded.js';
import { isLoginRoute, loginRoute, redirectToLogin } from './login-redirect.js';

/** Options of {@link requireAuthorization}. */
export interface RequireAuthorizationOptions {
  /** Path of the login route, where browsers that request a page are redirected. Default: no redirect, always the error. */
  readonly login?: string | undefined;
  /** The request's property that holds the client, as told to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
  /** What `embedded` has returned: a page request of a frame gets a button that opens the login. Default: none. */
  readonly frame?: Handler | undefined;
}

const READERS: Readers<{
  readonly login: string | undefined;
  readonly property: string;
  readonly frame: Frame | undefined;
}> = {
  login: loginRoute,
  property: clientProperty,
  frame: withDefault(undefined, frameOption),
};

/**
 * Creates middleware that calls the next handler if the request has a grant. Otherwise it redirects a browser that
 * requests a page to `login`, which leads back to the page; any other request gets a `NotAuthorizedError` (401).
 *
 * @throws ConfigurationError that names the wrong or unknown option
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property, frame } = readOptions('requireAuthorization(options)', options, READERS);
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) {
      const isDouble = typeof client === 'object' && client !== null;
      const strategyName = strategyNameFor(property);
      if (!isDouble && refuseFramework(req, res, next, strategyName)) return;
      const message = isDouble
        ? `req.${property} is not of this package. Unit tests of a handler need no requireAuthorization(); tests of routes get a client from apiClient(strategy) and the emulator.`
        : `The request has no req.${property}: mount apiClient(strategy) before requireAuthorization().`;
      return next(ofStrategy(new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' }), strategyName));
    }
    const pending = unprepared.get(client)?.prepareFully();
    if (pending) return void pending.then(() => passIfAuthorized(req, res, next));
    try {
      frame?.requireOrder(req);
      if (!client.authorized && frame?.isFor(req) && isPageRequest(req)) return frame.answer(req, res);
    } catch (error) {
      return next(ofStrategy(error, contextOf(client).strategyName));
    }
    if (client.authorized) return next();
    if (login === undefined || !isPageRequest(req))
      return next(ofStrategy(new NotAuthorizedError(LOG_IN), contextOf(client).strategyName));
    const guarded = isLoginRoute(req, login) ? 'login' : guardsCallback(req) && 'callback';
    if (guarded) {
      const message = `requireAuthorization({ login }) is mounted before the ${guarded} route, which nobody could reach then. Mount it on the routes that need a login, or after the routes of login and callback.`;
      const error = new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' });
      return next(ofStrategy(error, contextOf(client).strategyName));
    }
    redirectToLogin(req, res, login, client);
  };
}

const LOG_IN = 'Log in first: this request is not authorized.';

/** Returns true for a callback of a login that this browser has begun. */
function guardsCallback(req: IncomingMessage): boolean {
  const query = queryOf(originalUrl(req));
  return (
    /^[\w-]{43}$/.test(query.get('state') ?? '') &&
    (query.has('code') || query.has('error')) &&
    (req.headers.cookie ?? '').includes('.login.')
  );
}
