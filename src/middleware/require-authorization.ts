import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient, partsOf } from '../api/api-client.js';
import type { CredentialSource } from '../api/api-context.js';
import { optionError, readOptions, scope, withDefault } from '../checks.js';
import { ConfigurationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import { clientsOf } from '../session/request-clients.js';
import { isPageRequest, isPrefetch, Visit } from '../session/visit.js';
import { clientProperty, type Handler, refuseFramework, strategyNames } from './api-client.js';
import { loginFor, loginRoute, pageOf, partOfLogin, redirectToLogin } from './login-redirect.js';

/** Options of `requireAuthorization`. */
export interface RequireAuthorizationOptions {
  /**
   * Path of the login route, where browsers that request a page are redirected. `{tenant}` stands for the request's tenant. Default:
   * no redirect, always the error.
   */
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

/** What `requireAuthorization` asks of the middleware of a frame. */
export interface FrameGate {
  /** Returns true if the button answers a page request without a grant. */
  isFor(req: IncomingMessage): boolean;
  /** Returns true if the user refused one of the scopes a moment ago, in the popup that this frame opened. */
  isRefused(req: IncomingMessage, scope: readonly string[]): boolean;
  /**
   * Answers a page request with the button, whose popup asks for `scope`; by default for that of every login.
   *
   * @throws NotAuthorizedError if the request names no user, but should; ConfigurationError if the frame would lose its session
   */
  answer(req: IncomingMessage, res: ServerResponse, scope: string | undefined, isStepUp: boolean): void;
}

/** Returns the gate for a request. @throws ConfigurationError if the middleware is not mounted where it has to be */
export type FrameGateReader = (req: IncomingMessage) => FrameGate;

/** Key of the {@link FrameGateReader} of the middleware that `embedded` returns. */
export const FRAME_GATE: unique symbol = Symbol('passport-oauth-app.frame');

function hasGate(value: unknown): value is { readonly [FRAME_GATE]: FrameGateReader } {
  return typeof value === 'function' && FRAME_GATE in value;
}

/** Creates the middleware `requireAuthorization`, for which scopes of pages have to be installed. @throws ConfigurationError */
export function requireGrant(options: RequireAuthorizationOptions = {}): Handler {
  const read = readOptions('requireAuthorization(options)', options, {
    login: loginRoute,
    scope: withDefault([], (option, value): readonly string[] => scope(option, value).split(' ').filter(Boolean)),
    property: clientProperty,
    frame: withDefault(undefined, (option, value): FrameGateReader => {
      if (hasGate(value)) return value[FRAME_GATE];
      throw optionError(option, 'expected what embedded(strategy, …) returned');
    }),
  });
  const { login: route, property, scope: needed, frame } = read;
  const hasLogin = route !== undefined || frame !== undefined;
  return function passIfAuthorized(req, res, next) {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient)) {
      const strategyName = strategyNames.get(property);
      const isDouble = typeof client === 'object' && client !== null;
      if (!isDouble && refuseFramework(req, res, next, strategyName)) return;
      return next(ofStrategy(noClient(property, isDouble), strategyName));
    }
    const { source, context } = partsOf(client);
    const mayPrepare = source.mayBeExpired && !clientsOf(client)?.logoutRoutes.has(req);
    const checked = mayPrepare ? source.prepareFully?.() : undefined;
    // A login replaces a grant that the service refuses to renew. Scripts go on, and their calls say why they fail.
    const isStranded = !checked && hasLogin && source.isRefused === true && isPageRequest(req.method, req.headers);
    // If the grant could not be loaded, its scopes are unknown: the error says why.
    const isUnknown = needed.length > 0 && source.authorized && source.last === undefined && !isStranded;
    const pending: Promise<unknown> | undefined = checked ?? (isUnknown ? client.credentials() : undefined);
    // Nothing else catches what is thrown by then, such as for a response that a timeout has sent.
    if (pending) return void pending.then(() => passIfAuthorized(req, res, next)).catch(next);
    const missing = needed.filter((name) => !grantedTo(source).includes(name));
    try {
      const gate = frame?.(req);
      if (!source.authorized || missing.length > 0 || isStranded) {
        const isPage = isPageRequest(req.method, req.headers);
        const login = isPage ? loginFor(route, client) : undefined;
        const refusal = source.authorized
          ? scopeError(missing, grantedTo(source))
          : new NotAuthorizedError('Log in first: this request is not authorized.');
        if (isPage && gate?.isFor(req)) {
          if (source.authorized && gate.isRefused(req, missing)) throw refusal;
          const scopes = missing.length === 0 ? undefined : withMissing(missing, client).join(' ');
          return gate.answer(req, res, scopes, source.authorized && !isStranded);
        }
        if (login !== undefined) return redirectOrThrow(new Visit(req), res, login, client, missing, refusal);
        // No login can help a stranded grant: its calls say why they fail.
        if (!isStranded) throw refusal;
      }
    } catch (error) {
      return next(ofStrategy(error, context.strategyName));
    }
    next();
  };
}

/** Returns the scopes of a grant as it was last seen; none without a grant. */
function grantedTo({ authorized, last }: CredentialSource): readonly string[] {
  return (authorized && last?.scope) || [];
}

/** Sends the browser to the login. @throws ConfigurationError where the login itself is; `refusal` if it would not get the scopes */
function redirectOrThrow(
  visit: Visit,
  res: ServerResponse,
  login: string,
  client: ApiClient,
  missing: readonly string[],
  refusal: NotAuthorizedError,
): void {
  const guarded = partOfLogin(visit, login);
  if (guarded !== undefined)
    throw new ConfigurationError(
      `requireAuthorization({ login }) is mounted before the ${guarded} route, so that no browser could reach it. Mount it on the routes that need a login, or after the routes of login and callback.`,
      { code: 'ERR_LOGIN_LOOP' },
    );
  const scopes = missing.length > 0 ? clientsOf(client)?.options.pageScopes() : undefined;
  // The user has not asked for a prefetched page yet.
  if (scopes && !isPrefetch(visit.headers)) {
    if (client.authorized && scopes.isRefused(visit, res, missing)) throw refusal;
    const isAsked = scopes.ask(visit, res, pageOf(visit), withMissing(missing, client), client.grantId);
    if (!isAsked && client.authorized) throw refusal;
  }
  redirectToLogin(visit, res, login, client);
}

/** Returns the missing scopes with those that are granted; if none is, with those of every login. */
function withMissing(missing: readonly string[], client: ApiClient): readonly string[] {
  const base = client.scope.length > 0 ? client.scope : (clientsOf(client)?.options.scope ?? []);
  return [...new Set([...base, ...missing])];
}

function noClient(property: string, isDouble: boolean): ConfigurationError {
  const message = isDouble
    ? `req.${property} is not of this package. Unit tests of a handler need no requireAuthorization(); tests of routes get a client from apiClient(strategy) and the emulator.`
    : `The request has no req.${property}: mount apiClient(strategy) before requireAuthorization().`;
  return new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' });
}

function scopeError(missing: readonly string[], granted: readonly string[]): NotAuthorizedError {
  const names = missing.join(', ');
  const message = `The user has not granted what this request needs: the scope ${names}; granted: ${granted.join(', ') || 'none'}. A page request is redirected to the login route of requireAuthorization({ login, scope }), unless the user has just refused.`;
  return new NotAuthorizedError(message, { code: 'ERR_INSUFFICIENT_SCOPE', status: 403, scope: missing, granted });
}
