import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { AuthorizationError, closedError, ofStrategy } from '../errors.js';
import { redirect } from '../session/return-to.js';
import { asRouted, isFetch, isPrefetch, routedPathOf, Visit } from '../session/visit.js';
import { beginLogin } from './begin-login.js';
import { handleCallback, type PassportActions } from './callback.js';
import { readCallbackQuery, refuseOwnerless } from './callback-request.js';
import type { LoginContext, RouteOptions } from './login-context.js';

/**
 * Options of `passport.authenticate` and `passport.authorize`: Passport's, and those of this strategy. A value of this type can
 * be passed to both, whatever the types of Passport say.
 *
 * `state` is an object of at most 500 characters as JSON that travels with the login: `req.authInfo.state` after it, and in
 * `verify`. It has no other place in this type, since Passport's types allow a text alone.
 */
export interface AuthenticateOptions {
  readonly [state: `stat${string}`]: Readonly<Record<string, unknown>> | undefined;
  /** Scopes of the logins that begin at this route. Default: the strategy's. */
  readonly scope?: string | string[] | undefined;
  /** The redirect URL of this route. Default: the strategy's. */
  readonly callbackURL?: string | undefined;
  /** Further parameters of the authorization request, for this route. They replace those of the strategy. */
  readonly authorizationParams?:
    | Readonly<Record<string, string>>
    | ((req: IncomingMessage & Express.Request) => Readonly<Record<string, string>>)
    | undefined;
  readonly session?: boolean | undefined;
  readonly successRedirect?: string | undefined;
  readonly successReturnToOrRedirect?: string | undefined;
  readonly failureRedirect?: string | undefined;
  readonly successFlash?: string | boolean | undefined;
  readonly successMessage?: string | boolean | undefined;
  readonly failureFlash?: string | boolean | undefined;
  readonly failureMessage?: string | boolean | undefined;
  readonly failWithError?: boolean | undefined;
  readonly keepSessionInfo?: boolean | undefined;
  readonly assignProperty?: string | undefined;
  readonly authInfo?: boolean | undefined;
  readonly userProperty?: string | undefined;
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
  options: RouteOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    if (context.managers.isClosed) throw closedError();
    res = context.clients.responseOf(req);
    // The URL of a callback holds the code, and the URL of a login may hold private parts of a page's address.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    // Passport calls it for successRedirect and failureRedirect. Responses of Connect have none.
    if (typeof Reflect.get(res, 'redirect') !== 'function') {
      const value = redirect.bind(undefined, res);
      Object.defineProperty(res, 'redirect', { value, configurable: true, writable: true });
    }
    context.advice.warnOfIgnored(options);
    const own = options.callbackURL === undefined ? undefined : check.callbackUrl('callbackURL', options.callbackURL);
    const visit = new Visit(req);
    // One route may be for both: a request without the parameters of a callback begins a login.
    const answer = visit.url.includes('?') ? readCallbackQuery(visit.url) : undefined;
    if (answer) {
      const isConnection = Boolean(options.assignProperty);
      const route = {
        callbackURL: own,
        isConnection,
        establishesSession: options.session !== false && !isConnection,
        page: options.successReturnToOrRedirect || options.successRedirect,
        failureRedirect: options.failureRedirect,
      };
      await handleCallback(context, actions, visit, res, route, answer);
    } else await handleLogin(context, actions, visit, res, own, options);
  } catch (error) {
    await passOn(ofStrategy(error, context.settings.name), actions, res);
  }
}

const BY_SCRIPT =
  'A script cannot follow the redirect to the service. Begin the login with a link to this route, or with location.assign().';

async function handleLogin(
  context: LoginContext,
  actions: PassportActions,
  visit: Visit,
  res: ServerResponse,
  own: string | undefined,
  options: RouteOptions,
): Promise<void> {
  const { grants, advice } = context;
  const { req, headers } = visit;
  advice.beforeLogin(visit);
  grants.managerFor(req);
  if (isPrefetch(headers) && !isFetch(headers)) {
    throw new AuthorizationError('A login must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  // Answered here, since a script would follow failureRedirect. Turbo loads the page anew after an answer that is no HTML.
  if (isFetch(headers)) {
    res.statusCode = 403;
    res.setHeader('Content-Type', 'text/plain; charset=utf-8');
    res.end(BY_SCRIPT);
    return;
  }
  const ownerless = options.assignProperty ? refuseOwnerless(grants, req) : undefined;
  if (ownerless) {
    actions.fail(ownerless.info, ownerless.status);
    return;
  }
  const callbackURL = own ?? context.settings.callbackURL;
  const callbackPath = (own === undefined ? context.callbackPath : undefined) ?? routedPathOf(callbackURL, visit.path);
  if (asRouted(visit.path) === callbackPath) await advice.loops.countEmptyCallback(visit, res, grants.managerFor(req));
  advice.loops.rememberRoute(visit);
  const location = beginLogin(context, visit, res, callbackURL, options);
  if (location === undefined) actions.fail({ message: 'The request names no host to return to after the login.' }, 400);
  else actions.redirect(location);
}

/** Passes an error on to Passport, and so to the application's error handler. */
export async function passOn(error: unknown, actions: PassportActions, res: ServerResponse | undefined): Promise<void> {
  // Routers take a false value for success, and these two texts as commands to skip handlers.
  const isError = Boolean(error) && error !== 'route' && error !== 'router';
  try {
    await actions.error(isError ? error : new Error('verify or userProfile failed without a reason'));
  } catch (thrown) {
    // The application's own callback threw, and no error handler follows it.
    process.emitWarning(thrown instanceof Error ? thrown : 'A callback given to passport.authenticate threw');
    if (!res || res.writableEnded) return;
    if (!res.headersSent) res.statusCode = 500;
    res.end();
  }
}
