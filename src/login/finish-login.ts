import type { IncomingMessage } from 'node:http';
import * as check from '../checks.js';
import { AuthorizationError } from '../errors.js';
import { scopeNames } from '../oauth/token-response.js';
import type { Settings } from '../options.js';
import { userIdOf } from '../session/session.js';
import { sentResponseError } from '../session/session-login.js';
import { type CallbackRequest, type CheckedCallback, REPLAYED } from './callback-request.js';
import type { CallbackFailure, CallbackOutcome, LoginContext } from './login-context.js';
import type { PendingLogin } from './pending-logins.js';
import { callVerify, mergedProfile, profileOf, refuseUserWithoutId, warnOfMissingId } from './verify.js';

const ABANDONED: CallbackFailure = {
  kind: 'fail',
  reason: 'abandoned',
  info: { message: 'The browser has dropped its request before the login ended.' },
  status: 499,
};

/** What services say of a user who declined: RFC 6749, 4.1.2.1, and LinkedIn. */
const DECLINED: ReadonlySet<string> = new Set(['access_denied', 'user_cancelled_login', 'user_cancelled_authorize']);

/**
 * Finishes the login of a checked callback, once: calls for the tokens, then the application's `userProfile` and `verify`.
 *
 * A second callback of the login waits for the first one. If the browser has dropped that (a reload of the page), the next one
 * that still waits gets its outcome, since the session belongs to whoever is still there.
 *
 * @throws AuthorizationError, TokenError, TokenResponseError, ServiceUnavailableError, TokenStoreError, or what `userProfile`
 *   and `verify` throw
 * @see service.md, 4.1 and 4.2; RFC 6749, 4.1.2
 */
export async function finishLogin(
  context: LoginContext,
  request: CallbackRequest,
  { state, login, answer }: CheckedCallback,
): Promise<CallbackOutcome> {
  const { settings, usedLogins } = context;
  const { visit, res, manager } = request;
  const { callback, isFirst } = await usedLogins.use(state, login.expiresAt, manager.access);
  if (!isFirst) {
    const dropped = await callback.takeOver(() => !res.headersSent && !hasLeft(request));
    if (dropped) res.appendHeader('Set-Cookie', login.endCookie);
    return dropped ?? REPLAYED;
  }
  const scope = scopeNames(login.scope ?? settings.scope);
  let outcome: CallbackOutcome | undefined;
  let isDropped = false;
  try {
    // The token store may have been slow: no code is spent if the response has been sent by now.
    const sent = sentResponseError(res);
    if (sent) throw sent;
    res.appendHeader('Set-Cookie', login.endCookie);
    outcome =
      answer.kind === 'error'
        ? declined(settings.declines, answer, login)
        : await exchangeCode(context, visit.req, answer.code, login, scope);
    // A browser that has dropped its request never learns of its session.
    isDropped = outcome.kind === 'success' && hasLeft(request);
    return isDropped ? ABANDONED : outcome;
  } finally {
    usedLogins.end(state, callback, isDropped ? outcome : undefined);
    if (!res.headersSent) saveOutcomeForPage(context, request, answer.kind, login, scope, outcome);
  }
}

/** Returns true if the browser has dropped its request before an answer. */
function hasLeft({ visit, res }: CallbackRequest): boolean {
  return !res.writableEnded && (res.destroyed || res.closed || visit.req.socket.destroyed);
}

/**
 * Records, for the page that started the login, the scopes that were not granted, so that it does not ask again at once, and
 * where the user wants to go. A popup records them for its frame, and not for the user's tabs.
 */
function saveOutcomeForPage(
  { pageScopes, returnCookie }: LoginContext,
  { visit, res, popup }: CallbackRequest,
  answer: 'code' | 'error',
  { isStepUp, returnTo, frame }: PendingLogin,
  scope: readonly string[],
  outcome: CallbackOutcome | undefined,
): void {
  // The user may try again, and still wants to go to the page of this login. A popup has none.
  if (outcome?.kind !== 'success' && returnTo !== undefined && !frame) returnCookie.remember(visit, res, returnTo);
  const granted = outcome?.kind === 'success' ? (outcome.tokens.scope ?? []) : undefined;
  if (!granted && !(isStepUp && answer === 'error')) return;
  const refused = scope.filter((name) => !granted?.includes(name));
  if (popup) popup.noteRefused(refused, outcome?.kind === 'fail');
  else pageScopes()?.recordRefused(visit, res, refused);
}

async function exchangeCode(
  { settings, endpoint, verify, clientOf, advice }: LoginContext,
  req: IncomingMessage,
  code: string,
  { redirectUri, codeVerifier, returnTo, data }: PendingLogin,
  scope: readonly string[],
): Promise<CallbackOutcome> {
  const { name, userProfile, passReqToCallback } = settings;
  let tokens = await endpoint.exchangeCode({ code, redirectUri, codeVerifier, scope });
  let profile = profileOf(name, tokens);
  if (userProfile) {
    // These tokens are not stored yet, and cannot be refreshed.
    const { organizationDomain, enterpriseUrl, scope: granted } = tokens;
    const known = { grantId: undefined, authorized: true, organizationDomain, enterpriseUrl, scope: granted };
    const credential = tokens;
    const more: unknown = await userProfile(clientOf({ ...known, credential: () => credential }), tokens.params);
    profile = mergedProfile(profile, more);
    // Of opaque tokens, the profile alone names the user.
    tokens = { ...tokens, subject: userIdOf({ id: profile.id }) };
  } else if (verify && profile.id === undefined) warnOfMissingId(advice);
  // As passport-oauth2 hands it on, for `verify` with passReqToCallback.
  if (data !== undefined) Reflect.set(req, 'authInfo', { state: data });
  const verdict = verify
    ? await callVerify(verify, passReqToCallback ? req : undefined, tokens, profile)
    : { user: profile, info: undefined };
  if (!verdict.user) return { kind: 'fail', reason: 'denied', info: verdict.info };
  refuseUserWithoutId(verdict.user);
  if (data === undefined) return { kind: 'success', tokens, verdict, returnTo };
  const { user, info } = verdict;
  const isObject = typeof info === 'object' && info !== null;
  const infoObject = isObject || info === undefined ? info : { message: info };
  return { kind: 'success', tokens, verdict: { user, info: { ...infoObject, state: data } }, returnTo };
}

/** Ends a callback with an error. @throws AuthorizationError unless the user declined; ConfigurationError if the application's function throws */
function declined(
  declines: Settings['declines'],
  { error, description }: Extract<CheckedCallback['answer'], { kind: 'error' }>,
  { isSilent }: PendingLogin,
): CallbackOutcome {
  // Some services say `consent_required` of a user who declined. After `prompt=none` it says that the user was not asked
  // (OpenID Connect Core, 3.1.2.6).
  const isDecline = declines
    ? Boolean(check.invoke('declines', 'true or false', () => declines({ error, description })))
    : DECLINED.has(error) || (error === 'consent_required' && !isSilent);
  if (isDecline) return { kind: 'fail', reason: 'declined', info: { message: 'The user declined authorization' } };
  const word = /^[\w.-]{1,64}$/.test(error) ? error : undefined;
  throw new AuthorizationError(
    `The authorization endpoint returned ${word === undefined ? 'an error that is no OAuth error code' : `the error ${word}`}.`,
    { error: word, description },
  );
}
