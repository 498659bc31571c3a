import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, contextOf, sourceOf } from '../api/api-client.js';
import { type Readers, readOptions, scope, withDefault } from '../checks.js';
import { ConfigurationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import { isPageRequest, isPrefetch, namesLogout, refuseFramework } from '../session/incoming-request.js';
import { loginHelpOf } from '../session/request-clients.js';
import { clientProperty, type Handler, strategyNameFor } from './api-client.js';
import { type FrameGate, frameOption } from './frame-option.js';
import { isCallback, isLoginRoute, loginRoute, pageOf, redirectToLogin } from './login-redirect.js';

/** Options of {@link requireAuthorization}. */
export interface RequireAuthorizationOptions {
  /** Path of the login route, where browsers that request a page are redirected. Default: no redirect, always the error. */
  readonly login?: string | undefined;
  /**
   * Scopes that the route needs: `'tm'` or `['project', 'tm']`. A browser that requests a page and lacks one is redirected to
   * `login`, which asks the user for them in addition to those that are granted. Default: none.
   */
  readonly scope?: string | readonly string[] | undefined;
  /** The request's property that holds the client, as told to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
  /** What `embedded` has returned: a page request of a frame gets a button that opens the login. Default: none. */
  readonly frame?: Handler | undefined;
}

const READERS: Readers<{
  readonly login: string | undefined;
  readonly scope: readonly string[];
  readonly property: string;
  readonly frame: FrameGate | undefined;
}> = {
  login: loginRoute,
  scope: withDefault([], (option, value) => scope(option, value).split(' ').filter(Boolean)),
  property: clientProperty,
  frame: frameOption,
};

/**
 * Creates middleware that calls the next handler if the request has a grant, and the grant has all scopes of the route.
 * Otherwise it redirects a browser that requests a page to `login`, which leads back to the page; any other request gets a
 * `NotAuthorizedError`: 401 without a grant, 403 (`ERR_INSUFFICIENT_SCOPE`) without a scope. A visitor who comes back from the
 * login without the scopes gets that 403 as well.
 *
 * @throws ConfigurationError that names the wrong or unknown option
 */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property, scope: needed, frame } = readOptions('requireAuthorization(options)', options, READERS);
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
    const source = sourceOf(client);
    let pending: Promise<unknown> | undefined = namesLogout(req) ? undefined : source.prepareFully?.();
    const hasLogin = login !== undefined || frame !== undefined;
    // A login replaces a grant that the service refuses to renew. Scripts go on, and their calls say why they fail.
    const isStranded = !pending && source.isRefused === true && hasLogin && isPageRequest(req);
    // The grant could not be loaded, so its scopes are not known: the error says why.
    if (!pending && needed.length > 0 && client.authorized && source.scope === undefined && !isStranded)
      pending = client.credentials();
    // Nobody else catches what is thrown by then, such as for a response that a time-out has sent.
    if (pending) return void pending.then(() => passIfAuthorized(req, res, next)).catch(next);
    const { authorized } = client;
    const granted = authorized ? client.scope : [];
    const missing = needed.filter((name) => !granted.includes(name));
    const isEnough = authorized && missing.length === 0 && !isStranded;
    try {
      frame?.requireOrder(req);
      if (!isEnough && frame?.isFor(req) && isPageRequest(req)) {
        if (authorized && missing.length > 0 && frame.isRefused(req, missing))
          throw insufficientScope(missing, granted);
        const scope = missing.length === 0 ? undefined : withMissing(missing, client).join(' ');
        return frame.answer(req, res, scope, authorized && !isStranded);
      }
    } catch (error) {
      return next(ofStrategy(error, contextOf(client).strategyName));
    }
    if (isEnough) return next();
    const { strategyName } = contextOf(client);
    const refusal = () =>
      ofStrategy(
        missing.length > 0 && authorized ? insufficientScope(missing, granted) : new NotAuthorizedError(LOG_IN),
        strategyName,
      );
    if (login === undefined || !isPageRequest(req)) return isStranded ? next() : next(refusal());
    const guarded = isLoginRoute(req, login) ? 'login' : isCallback(req) && 'callback';
    if (guarded) {
      const message = `requireAuthorization({ login }) is mounted before the ${guarded} route, which nobody could reach then. Mount it on the routes that need a login, or after the routes of login and callback.`;
      const error = new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' });
      return next(ofStrategy(error, strategyName));
    }
    if (missing.length > 0 && !asksFor(missing, client, req, res)) return next(refusal());
    redirectToLogin(req, res, login, client);
  };
}

/**
 * Has the login ask for the missing scopes, in addition to those that are granted. Returns false if that leads nowhere: they
 * were refused a moment ago, or the login does not begin for this page.
 */
function asksFor(missing: readonly string[], client: ApiClient, req: IncomingMessage, res: ServerResponse): boolean {
  const { stepUps } = loginHelpOf(client) ?? {};
  // Nobody has asked for a prefetched page yet.
  if (!stepUps || isPrefetch(req)) return true;
  if (client.authorized && stepUps.isRefused(req, res, missing)) return false;
  return stepUps.ask(req, res, pageOf(req), withMissing(missing, client), client.grantId) || !client.authorized;
}

/** Returns the missing scopes with those that are granted; where none is, with those of every login. */
function withMissing(missing: readonly string[], client: ApiClient): readonly string[] {
  const base = client.scope.length > 0 ? client.scope : (loginHelpOf(client)?.stepUps.ownScope ?? []);
  return [...new Set([...base, ...missing])];
}

function insufficientScope(missing: readonly string[], granted: readonly string[]): NotAuthorizedError {
  const names = missing.join(', ');
  const message = `The user has not granted what this request needs: the scope ${names}; granted: ${granted.join(', ') || 'none'}. A page request is redirected to the login route of requireAuthorization({ login, scope }), unless the user has just refused.`;
  return new NotAuthorizedError(message, { code: 'ERR_INSUFFICIENT_SCOPE', status: 403, scope: missing, granted });
}

const LOG_IN = 'Log in first: this request is not authorized.';
