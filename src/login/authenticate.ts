import type { IncomingMessage, ServerResponse } from 'node:http';
import { Advice } from '../advice/advice.js';
import { LoopGuard } from '../advice/loop-guard.js';
import * as check from '../checks.js';
import { closedError, ofStrategy } from '../errors.js';
import { redirect } from '../session/return-to.js';
import { asRouted, Visit } from '../session/visit.js';
import { authorizationRequest, beginLogin, furtherParams } from './begin-login.js';
import { handleCallback } from './callback.js';
import { ABSOLUTE_URL, readCallbackQuery } from './callback-query.js';
import type { LoginContext, LoginRuntime, PassportActions, RouteOptions } from './login-context.js';
import { PendingLogins } from './pending-logins.js';
import { UsedLogins } from './used-logins.js';

/**
 * Options of `passport.authenticate` and `passport.authorize`: Passport's, and those of this strategy. Both accept a value of
 * this type, whatever the types of Passport say.
 *
 * `state` is an object of at most 500 characters as JSON that travels with the login. It comes back as `req.authInfo.state`,
 * in `verify` too. This type declares it by a pattern, since Passport's types allow only a string.
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

/** Returns what the logins of a strategy share, created by the first of them. */
export function loginsOf(runtime: LoginRuntime): LoginContext {
  runtime.logins ??= createLogins(runtime);
  return runtime.logins;
}

function createLogins(runtime: LoginRuntime): LoginContext {
  const { settings, service, openStrategy, grants, clients, returns } = runtime;
  const { name, callbackURL, clock, scope, authorizationParams: params } = settings;
  // A path such as `callback` without a slash is resolved against that of each request.
  const isFixed = ABSOLUTE_URL.test(callbackURL) || callbackURL.startsWith('/');
  return {
    ...runtime,
    get popups() {
      return runtime.popups;
    },
    advice: new Advice(openStrategy, grants, clients),
    loops: new LoopGuard(returns),
    pendingLogins: new PendingLogins(settings, service),
    usedLogins: new UsedLogins({ namespace: encodeURIComponent(`${name}.${service}`), clock }),
    defaultRequest: authorizationRequest(settings, callbackURL, scope),
    defaultParams: typeof params === 'function' ? undefined : furtherParams(params),
    callbackPath: isFixed ? asRouted(new URL(callbackURL, 'http://relative.invalid').pathname) : undefined,
  };
}

/**
 * Answers a request to the routes of login and callback with one of Passport's actions.
 *
 * Never rejects: an error goes to Passport's `error`.
 */
export async function authenticate(
  runtime: LoginRuntime,
  actions: PassportActions,
  req: IncomingMessage,
  options: RouteOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    if (runtime.managers.isClosed) throw closedError();
    const context = loginsOf(runtime);
    res = context.clients.responseOf(req);
    // The URL of a callback holds the code, and that of a login may hold private parts of a page's address.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    // Passport calls it for successRedirect and failureRedirect. Responses of Connect have none.
    if (typeof Reflect.get(res, 'redirect') !== 'function') {
      const value = redirect.bind(undefined, res);
      Object.defineProperty(res, 'redirect', { value, configurable: true, writable: true });
    }
    const { callbackURL } = options;
    const own = callbackURL === undefined ? undefined : check.callbackUrl('callbackURL', callbackURL);
    const visit = new Visit(req);
    // One route may serve both: a request without the parameters of a callback begins a login.
    const query = readCallbackQuery(visit.url);
    if (query) await handleCallback(context, actions, visit, res, own, options, query);
    else await beginLogin(context, actions, visit, res, own, options);
  } catch (error) {
    await passOn(ofStrategy(error, runtime.settings.name), actions, res);
  }
}

/** Passes an error to Passport, and so to the application's error handler. */
export async function passOn(error: unknown, actions: PassportActions, res: ServerResponse | undefined): Promise<void> {
  // Routers take a falsy value for success, and these two strings as commands to skip handlers.
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
