import type { IncomingMessage } from 'node:http';
import type { Advice } from '../advice/advice.js';
import type { ApiClient } from '../api/api-client.js';
import type { CredentialSource } from '../api/api-context.js';
import * as check from '../checks.js';
import { AuthorizationError } from '../errors.js';
import type { TokenResponseFields } from '../oauth/claims.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { scopeNames, type TokenSet } from '../oauth/token-response.js';
import { fixedSource } from '../session/credential-sources.js';
import type { PageScopes } from '../session/page-scopes.js';
import type { ReturnCookie } from '../session/return-cookie.js';
import { userIdOf } from '../session/session.js';
import { sentResponseError } from '../session/session-login.js';
import { type CallbackFailure, type CallbackRequest, type CheckedCallback, REPLAYED } from './callback-request.js';
import type { PendingLogin } from './pending-logins.js';
import type { UsedLogins } from './used-logins.js';
import {
  type AnyVerify,
  callVerify,
  mergedProfile,
  profileOf,
  refuseUserWithoutId,
  type Verdict,
  warnOfMissingId,
} from './verify.js';

/** The service has given tokens, and the application has accepted the user. */
export interface FinishedLogin {
  readonly kind: 'success';
  readonly tokens: TokenSet;
  readonly verdict: Verdict;
  readonly returnTo: string | undefined;
}

/** How a callback ends, unless it throws. */
export type CallbackOutcome = CallbackFailure | FinishedLogin;

/** What a login is finished with. */
export interface FinishLoginContext {
  readonly settings: {
    /** Passport's name for the strategy. */
    readonly name: string;
    readonly userProfile: ((client: ApiClient, tokenResponse: TokenResponseFields) => Promise<object>) | undefined;
    readonly passReqToCallback: boolean;
    readonly scope: string;
    readonly declines: Declines | undefined;
  };
  readonly verify: AnyVerify | undefined;
  readonly usedLogins: UsedLogins<CallbackOutcome>;
  readonly endpoint: TokenEndpoint;
  readonly returnCookie: ReturnCookie;
  readonly pageScopes: () => PageScopes | undefined;
  readonly clientOf: (source: CredentialSource) => ApiClient;
  readonly advice: Advice;
}

/** Returns true if an error of a callback means that the user declined. */
type Declines = (answer: { readonly error: string; readonly description: string | undefined }) => boolean;

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
  context: FinishLoginContext,
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
  { pageScopes, returnCookie }: FinishLoginContext,
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
  if (!popup) {
    pageScopes()?.recordRefused(visit, res, refused);
    return;
  }
  popup.noteRefused(refused, outcome?.kind === 'fail');
}

async function exchangeCode(
  { settings, endpoint, verify, clientOf, advice }: FinishLoginContext,
  req: IncomingMessage,
  code: string,
  { redirectUri, codeVerifier, returnTo, data }: PendingLogin,
  scope: readonly string[],
): Promise<CallbackOutcome> {
  const { name, userProfile, passReqToCallback } = settings;
  let tokens = await endpoint.exchangeCode({ code, redirectUri, codeVerifier, scope });
  let profile = profileOf(name, tokens);
  if (userProfile) {
    const more: unknown = await userProfile(clientOf(fixedSource(tokens)), tokens.params);
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
  const info = data === undefined ? verdict.info : { ...infoObject(verdict.info), state: data };
  return { kind: 'success', tokens, verdict: { ...verdict, info }, returnTo };
}

/** Returns what `verify` gave as info, as an object. */
function infoObject(info: unknown): object {
  if (typeof info === 'object' && info !== null) return info;
  return info === undefined ? {} : { message: info };
}

/** Ends a callback with an error. @throws AuthorizationError unless the user declined; ConfigurationError if the application's function throws */
function declined(
  declines: Declines | undefined,
  { error, description }: Extract<CheckedCallback['answer'], { kind: 'error' }>,
  { isSilent }: PendingLogin,
): CallbackOutcome {
  // Some services say `consent_required` of a user who declined. After `prompt=none` it says that the user was not asked
  // (OpenID Connect Core, 3.1.2.6).
  const isDecline = declines
    ? Boolean(
        check.result(
          'declines',
          check.invoke('declines', 'true or false', () => declines({ error, description })),
        ),
      )
    : DECLINED.has(error) || (error === 'consent_required' && !isSilent);
  if (isDecline) return { kind: 'fail', reason: 'declined', info: { message: 'The user declined authorization' } };
  const word = /^[\w.-]{1,64}$/.test(error) ? error : undefined;
  throw new AuthorizationError(
    `The authorization endpoint returned ${word === undefined ? 'an error that is no OAuth error code' : `the error ${word}`}.`,
    { error: word, description },
  );
}
