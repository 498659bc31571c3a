import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type LoginRounds, NO_ACCOUNT } from '../advice/login-rounds.js';
import { NotAuthorizedError } from '../errors.js';
import { connectAccount } from '../session/connect-account.js';
import { locationOf, userIdOf, userOf } from '../session/incoming-request.js';
import { refuseStrictSession, sessionContent } from '../session/session.js';
import {
  type CallbackFailure,
  type CallbackRequest,
  type CallbackRoute,
  type CheckCallbackContext,
  checkCallback,
} from './callback-request.js';
import { type EstablishSessionContext, establishSession } from './establish-session.js';
import { type FinishedLogin, type FinishLoginContext, finishLogin } from './finish-login.js';
import { LoginReport } from './login-report.js';
import type { PassportActions } from './passport-actions.js';
import type { Popups } from './popups.js';

/** What callbacks need of their strategy. */
export interface CallbackContext extends CheckCallbackContext, FinishLoginContext, EstablishSessionContext {
  readonly settings: CheckCallbackContext['settings'] & FinishLoginContext['settings'];
  readonly rounds: LoginRounds;
  /** `undefined` for applications without frames. */
  readonly popups: Popups | undefined;
}

/**
 * Answers a request to the callback's route: checks it, finishes its login once, establishes the session of the user, and ends
 * with one of Passport's actions.
 *
 * @throws what is Passport's `error` to report
 */
export async function handleCallback(
  context: CallbackContext,
  actions: PassportActions,
  req: IncomingMessage,
  res: ServerResponse,
  route: CallbackRoute,
): Promise<void> {
  const manager = context.grants.requireSessionAndStore(req, route.establishesSession);
  const popup = context.popups?.popupOf(req);
  // A popup redirects nowhere, and its frame takes the session by a request of its own site.
  if (route.establishesSession && route.page && !popup) refuseStrictSession(req);
  const sessionAtStart = route.isConnection ? sessionContent(req) : new Map<string, string>();
  const report = new LoginReport(context.settings.name);
  const request = { req, res, route, popup, manager, sessionAtStart, report };
  try {
    const checked = checkCallback(context, request);
    const outcome = checked.kind === 'checked' ? await finishLogin(context, request, checked) : checked;
    if (outcome.kind === 'success') await succeed(context, actions, request, outcome);
    else await fail(context, actions, request, outcome);
  } catch (error) {
    report.publishError(error);
    throw error;
  }
}

/** Ends a login that the service and the application have accepted. Its session may still fail. */
async function succeed(
  context: CallbackContext,
  actions: PassportActions,
  request: CallbackRequest,
  login: FinishedLogin,
): Promise<void> {
  const { grants, rounds } = context;
  const { req, res, route, popup, manager } = request;
  const { returnTo, tokens, verdict } = login;
  // A login that came from a page: if the session is lost on the way, the page sends the browser round again.
  const isCounted = route.establishesSession && (returnTo !== undefined || rounds.isIn(req));
  const isKnown = isCounted && !rounds.hasLost(req) && (await grants.hasGrant(req, manager));
  // Rounds are those of the user's tabs: a popup leads to no page.
  const mayBeRound = isCounted && !isKnown && !popup;
  // A user whom nothing identifies is another account each time.
  const account = mayBeRound ? (tokens.subject ?? userIdOf(verdict.user) ?? randomUUID()) : undefined;
  if (account !== undefined) await rounds.refuseLoop(req, res, account, manager);
  const handoff = await (route.isConnection ? connectAccount : establishSession)(context, request, login);
  if ('kind' in handoff) return await fail(context, actions, request, handoff);
  if (isKnown) rounds.reset(req, res);
  const grantId = grants.idIsInSession ? handoff.grantId : '';
  if (account !== undefined && returnTo !== undefined) rounds.count(req, res, account, grantId, manager);
  try {
    await actions.success(verdict.user, verdict.info);
  } finally {
    handoff.reportUnwritten();
  }
}

/** Ends a callback that logs nobody in, and is no error. */
async function fail(
  context: CallbackContext,
  actions: PassportActions,
  request: CallbackRequest,
  { reason, info, status }: CallbackFailure,
): Promise<void> {
  const { rounds } = context;
  const { req, res, route, popup, manager, report } = request;
  const page = reason === 'replayed' ? await pageOfLoggedIn(context, request) : undefined;
  const mayLeadBack = page === undefined && reason !== 'foreign' && !popup;
  const leadsBack = mayLeadBack && rounds.leadsToLogin(route.failureRedirect);
  if (leadsBack) {
    await rounds.refuseLoop(req, res, NO_ACCOUNT, manager);
    rounds.count(req, res, NO_ACCOUNT, '', manager);
  }
  // Events know one reason for a state that is wrong, unknown or used up.
  const published = reason === 'replayed' || reason === 'foreign' ? 'refused' : reason;
  report.publish(reason === 'declined' ? 'declined' : 'refused', { reason: published });
  if (page === undefined) actions.fail(info, status);
  else actions.redirect(locationOf(page));
}

/**
 * Returns the page that the callback's route names, if the user is logged in with this strategy already: for the back
 * button, a reload, and a bookmarked callback.
 */
async function pageOfLoggedIn(
  { grants }: CallbackContext,
  { req, route, manager }: CallbackRequest,
): Promise<string | undefined> {
  const { page, isConnection } = route;
  const grantId = grants.idOf(req);
  if (typeof page !== 'string' || grantId === undefined || (!isConnection && !userOf(req))) return undefined;
  try {
    await manager.current(grantId);
  } catch (error) {
    // An outage of service or store ends no login.
    if (error instanceof NotAuthorizedError) return undefined;
  }
  return page;
}
