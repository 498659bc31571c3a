import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ApiClient } from '../api/api-client.js';
import type { CredentialSource } from '../api/api-context.js';
import { AuthorizationError, ConfigurationError } from '../errors.js';
import type { TokenResponseFields } from '../oauth/claims.js';
import { scopeNames } from '../oauth/scope.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { ReturnCookie } from '../request/browser-cookie.js';
import { fixedSource } from '../request/credential-sources.js';
import type { RequestGrants } from '../request/grant-reference.js';
import {
  ABSOLUTE_URL,
  asRouted,
  isInFrame,
  isPrefetch,
  originalPath,
  originalUrl,
  queryOf,
  routedPathOf,
  userOf,
} from '../request/incoming-request.js';
import { lostCookieCause } from '../request/session.js';
import type { StepUps } from '../request/step-ups.js';
import type { HostMismatches } from './begin-login.js';
import type { FrameLogins } from './frame-logins.js';
import type { PendingLogin, PendingLogins } from './pending-logins.js';
import type { UsedLogins } from './used-logins.js';
import {
  type AnyVerify,
  callVerify,
  loadProfile,
  refuseUserWithoutId,
  type Verdict,
  warnOfMissingId,
} from './verify.js';

/** How a callback ends, unless it throws. */
export type CallbackOutcome =
  | {
      readonly kind: 'fail';
      /** `replayed`: the state is unknown, or used up. `abandoned`: the browser has gone away. */
      readonly reason: 'refused' | 'replayed' | 'declined' | 'denied' | 'abandoned';
      readonly info: unknown;
      readonly status?: number;
    }
  | {
      readonly kind: 'success';
      readonly tokens: TokenSet;
      readonly verdict: Verdict;
      readonly returnTo: string | undefined;
    };

/** What a login is finished with. */
export interface FinishLoginContext {
  readonly settings: {
    /** Passport's name for the strategy. */
    readonly name: string;
    readonly callbackURL: string;
    readonly scope: string;
    readonly userProfile: ((client: ApiClient, tokenResponse: TokenResponseFields) => Promise<object>) | undefined;
    readonly passReqToCallback: boolean;
  };
  readonly verify: AnyVerify | undefined;
  readonly grants: RequestGrants;
  readonly pendingLogins: PendingLogins;
  readonly usedLogins: UsedLogins<CallbackOutcome>;
  readonly endpoint: TokenEndpoint;
  readonly returnCookie: ReturnCookie;
  readonly stepUps: StepUps;
  readonly hostMismatches: HostMismatches;
  readonly frames: FrameLogins;
  readonly clientOf: (source: CredentialSource) => ApiClient;
  /** What has been warned of, and is not again. */
  readonly warnings: Set<string>;
}

const replayed = {
  kind: 'fail',
  reason: 'replayed',
  info: {
    message:
      'This login was not begun in this browser, has been finished already, or is older than ten minutes. Please log in again.',
  },
  status: 403,
} as const satisfies CallbackOutcome;

const abandoned: CallbackOutcome = {
  kind: 'fail',
  reason: 'abandoned',
  info: { message: 'The browser has dropped its request before the login ended.' },
  status: 499,
};

const CONNECTION_AS_LOGIN = 'This account was to be connected, which logs nobody in. Please log in.';

const OTHER_USER =
  'Another user is logged in now than when the connection of this account was begun. Please connect it again.';

const NOBODY_TO_CONNECT =
  'Nobody is logged in, so this account cannot be connected: its grant would belong to nobody. Please log in first.';

/** Error codes that messages may name; any other is the sender's own text (RFC 6749, 4.1.2.1; OpenID Connect Core, 3.1.2.6). */
const REGISTERED_ERRORS = new Set([
  ...['invalid_request', 'invalid_scope', 'server_error', 'temporarily_unavailable', 'unauthorized_client'],
  ...['unsupported_response_type', 'account_selection_required', 'consent_required', 'interaction_required'],
  'login_required',
]);

/** The options of `passport.authenticate` or `passport.authorize` on the callback's route. */
export interface CallbackRoute {
  readonly callbackURL: string | undefined;
  /** True for `passport.authorize`. */
  readonly isConnection: boolean;
}

/**
 * Handles a callback: checks the state first, then the decline or the code exchange, then calls the application's `verify`.
 *
 * @throws AuthorizationError, TokenError, TokenResponseError, ServiceUnavailableError, or what `userProfile` and `verify` throw
 * @see service.md, 4.1 and 4.2; RFC 6749, 4.1.2
 */
export async function finishLogin(
  context: FinishLoginContext,
  { access }: GrantManager,
  req: IncomingMessage,
  res: ServerResponse,
  route: CallbackRoute,
): Promise<CallbackOutcome> {
  const { pendingLogins, usedLogins, settings } = context;
  // The service redirects, so a callback is a GET; and a prefetch does not come from the user.
  if (req.method !== 'GET') {
    res.setHeader('Allow', 'GET');
    return refused('The callback takes GET requests.', 405);
  }
  if (isPrefetch(req)) {
    throw new AuthorizationError('A callback must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  const query = readCallbackQuery(originalUrl(req));
  if (query.kind === 'malformed') return refused('The parameters of the callback are malformed.', 400);
  const { state } = query;
  const login = state === undefined ? undefined : pendingLogins.find(req, state);
  if (state === undefined || !login || !leadsHere(login.redirectUri, req, route.callbackURL, settings.callbackURL)) {
    // passport.authenticate tries several strategies, one after the other: the next one has the login.
    if (state !== undefined && pendingLogins.isOfAnother(req, state)) return { ...replayed, reason: 'refused' };
    const message = context.hostMismatches.messageOf(state) ?? framed(req);
    return message === undefined ? replayed : { ...replayed, info: { message } };
  }
  if (login.frame && !context.frames.popupOf(req)) {
    const order =
      'embedded(strategy, …) is mounted after the callback route: mount it after the session, and before apiClient(strategy) and the routes.';
    throw new ConfigurationError(order, { code: 'ERR_MIDDLEWARE_ORDER' });
  }
  if (login.isConnection && !route.isConnection) return refused(CONNECTION_AS_LOGIN, 403);
  if (route.isConnection && login.userMark !== context.grants.userMarkOf(req, true)) return refused(OTHER_USER, 403);
  // The login may have begun at a route of passport.authenticate.
  const ownerless = route.isConnection ? refuseOwnerless(context.grants, req) : undefined;
  if (ownerless) return ownerless;
  const { callback, isFirst } = await usedLogins.use(state, login.expiresAt, access);
  // A reload of the page: the browser has dropped its first request, and with it the session that this would have got.
  const takenOver = isFirst ? undefined : await callback.takeOver();
  if (!isFirst && !takenOver) return replayed;
  res.appendHeader('Set-Cookie', login.endCookie);
  if (takenOver) return takenOver;
  let outcome: CallbackOutcome | undefined;
  let isGone = false;
  try {
    outcome =
      query.kind === 'error' ? declined(query.error, login) : await exchangeCode(context, req, query.code, login);
    // A browser that has dropped its request never learns of its session.
    const hasLeft = !res.writableEnded && (res.destroyed || res.closed || req.socket.destroyed);
    isGone = hasLeft && outcome.kind === 'success';
  } finally {
    callback.end(isGone ? outcome : undefined);
    noteScopes(context, req, res, query.kind, login, outcome);
    // The user may try again, and still wants to go to the page of this login.
    const isLost = outcome?.kind !== 'success' && login.returnTo !== undefined && !res.headersSent;
    if (isLost) context.returnCookie.remember(req, res, login.returnTo);
  }
  return isGone ? abandoned : outcome;
}

/** Tells the page that a login leads back to which of the scopes that were asked for were not granted: it does not ask again at once. */
function noteScopes(
  { stepUps, settings }: FinishLoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  answer: 'code' | 'error',
  { isStepUp, scope = settings.scope }: PendingLogin,
  outcome: CallbackOutcome | undefined,
): void {
  if (res.headersSent) return;
  const granted = outcome?.kind === 'success' ? (outcome.tokens.scope ?? []) : undefined;
  if (granted !== undefined)
    stepUps.noteRefused(
      req,
      res,
      scopeNames(scope).filter((name) => !granted.includes(name)),
    );
  else if (isStepUp && answer === 'error') stepUps.noteRefused(req, res, scopeNames(scope));
}

/**
 * Returns the refusal of a connection that nobody is logged in for, where the option `grantId` keys grants by the user: the
 * connected account's id may be the id of another user here.
 */
export function refuseOwnerless(
  grants: RequestGrants,
  req: IncomingMessage,
): Extract<CallbackOutcome, { readonly kind: 'fail' }> | undefined {
  return grants.idIsInSession || userOf(req) ? undefined : refused(NOBODY_TO_CONNECT, 403);
}

async function exchangeCode(
  { settings, endpoint, verify, clientOf, warnings }: FinishLoginContext,
  req: IncomingMessage,
  code: string,
  { redirectUri, codeVerifier, returnTo, scope: asked }: PendingLogin,
): Promise<CallbackOutcome> {
  const { name, userProfile, passReqToCallback } = settings;
  const scope = scopeNames(asked ?? settings.scope);
  const received = await endpoint.exchangeCode({ code, redirectUri, codeVerifier, scope });
  const loadMore = userProfile && (() => userProfile(clientOf(fixedSource(received)), received.params));
  const { profile, tokens } = await loadProfile(name, received, loadMore);
  if (verify && !userProfile && profile.id === undefined) warnOfMissingId(warnings);
  const verdict = await callVerify(verify, passReqToCallback ? req : undefined, tokens, profile);
  if (!verdict.user) return { kind: 'fail', reason: 'denied', info: verdict.info };
  refuseUserWithoutId(verdict.user);
  return { kind: 'success', tokens, verdict, returnTo };
}

/**
 * Returns true if the redirect URL of a login led to this request, as far as the request shows.
 *
 * @param own The option `callbackURL` of the callback's route.
 * @param usual The strategy's `callbackURL`. A login with this URL may end at any route: proxies change paths.
 */
function leadsHere(redirectUri: string, req: IncomingMessage, own: string | undefined, usual: string): boolean {
  if (own === undefined && usual === redirectUri) return true;
  if (own !== undefined && ABSOLUTE_URL.test(own)) return own === redirectUri;
  const expected = routedPathOf(redirectUri, req);
  if (own !== undefined) return routedPathOf(own, req) === expected;
  const here = asRouted(originalPath(req));
  // A proxy may have removed the front of the path, or added one.
  return expected.endsWith(here) || here.endsWith(expected);
}

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery =
  | { readonly kind: 'code'; readonly code: string; readonly state: string | undefined }
  | { readonly kind: 'error'; readonly error: string; readonly state: string | undefined }
  | { readonly kind: 'malformed' };

/** Longest value of each parameter of RFC 6749, 4.1.2 and 4.1.2.1 that is read. Descriptions are the sender's words: they are ignored. */
const MAX_LENGTH = { code: 4096, state: 512, error: 2048 } as const;

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A). */
const VISIBLE_ASCII = /^[\x20-\x7e]+$/;

/** Stands for an error that is not visible ASCII: nothing of its text is used. */
const UNREGISTERED_ERROR = 'unregistered_error';

const MALFORMED: CallbackQuery = { kind: 'malformed' };

/** Returns true if a query has a parameter of a callback, well-formed or not. @param url Path and query. */
export function hasCallbackParameters(url: string): boolean {
  for (const name of queryOf(url).keys()) {
    if (Object.hasOwn(MAX_LENGTH, name.split('[', 1)[0] ?? '')) return true;
  }
  return false;
}

/**
 * Reads the query of a callback from the request's URL itself: frameworks turn repeated and bracketed parameters into
 * lists and objects, and Connect parses nothing.
 *
 * @param url Path and query.
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(url: string): CallbackQuery {
  const found: { -readonly [Name in keyof typeof MAX_LENGTH]?: string } = {};
  for (const [name, value] of queryOf(url)) {
    const [stem = ''] = name.split('[', 1);
    const isOurs = Object.hasOwn(MAX_LENGTH, stem);
    // Bracketed forms of our parameters, and whatever reaches for a prototype.
    if (value === '__proto__' || name.includes('__proto__') || (isOurs && stem !== name)) return MALFORMED;
    if (!isOurs) continue;
    const known = name as keyof typeof MAX_LENGTH;
    if (found[known] !== undefined || value === '' || value.length > MAX_LENGTH[known]) return MALFORMED;
    if (VISIBLE_ASCII.test(value)) found[known] = value;
    // Some services send a sentence as the error. NUL and broken UTF-8 are not text.
    else if (known === 'error' && !/[\0\ufffd]/.test(value)) found.error = UNREGISTERED_ERROR;
    else return MALFORMED;
  }
  const { code, error, state } = found;
  if (code !== undefined && error === undefined) return { kind: 'code', code, state };
  if (error !== undefined && code === undefined) return { kind: 'error', error, state };
  return MALFORMED;
}

/** Some services say `consent_required` of a user who declined. After `prompt=none` it says that nobody was asked (OpenID Connect Core, 3.1.2.6). */
function declined(error: string, { isSilent }: PendingLogin): CallbackOutcome {
  if (error === 'access_denied' || (error === 'consent_required' && !isSilent)) {
    return { kind: 'fail', reason: 'declined', info: { message: 'The user declined authorization' } };
  }
  const known = REGISTERED_ERRORS.has(error) ? error : undefined;
  throw new AuthorizationError(
    known
      ? `The authorization endpoint returned the error ${known}.`
      : 'The authorization endpoint returned an error that is not registered.',
    { error: known },
  );
}

/** Returns what to say of a callback in a frame, which most likely has lost the cookie of its login. */
function framed(req: IncomingMessage): string | undefined {
  const cause = isInFrame(req) ? lostCookieCause(req) : undefined;
  return cause && `${replayed.info.message} ${cause}`;
}

function refused(message: string, status: number): Extract<CallbackOutcome, { readonly kind: 'fail' }> {
  return { kind: 'fail', reason: 'refused', info: { message }, status };
}
