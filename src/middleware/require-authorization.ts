import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, contextOf, sourceOf } from '../api/api-client.js';
import { type Readers, readOptions, scope, withDefault } from '../checks.js';
import { ConfigurationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import { isPageRequest, isPrefetch } from '../session/fetch-metadata.js';
import { refuseFramework } from '../session/framework.js';
import { loginHelpOf } from '../session/request-clients.js';
import { Visit } from '../session/visit.js';
import { clientProperty, type Handler, strategyNameFor } from './api-client.js';
import { type FrameGate, frameOption } from './frame-option.js';
import { isCallback, isLoginRoute, loginRoute, pageOf, redirectToLogin } from './login-redirect.js';

/** Options of `requireAuthorization`. */
export interface RequireAuthorizationOptions {
  /** Path of the login route, where browsers that request a page are redirected. Default: no redirect, always the error. */
  readonly login?: string | undefined;
  /**
   * Scopes that the route needs: `'tm'` or `['project', 'tm']`. A browser that requests a page and lacks one is redirected to
   * `login`, which asks the user for them in addition to those that are granted. Default: none.
   */
  readonly scope?: string | readonly string[] | undefined;
  /** The request's property that holds the client, as given to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
  /** What `embedded` returned: a page request of a frame gets a button that opens the login. Default: none. */
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

/** Creates the middleware `requireAuthorization`, for which scopes of pages have to be installed. @throws ConfigurationError */
export function requireAuthorization(options: RequireAuthorizationOptions = {}): Handler {
  const { login, property, scope: needed, frame } = readOptions('requireAuthorization(options)', options, READERS);
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) {
      const strategyName = strategyNameFor(property);
      const isDouble = typeof client === 'object' && client !== null;
      if (!isDouble && refuseFramework(req, res, next, strategyName)) return;
      return next(ofStrategy(noClient(property, isDouble), strategyName));
    }
    const source = sourceOf(client);
    const checked = loginHelpOf(client)?.logoutRoutes.has(req) ? undefined : source.prepareFully?.();
    const hasLogin = login !== undefined || frame !== undefined;
    // A login replaces a grant that the service refuses to renew. Scripts go on, and their calls say why they fail.
    const isStranded = !checked && source.isRefused === true && hasLogin && isPageRequest(req.method, req.headers);
    // If the grant could not be loaded, its scopes are unknown: the error says why.
    const isUnknown = needed.length > 0 && client.authorized && source.scope === undefined && !isStranded;
    const pending: Promise<unknown> | undefined = checked ?? (isUnknown ? client.credentials() : undefined);
    // Nothing else catches what is thrown by then, such as for a response that a time-out has sent.
    if (pending) return void pending.then(() => passIfAuthorized(req, res, next)).catch(next);
    const granted = client.authorized ? client.scope : [];
    const missing = needed.filter((name) => !granted.includes(name));
    let passes = client.authorized && missing.length === 0 && !isStranded;
    try {
      frame?.requireOrder(req);
      passes ||= !refuse(req, res, client, missing, isStranded);
    } catch (error) {
      return next(ofStrategy(error, contextOf(client).strategyName));
    }
    if (passes) next();
  };

  /**
   * Sends the browser to the login, or throws why the request may not pass. Returns false if no login can help a grant that
   * the service refuses to renew.
   */
  function refuse(
    req: IncomingMessage,
    res: ServerResponse,
    client: ApiClient,
    missing: readonly string[],
    isStranded: boolean,
  ): boolean {
    const lacksScope = client.authorized && missing.length > 0;
    const refusal = lacksScope ? insufficientScope(missing, client.scope) : new NotAuthorizedError(LOG_IN);
    const isPage = isPageRequest(req.method, req.headers);
    const answer = answerFor(isPage, isPage && frame?.isFor(req) === true, login);
    switch (answer.kind) {
      case 'button': {
        if (lacksScope && frame?.isRefused(req, missing)) throw refusal;
        const names = missing.length === 0 ? undefined : withMissing(missing, client).join(' ');
        frame?.answer(req, res, names, client.authorized && !isStranded);
        return true;
      }
      case 'login': {
        const visit = new Visit(req);
        const guarded = isLoginRoute(visit, answer.login) ? 'login' : isCallback(visit) && 'callback';
        if (guarded) throw unreachable(guarded);
        if (missing.length > 0 && !asksFor(missing, client, visit, res)) throw refusal;
        redirectToLogin(visit, res, answer.login, client);
        return true;
      }
      case 'error':
        if (isStranded) return false;
        throw refusal;
    }
  }
}

/** How a request that may not pass is answered. */
type Answer = { readonly kind: 'button' | 'error' } | { readonly kind: 'login'; readonly login: string };

/** Returns how to answer a request that may not pass. */
function answerFor(isPage: boolean, isFramed: boolean, login: string | undefined): Answer {
  if (isPage && isFramed) return { kind: 'button' };
  return isPage && login !== undefined ? { kind: 'login', login } : { kind: 'error' };
}

/**
 * Has the login ask for the missing scopes, in addition to those that are granted. Returns false if that leads nowhere: they
 * were refused a moment ago, or the login does not begin for this page.
 */
function asksFor(missing: readonly string[], client: ApiClient, visit: Visit, res: ServerResponse): boolean {
  const scopes = loginHelpOf(client)?.pageScopes();
  // The user has not asked for a prefetched page yet.
  if (!scopes || isPrefetch(visit.headers)) return true;
  if (client.authorized && scopes.isRefused(visit, res, missing)) return false;
  return scopes.ask(visit, res, pageOf(visit), withMissing(missing, client), client.grantId) || !client.authorized;
}

/** Returns the missing scopes with those that are granted; if none is, with those of every login. */
function withMissing(missing: readonly string[], client: ApiClient): readonly string[] {
  const base = client.scope.length > 0 ? client.scope : (loginHelpOf(client)?.scope ?? []);
  return [...new Set([...base, ...missing])];
}

function noClient(property: string, isDouble: boolean): ConfigurationError {
  const message = isDouble
    ? `req.${property} is not of this package. Unit tests of a handler need no requireAuthorization(); tests of routes get a client from apiClient(strategy) and the emulator.`
    : `The request has no req.${property}: mount apiClient(strategy) before requireAuthorization().`;
  return new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' });
}

function unreachable(route: string): ConfigurationError {
  const message = `requireAuthorization({ login }) is mounted before the ${route} route, so that no browser could reach it. Mount it on the routes that need a login, or after the routes of login and callback.`;
  return new ConfigurationError(message, { code: 'ERR_LOGIN_LOOP' });
}

function insufficientScope(missing: readonly string[], granted: readonly string[]): NotAuthorizedError {
  const names = missing.join(', ');
  const message = `The user has not granted what this request needs: the scope ${names}; granted: ${granted.join(', ') || 'none'}. A page request is redirected to the login route of requireAuthorization({ login, scope }), unless the user has just refused.`;
  return new NotAuthorizedError(message, { code: 'ERR_INSUFFICIENT_SCOPE', status: 403, scope: missing, granted });
}

const LOG_IN = 'Log in first: this request is not authorized.';
