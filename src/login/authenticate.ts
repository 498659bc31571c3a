import type { IncomingMessage, ServerResponse } from 'node:http';
import { warnOfIgnoredOptions } from '../advice/ignored-options.js';
import * as check from '../checks.js';
import { AuthorizationError, ofStrategy } from '../errors.js';
import { isFetch, isPrefetch } from '../session/fetch-metadata.js';
import { redirect } from '../session/redirect.js';
import { asRouted, routedPathOf } from '../session/request-url.js';
import { Visit } from '../session/visit.js';
import { type BeginLoginContext, beginLogin, type LoginOptions } from './begin-login.js';
import { type CallbackContext, handleCallback } from './callback.js';
import { type CallbackRoute, hasCallbackParameters, refuseOwnerless } from './callback-request.js';
import { type PassportActions, passOn } from './passport-actions.js';

/** Options of `passport.authenticate` and `passport.authorize` that the strategy uses. */
export interface AuthenticateOptions extends LoginOptions {
  readonly session?: unknown;
  readonly successRedirect?: unknown;
  readonly successReturnToOrRedirect?: unknown;
  readonly failureRedirect?: unknown;
}

/** What logins need of their strategy. */
export interface LoginContext extends BeginLoginContext, CallbackContext {
  readonly settings: BeginLoginContext['settings'] & CallbackContext['settings'];
  /** Routed path of the strategy's `callbackURL`; `undefined` if it depends on the request. */
  readonly callbackPath: string | undefined;
}

/**
 * Answers a request to the routes of login and callback with one of Passport's actions.
 *
 * Never rejects: an error goes to Passport's `error`.
 */
export async function authenticate(
  context: LoginContext,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    res = context.clients.responseOf(req);
    // The URL of a callback holds the code, and the URL of a login may hold private parts of a page's address.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    // Passport calls it for successRedirect and failureRedirect. Responses of Connect have none.
    if (typeof Reflect.get(res, 'redirect') !== 'function') {
      const value = redirect.bind(undefined, res);
      Object.defineProperty(res, 'redirect', { value, configurable: true, writable: true });
    }
    warnOfIgnoredOptions(options, context.advice);
    const own = options.callbackURL === undefined ? undefined : check.callbackUrl('callbackURL', options.callbackURL);
    const visit = new Visit(req);
    const usual = context.settings.callbackURL;
    // A callback is known by its path, whose front a proxy may have stripped, or by its parameters.
    const { url, path } = visit;
    const here = asRouted(path);
    const expected = (own === undefined ? context.callbackPath : undefined) ?? routedPathOf(own ?? usual, path);
    // A route that leads on after the login is no login route, whose path may end like that of the callback.
    const leadsOn = Boolean(options.successRedirect ?? options.successReturnToOrRedirect ?? options.failureRedirect);
    const isThere = here === expected || (leadsOn && here !== '' && expected.endsWith(here));
    const isCallback = isThere || (url.includes('?') && hasCallbackParameters(url));
    if (isCallback) await handleCallback(context, actions, visit, res, routeOf(own, options));
    else await handleLogin(context, actions, visit, res, own ?? usual, options);
  } catch (error) {
    await passOn(ofStrategy(error, context.settings.name), actions, res);
  }
}

function routeOf(callbackURL: string | undefined, options: AuthenticateOptions): CallbackRoute {
  const isConnection = Boolean(options.assignProperty);
  return {
    callbackURL,
    isConnection,
    establishesSession: options.session !== false && !isConnection,
    page: options.successReturnToOrRedirect || options.successRedirect,
    failureRedirect: options.failureRedirect,
  };
}

const BY_SCRIPT =
  'A script cannot follow the redirect to the service. Begin the login with a link to this route, or with location.assign().';

async function handleLogin(
  context: LoginContext,
  actions: PassportActions,
  visit: Visit,
  res: ServerResponse,
  callbackURL: string,
  options: AuthenticateOptions,
): Promise<void> {
  const { grants, advice } = context;
  const { req, headers } = visit;
  advice.beforeLogin(visit);
  grants.managerFor(req);
  if (isPrefetch(headers) && !isFetch(headers)) {
    throw new AuthorizationError('A login must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  // Not an error: Turbo shows the page of one, and loads the page anew after an answer without a type.
  if (isFetch(headers)) {
    actions.fail({ message: BY_SCRIPT }, 403);
    return;
  }
  const ownerless = options.assignProperty ? refuseOwnerless(grants, req) : undefined;
  if (ownerless) {
    actions.fail(ownerless.info, ownerless.status);
    return;
  }
  advice.loops.rememberRoute(visit);
  const location = beginLogin(context, visit, res, callbackURL, options);
  if (location === undefined) actions.fail({ message: 'The request names no host to return to after the login.' }, 400);
  else actions.redirect(location);
}
