import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createApiClient } from '../api/api-client.js';
import * as check from '../checks.js';
import { AuthorizationError, ConfigurationError, NotAuthorizedError, publicName } from '../errors.js';
import { loginChannel } from '../events.js';
import { scopeNames } from '../oauth/token-response.js';
import type { Settings } from '../options.js';
import { locationOf } from '../session/return-to.js';
import { sessionOf, userIdOf, userOf } from '../session/session.js';
import { reasonOf, SessionLogin, type SessionLoginRequest, sentResponseError } from '../session/session-login.js';
import { asRouted, isPrefetch, type Visit } from '../session/visit.js';
import { ABSOLUTE_URL, routedPathOf } from './begin-login.js';
import type {
  CallbackAnswer,
  CallbackFailure,
  CallbackOutcome,
  CallbackQuery,
  FinishedLogin,
  LoginContext,
  Popup,
  RouteRequest,
} from './login-context.js';
import type { PendingLogin } from './pending-logins.js';
import { callVerify, mergedProfile, profileOf, WHERE_IDS_COME_FROM } from './verify.js';

/** A request to the route of a callback. */
interface CallbackRequest extends RouteRequest, SessionLoginRequest {
  readonly query: CallbackQuery;
  readonly popup: Popup | undefined;
  /** True if Passport logs the user in with a session. */
  readonly logsIn: boolean;
  /** Where the user goes after the login, unless that came from a page. */
  readonly page: unknown;
  /** For a connection: the session when the callback began, as JSON. */
  readonly sessionAtStart: string | undefined;
}

/** A callback of a login that this browser began, and that may finish at this route. */
interface CheckedCallback {
  readonly kind: 'checked';
  readonly login: PendingLogin;
  readonly answer: CallbackAnswer;
}

/** Answers a callback with one of Passport's actions. @throws what Passport's `error` is to report */
export async function handleCallback(
  context: LoginContext,
  routeRequest: RouteRequest,
  query: CallbackQuery,
): Promise<void> {
  const { managers, popups, settings } = context.runtime;
  const { visit, options } = routeRequest;
  const popup = popups?.get(visit.req);
  const isConnection = Boolean(options.assignProperty);
  const logsIn = options.session !== false && !isConnection;
  const page = options.successReturnToOrRedirect || options.successRedirect;
  // A popup does not redirect, and its frame fetches the session by a same-site request.
  context.advice.checkRoute(visit, options, { logsIn, redirects: Boolean(page) && !popup });
  const manager = managers.for(visit.req);
  const sessionAtStart = isConnection ? JSON.stringify({ ...sessionOf(visit.req) }) : undefined;
  const startedAt = performance.now();
  let isReported = false;
  const report: CallbackRequest['report'] = (outcome, details) => {
    const durationMs = performance.now() - startedAt;
    if (!isReported && loginChannel.hasSubscribers)
      loginChannel.publish({ ...publicName(settings.name), outcome, durationMs, ...details });
    isReported = true;
  };
  const request = { ...routeRequest, query, popup, isConnection, logsIn, page, manager, sessionAtStart, report };
  try {
    const checked = await checkCallback(context, request);
    const outcome = checked.kind === 'checked' ? await finishLogin(context, request, checked) : checked;
    if (outcome.kind === 'success') await succeed(context, request, outcome);
    else await fail(context, request, outcome);
  } catch (error) {
    report('error', { reason: reasonOf(error) });
    throw error;
  }
}

const UNKNOWN_LOGIN =
  'This login was not begun in this browser, has been finished already, or is older than ten minutes. Please log in again.';

/** The failure of a callback whose login is unknown or used. */
const REPLAYED = failure('replayed', UNKNOWN_LOGIN, 403);

const ABANDONED = failure('abandoned', 'The browser dropped its request before the login finished.', 499);

const OTHER_ISSUER =
  'This login comes from an authorization server other than the one in the option issuer, or from one that sends no iss. Please log in again.';

const CONNECTION_AS_LOGIN = 'This request connects an account, and is no login. Please log in.';

/**
 * Checks a callback, the cheapest checks first. Changes nothing: another callback can still finish a login that is refused here.
 *
 * @see service.md, 4.1; RFC 6749, 4.1.2
 */
async function checkCallback(
  { runtime: { settings, grants }, pendingLogins, advice }: LoginContext,
  { visit, res, callbackURL, isConnection, popup, query }: CallbackRequest,
): Promise<CheckedCallback | CallbackFailure> {
  const { req, headers } = visit;
  // The service redirects, so a callback is a GET.
  if (req.method !== 'GET') {
    res.setHeader('Allow', 'GET');
    return failure('refused', 'The callback takes GET requests.', 405);
  }
  if (isPrefetch(headers)) {
    throw new AuthorizationError('A callback must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  if (query.kind === 'malformed') return failure('refused', 'The parameters of the callback are malformed.', 400);
  const { state } = query;
  const login = state === undefined ? undefined : pendingLogins.find(visit, state);
  // A login with the route's own URL may end at any path: proxies change paths.
  const isSameUrl = login?.redirectUri === (callbackURL ?? settings.callbackURL);
  if (state === undefined || !login || !(isSameUrl || matchesRoute(login, visit, callbackURL))) {
    // passport.authenticate tries several strategies in turn: the next one has the login.
    if (state !== undefined && pendingLogins.isOtherStrategys(visit, state)) return { ...REPLAYED, reason: 'foreign' };
    return { ...REPLAYED, info: { message: advice.explainUnknownLogin(visit, state, UNKNOWN_LOGIN) } };
  }
  if (login.frame && !popup) {
    const order =
      'embedded(strategy, …) is mounted after the callback route: mount it after the session, and before apiClient(strategy) and the routes.';
    throw new ConfigurationError(order, { code: 'ERR_MIDDLEWARE_ORDER' });
  }
  // Simple string comparison (RFC 9207, 2.4).
  if (settings.issuer !== undefined && query.issuer !== settings.issuer) return failure('refused', OTHER_ISSUER, 403);
  if (login.isConnection && !isConnection) return failure('refused', CONNECTION_AS_LOGIN, 403);
  if (isConnection) {
    const { connectionRefusal } = await import('../accounts/connect-account.js');
    const refusal = connectionRefusal(grants, req, login.userMark);
    if (refusal !== undefined) return failure('refused', refusal, 403);
  }
  return { kind: 'checked', login, answer: query };
}

function failure(reason: CallbackFailure['reason'], message: string, status?: number): CallbackFailure {
  return { kind: 'fail', reason, info: { message }, status };
}

/** Returns true if a redirect URL other than the route's `callbackURL` leads to the route, as far as its path shows. */
function matchesRoute({ redirectUri }: PendingLogin, { path }: Visit, own: string | undefined): boolean {
  if (own !== undefined && ABSOLUTE_URL.test(own)) return false;
  const expected = routedPathOf(redirectUri, path);
  if (own !== undefined) return routedPathOf(own, path) === expected;
  const here = asRouted(path);
  // A proxy may have removed the front of the path, or added one.
  return expected.endsWith(here) || here.endsWith(expected);
}

/**
 * Finishes the login of a checked callback, once. If the browser drops the request (a reload of the page), the next callback
 * of the login gets its outcome, since the session belongs to the request that is still there.
 */
async function finishLogin(
  context: LoginContext,
  request: CallbackRequest,
  checked: CheckedCallback,
): Promise<CallbackOutcome> {
  const { login, answer } = checked;
  const { visit, res, manager } = request;
  const hasLeft = () => !res.writableEnded && (res.destroyed || res.closed || visit.req.socket.destroyed);
  const finish = async (leave: (outcome: CallbackOutcome) => void): Promise<CallbackOutcome> => {
    // The token store may have been slow: no code is spent if the response has been sent by now.
    const sent = sentResponseError(res);
    if (sent) throw sent;
    res.appendHeader('Set-Cookie', login.endCookie);
    const scope = scopeNames(login.scope ?? context.runtime.settings.scope);
    let outcome: CallbackOutcome | undefined;
    try {
      outcome =
        answer.kind === 'error'
          ? declined(context.runtime.settings.declines, answer, login)
          : await redeemCode(context, visit.req, answer.code, login, scope);
    } finally {
      if (!res.headersSent) saveForPage(context, request, checked, scope, outcome);
    }
    if (outcome.kind !== 'success' || !hasLeft()) return outcome;
    leave(outcome);
    return ABANDONED;
  };
  const resume = () => {
    if (res.headersSent || hasLeft()) return false;
    res.appendHeader('Set-Cookie', login.endCookie);
    return true;
  };
  return (await context.usedLogins.use(login, manager.access, finish, resume)) ?? REPLAYED;
}

/**
 * Records, for the page that started the login, the scopes that were not granted, so that it does not ask again at once, and
 * where the user wants to go. A popup records them for its frame, and not for the user's tabs.
 */
function saveForPage(
  { runtime: { pageScopes, returnCookie } }: LoginContext,
  { visit, res, popup }: CallbackRequest,
  { login: { isStepUp, returnTo, frame }, answer }: CheckedCallback,
  scope: readonly string[],
  outcome: CallbackOutcome | undefined,
): void {
  const granted = outcome?.kind === 'success' ? (outcome.tokens.scope ?? []) : undefined;
  // The user may try again, and still wants to go to the page of this login. A popup has none.
  if (!granted && returnTo !== undefined && !frame) returnCookie.remember(visit, res, returnTo);
  const pages = pageScopes();
  if ((!popup && !pages) || (!granted && !(isStepUp && answer.kind === 'error'))) return;
  const missing = scope.filter((name) => !granted?.includes(name));
  if (popup) popup.noteRefused(missing, outcome?.kind === 'fail');
  else pages?.recordRefused(visit, res, missing);
}

/** Redeems a code, and asks the application for its user: by `userProfile`, then `verify`. @see service.md, 4.2 */
async function redeemCode(
  { runtime, advice }: LoginContext,
  req: IncomingMessage,
  code: string,
  login: PendingLogin,
  scope: readonly string[],
): Promise<CallbackOutcome> {
  const { settings, endpoint, verify, api } = runtime;
  const { name, userProfile, passReqToCallback } = settings;
  const { redirectUri, codeVerifier, data } = login;
  let tokens = await endpoint.exchangeCode({ code, redirectUri, codeVerifier, scope });
  let profile = profileOf(name, tokens);
  if (userProfile) {
    // These tokens are not stored yet, and cannot be refreshed.
    const { organizationDomain, enterpriseUrl, scope: granted } = tokens;
    const known = { grantId: undefined, authorized: true, organizationDomain, enterpriseUrl, scope: granted };
    const credential = tokens;
    const client = createApiClient({ ...known, credential: () => credential }, api);
    const more: unknown = await userProfile(client, tokens.params);
    profile = mergedProfile(profile, more);
    // If the tokens are opaque, only the profile names the user.
    tokens = { ...tokens, subject: userIdOf({ id: profile.id }) };
  } else if (verify && profile.id === undefined) {
    const message = `verify got a profile without an id: a user looked up by it could be any user. ${WHERE_IDS_COME_FROM}`;
    advice.warnOnce('ERR_NO_PROFILE_ID', message);
  }
  // Where passport-oauth2 puts it, for `verify` with passReqToCallback.
  if (data !== undefined) Reflect.set(req, 'authInfo', { state: data });
  const { user, info } = verify
    ? await callVerify(verify, passReqToCallback ? req : undefined, tokens, profile)
    : { user: profile, info: undefined };
  if (!user) return { kind: 'fail', reason: 'denied', info };
  // Most often from `{ id: profile.id }`. Users without the property, or with another key, pass.
  if (typeof user === 'object' && 'id' in user && userIdOf(user) === undefined) {
    throw new ConfigurationError(
      `verify: expected a user with an id, got one whose id is ${check.kindOf(user.id)}: all users would share one identity. ${WHERE_IDS_COME_FROM}`,
      { option: 'verify' },
    );
  }
  if (data === undefined) return { kind: 'success', login, tokens, user, info };
  const isObject = typeof info === 'object' && info !== null;
  const infoObject = isObject || info === undefined ? info : { message: info };
  return { kind: 'success', login, tokens, user, info: { ...infoObject, state: data } };
}

/** What services say if the user declined: RFC 6749, 4.1.2.1, and LinkedIn. */
const DECLINED: ReadonlySet<string> = new Set(['access_denied', 'user_cancelled_login', 'user_cancelled_authorize']);

/** Returns the failure of a callback whose user declined. @throws AuthorizationError for any other error */
function declined(
  declines: Settings['declines'],
  { error, description }: Extract<CallbackAnswer, { kind: 'error' }>,
  { isSilent }: PendingLogin,
): CallbackOutcome {
  // Some services send `consent_required` if the user declined. After `prompt=none` it means that the user was not asked
  // (OpenID Connect Core, 3.1.2.6).
  const isDecline = declines
    ? Boolean(check.invoke('declines', 'true or false', () => declines({ error, description })))
    : DECLINED.has(error) || (error === 'consent_required' && !isSilent);
  if (isDecline) return failure('declined', 'The user declined authorization');
  const word = /^[\w.-]{1,64}$/.test(error) ? error : undefined;
  throw new AuthorizationError(
    `The authorization endpoint returned ${word === undefined ? 'an error that is no OAuth error code' : `the error ${word}`}.`,
    { error: word, description },
  );
}

const OTHER_SESSION =
  'The user has logged out, or logged in again, while this account was being connected. Please connect it again.';

/** Stores the grant of a login that the service and the application accepted. Its session may still fail. */
async function succeed(
  context: LoginContext,
  request: CallbackRequest,
  { login, tokens, user, info }: FinishedLogin,
): Promise<void> {
  const { runtime, advice, loops } = context;
  const { grants, clients, returns } = runtime;
  const { actions, visit, res, isConnection, logsIn, popup, manager } = request;
  const { returnTo } = login;
  // A login that a page started: if its session is lost, the page sends the browser round again.
  const isCounted = logsIn && (returnTo !== undefined || visit.cookieHeader.includes(returns.cookieName));
  const isKnown = isCounted && !loops.isBroken(visit) && (await grants.hasGrant(visit.req, manager));
  // A popup leads to no page. A user without an id is another account each time.
  const isRound = isCounted && !isKnown && !popup;
  const account = isRound ? (tokens.subject ?? userIdOf(user) ?? randomUUID()) : undefined;
  if (account !== undefined) await loops.throwIfLooping(visit, res, account, manager);
  const session = isConnection
    ? // Loaded on first use: most applications connect no second account.
      await (await import('../accounts/connect-account.js')).connectAccount(runtime, request, tokens, returnTo)
    : new SessionLogin(request, grants, tokens, user);
  if (!session) return await fail(context, request, failure('refused', OTHER_SESSION, 403));
  if (!isConnection) {
    popup?.admit(session.grantId);
    const grant = await session.store();
    session.hookLogIn(returnTo);
    session.source = clients.switchTo(visit.req, manager, session.grantId, grant);
  }
  if (isKnown) returns.reset(visit, res);
  advice.afterLogin(login.state, session.grantId);
  const grantId = grants.idIsInSession ? session.grantId : '';
  if (account !== undefined && returnTo !== undefined) loops.count(visit, res, account, grantId, manager);
  try {
    await actions.success(user, info);
  } finally {
    session.afterAction();
  }
}

/** Ends a callback that neither logs in nor is an error. */
async function fail(
  context: LoginContext,
  request: CallbackRequest,
  { reason, info, status }: CallbackFailure,
): Promise<void> {
  const { loops } = context;
  const { actions, visit, res, options, popup, report } = request;
  const page = reason === 'replayed' ? await pageOfLoggedIn(context, request) : undefined;
  const canLoop = page === undefined && reason !== 'foreign' && !popup;
  if (canLoop && loops.redirectsToLogin(options.failureRedirect)) loops.countFailure(visit, res);
  // Events have one reason for a state that is wrong, unknown or used.
  const published = reason === 'replayed' || reason === 'foreign' ? 'refused' : reason;
  report(reason === 'declined' ? 'declined' : 'refused', { reason: published });
  if (page === undefined) actions.fail(info, status);
  else actions.redirect(locationOf(page));
}

/** Returns the route's page if the user is logged in with this strategy: for the back button, a reload, a bookmarked callback. */
async function pageOfLoggedIn(
  { runtime: { grants } }: LoginContext,
  { visit: { req }, isConnection, page, manager }: CallbackRequest,
): Promise<string | undefined> {
  const grantId = grants.idOf(req);
  if (typeof page !== 'string' || grantId === undefined || (!isConnection && !userOf(req))) return undefined;
  try {
    await manager.current(grantId);
  } catch (error) {
    // An outage of the service or the store does not log users out.
    if (error instanceof NotAuthorizedError) return undefined;
  }
  return page;
}
