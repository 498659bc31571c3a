import type { IncomingMessage } from 'node:http';
import { lostCookieCause } from '../advice/session-cookie.js';
import { AuthorizationError, ConfigurationError } from '../errors.js';
import type { RequestGrants } from '../session/grant-reference.js';
import { userOf } from '../session/session.js';
import type { SessionLoginRequest } from '../session/session-login.js';
import { ABSOLUTE_URL, asRouted, isInFrame, isPrefetch, parametersOf, routedPathOf } from '../session/visit.js';
import type { CallbackFailure, LoginContext, Popup } from './login-context.js';
import type { PendingLogin } from './pending-logins.js';

/** What a callback's route asks for: options of `passport.authenticate` or `passport.authorize`. */
export interface CallbackRoute {
  readonly callbackURL: string | undefined;
  /** True for `passport.authorize`, which connects an account without a login. */
  readonly isConnection: boolean;
  /** True if Passport logs the user in with a session. */
  readonly establishesSession: boolean;
  /** The option `successReturnToOrRedirect` or `successRedirect`. */
  readonly page: unknown;
  readonly failureRedirect: unknown;
}

/** A request to a callback's route. */
export interface CallbackRequest extends SessionLoginRequest {
  readonly route: CallbackRoute;
  /** For a connection: the session when the callback began, as JSON. */
  readonly sessionAtStart: string | undefined;
  /** What its query says. */
  readonly answer: CallbackQuery;
  /** The popup that has sent it. */
  readonly popup: Popup | undefined;
}

/** A callback of a login that this browser has begun, and that may end at this route. */
export interface CheckedCallback {
  readonly kind: 'checked';
  readonly state: string;
  readonly login: PendingLogin;
  readonly answer: CallbackAnswer;
}

const UNKNOWN_LOGIN =
  'This login was not begun in this browser, has been finished already, or is older than ten minutes. Please log in again.';

/** The failure of a callback whose login is unknown, or used up. */
export const REPLAYED: CallbackFailure = {
  kind: 'fail',
  reason: 'replayed',
  info: { message: UNKNOWN_LOGIN },
  status: 403,
};

const OTHER_ISSUER =
  'This login comes from an authorization server other than the one in the option issuer, or from one that sends no iss. Please log in again.';

const CONNECTION_AS_LOGIN = 'This request connects an account, and is no login. Please log in.';

const OTHER_USER = 'The logged-in user changed while this account was being connected. Please connect it again.';

const NOBODY_TO_CONNECT = 'No user is logged in, so this account cannot be connected. Please log in first.';

/**
 * Checks a callback, in the order of what costs least, and changes nothing: it may be refused here, and its login still be
 * finished by another one.
 *
 * @throws AuthorizationError for a prefetch; ConfigurationError if `embedded()` is mounted in the wrong order
 * @see service.md, 4.1; RFC 6749, 4.1.2
 */
export function checkCallback(
  { settings, grants, pendingLogins, advice }: LoginContext,
  { visit, res, route, popup, answer }: CallbackRequest,
): CheckedCallback | CallbackFailure {
  const { req, headers } = visit;
  // The service redirects, so a callback is a GET; and a prefetch does not come from the user.
  if (req.method !== 'GET') {
    res.setHeader('Allow', 'GET');
    return refusedCallback('The callback takes GET requests.', 405);
  }
  if (isPrefetch(headers)) {
    throw new AuthorizationError('A callback must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  if (answer.kind === 'malformed') return refusedCallback('The parameters of the callback are malformed.', 400);
  const { state } = answer;
  const login = state === undefined ? undefined : pendingLogins.find(visit, state);
  if (state === undefined || !login || !matchesRoute(login, visit, route, settings.callbackURL)) {
    // passport.authenticate tries several strategies, one after the other: the next one has the login.
    if (state !== undefined && pendingLogins.isOtherStrategys(visit, state)) return { ...REPLAYED, reason: 'foreign' };
    // A callback in a frame has most likely lost the cookie of its login.
    const cause = isInFrame(headers) ? lostCookieCause(visit) : undefined;
    const message = advice.hosts.explain(state) ?? (cause && `${UNKNOWN_LOGIN} ${cause}`);
    return message === undefined ? REPLAYED : { ...REPLAYED, info: { message } };
  }
  advice.hosts.forget(state);
  if (login.frame && !popup) {
    const order =
      'embedded(strategy, …) is mounted after the callback route: mount it after the session, and before apiClient(strategy) and the routes.';
    throw new ConfigurationError(order, { code: 'ERR_MIDDLEWARE_ORDER' });
  }
  // Simple string comparison (RFC 9207, 2.4).
  if (settings.issuer !== undefined && answer.issuer !== settings.issuer) return refusedCallback(OTHER_ISSUER, 403);
  if (login.isConnection && !route.isConnection) return refusedCallback(CONNECTION_AS_LOGIN, 403);
  if (route.isConnection && login.userMark !== grants.userMarkOf(req, true)) return refusedCallback(OTHER_USER, 403);
  // The login may have begun at a route of passport.authenticate.
  const ownerless = route.isConnection ? refuseOwnerless(grants, req) : undefined;
  return ownerless ?? { kind: 'checked', state, login, answer };
}

/**
 * Returns the refusal of a connection without a logged-in user, where the option `grantId` keys grants by the user: the
 * connected account's id may be the id of another user here.
 *
 * @throws ConfigurationError if that option makes no valid id of the user who is logged in
 */
export function refuseOwnerless(grants: RequestGrants, req: IncomingMessage): CallbackFailure | undefined {
  if (grants.idIsInSession) return undefined;
  const user = userOf(req);
  if (!user) return refusedCallback(NOBODY_TO_CONNECT, 403);
  grants.newId(req, user);
  return undefined;
}

/**
 * Returns true if the redirect URL of a login leads to the route of this request, as far as its path shows.
 *
 * @param usual The strategy's `callbackURL`. A login with this URL may end at any route: proxies change paths.
 */
function matchesRoute(
  { redirectUri }: PendingLogin,
  { path }: CallbackRequest['visit'],
  { callbackURL: own }: CallbackRoute,
  usual: string,
): boolean {
  if (own === undefined && usual === redirectUri) return true;
  if (own !== undefined && ABSOLUTE_URL.test(own)) return own === redirectUri;
  const expected = routedPathOf(redirectUri, path);
  if (own !== undefined) return routedPathOf(own, path) === expected;
  const here = asRouted(path);
  // A proxy may have removed the front of the path, or added one.
  return expected.endsWith(here) || here.endsWith(expected);
}

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery = { readonly kind: 'malformed' } | CallbackAnswer;

type CallbackAnswer = { readonly state: string | undefined; readonly issuer: string | undefined } & (
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'error'; readonly error: string; readonly description: string | undefined }
);

/** Longest value of each parameter of RFC 6749, 4.1.2 and 4.1.2.1, and of RFC 9207. */
const MAX_LENGTH = {
  code: 4096,
  state: 512,
  error: 2048,
  error_description: 4096,
  error_uri: 2048,
  iss: 2048,
} as const;

/** Those that decide over the answer. The others say more of it, and may be empty. */
const DECISIVE: ReadonlySet<string> = new Set(['code', 'state', 'error']);

/** The longest part of a description that is kept. */
const MAX_DESCRIPTION_LENGTH = 500;

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A). */
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;

/** Stands for an error that is not visible ASCII: nothing of its text is used. It is no error code. */
const UNREGISTERED_ERROR = 'unregistered error';

/**
 * Reads the query of a callback from the request's URL itself: frameworks turn repeated and bracketed parameters into
 * lists and objects, and Connect parses nothing.
 *
 * @param url Path and query.
 * @returns `undefined` if no parameter is one of a callback, well-formed or not
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(url: string): CallbackQuery | undefined {
  const found: { -readonly [Name in keyof typeof MAX_LENGTH]?: string } = {};
  let isCallback = false;
  let isMalformed = false;
  for (const [name, value] of parametersOf(url)) {
    const [stem = ''] = name.split('[', 1);
    const isParameter = Object.hasOwn(MAX_LENGTH, stem);
    const isDecisive = DECISIVE.has(stem);
    isCallback ||= isDecisive;
    // Bracketed forms of our parameters, and whatever reaches for a prototype.
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

function refusedCallback(message: string, status: number): CallbackFailure {
  return { kind: 'fail', reason: 'refused', info: { message }, status };
}
