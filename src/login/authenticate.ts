import type { IncomingMessage, ServerResponse } from 'node:http';
import { Advice } from '../advice/advice.js';
import { LoopGuard } from '../advice/loop-guard.js';
import * as check from '../checks.js';
import { closedError, ofStrategy } from '../errors.js';
import { redirect } from '../session/return-to.js';
import { Visit } from '../session/visit.js';
import { authorizationRequest, beginLogin, furtherParams } from './begin-login.js';
import { handleCallback } from './callback.js';
import type { CallbackQuery, LoginContext, LoginRuntime, PassportActions, RouteOptions } from './login-context.js';
import { PendingLogins, UsedLogins } from './pending-logins.js';

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

/** Returns what the logins of a strategy share. */
export function loginsOf(runtime: LoginRuntime): LoginContext {
  runtime.logins ??= createLogins(runtime);
  return runtime.logins;
}

function createLogins(runtime: LoginRuntime): LoginContext {
  const { settings, service, openStrategy, grants, clients, returns } = runtime;
  const { name, callbackURL, clock, scope, authorizationParams: params } = settings;
  return {
    runtime,
    advice: new Advice(openStrategy, grants, clients),
    loops: new LoopGuard(returns),
    pendingLogins: new PendingLogins(settings, service),
    usedLogins: new UsedLogins({ namespace: encodeURIComponent(`${name}.${service}`), clock }),
    defaultRequest: authorizationRequest(settings, callbackURL, scope),
    defaultParams: typeof params === 'function' ? undefined : furtherParams(params),
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
    const logins = loginsOf(runtime);
    res = runtime.clients.responseOf(req);
    // The URL of a callback holds the code, and that of a login may hold private parts of a page's address.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    // Passport calls it for successRedirect and failureRedirect. Responses of Connect have none.
    if (typeof Reflect.get(res, 'redirect') !== 'function') {
      const value = redirect.bind(undefined, res);
      Object.defineProperty(res, 'redirect', { value, configurable: true, writable: true });
    }
    const given = options.callbackURL;
    const callbackURL = given === undefined ? undefined : check.callbackUrl('callbackURL', given);
    const visit = new Visit(req);
    const request = { visit, res, actions, options, callbackURL };
    // One route may serve both: a request without the parameters of a callback begins a login.
    const query = readCallbackQuery(visit.query);
    if (query) await handleCallback(logins, request, query);
    else await beginLogin(logins, request);
  } catch (error) {
    await passOn(ofStrategy(error, runtime.settings.name), actions, res);
  }
}

/** Maximum length of each parameter of RFC 6749, 4.1.2 and 4.1.2.1, and of RFC 9207. */
const MAX_LENGTH = {
  code: 4096,
  state: 512,
  error: 2048,
  error_description: 4096,
  error_uri: 2048,
  iss: 2048,
} as const;

/** Any of these makes a request a callback. The other parameters only add to them, and may be empty. */
const DECISIVE: ReadonlySet<string> = new Set(['code', 'state', 'error']);

/** Longer descriptions are cut off. */
const MAX_DESCRIPTION_LENGTH = 500;

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A). */
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;

/** Replaces an error that is not visible ASCII. It is not an error code itself. */
const UNREGISTERED_ERROR = 'unregistered error';

/**
 * Reads the query of a callback. Returns `undefined` if no parameter, well-formed or not, makes the request one.
 *
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(query: URLSearchParams): CallbackQuery | undefined {
  const found: { -readonly [Name in keyof typeof MAX_LENGTH]?: string } = {};
  let isCallback = false;
  let isMalformed = false;
  for (const [name, value] of query) {
    const [stem = ''] = name.split('[', 1);
    const isParameter = Object.hasOwn(MAX_LENGTH, stem);
    const isDecisive = DECISIVE.has(stem);
    isCallback ||= isDecisive;
    // Bracketed forms of these parameters, and attempts at prototype pollution.
    isMalformed ||= value === '__proto__' || name.includes('__proto__') || (isParameter && stem !== name);
    if (!isParameter || isMalformed) continue;
    const known = name as keyof typeof MAX_LENGTH;
    isMalformed = found[known] !== undefined || (isDecisive && value === '') || value.length > MAX_LENGTH[known];
    if (!isDecisive || PRINTABLE_ASCII.test(value)) found[known] = value;
    // Some services send a sentence as the error. NUL and broken UTF-8 are not text.
    else if (known === 'error' && !/[\0\ufffd]/.test(value)) found.error = UNREGISTERED_ERROR;
    else isMalformed = true;
  }
  if (!isCallback) return undefined;
  const { code, error, state, iss: issuer } = found;
  if (isMalformed || (code === undefined) === (error === undefined)) return { kind: 'malformed' };
  if (code !== undefined) return { kind: 'code', code, state, issuer };
  const description = found.error_description?.slice(0, MAX_DESCRIPTION_LENGTH);
  return { kind: 'error', error: error ?? '', description, state, issuer };
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
