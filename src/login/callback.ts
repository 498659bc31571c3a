import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { NO_ACCOUNT } from '../advice/loop-guard.js';
import { NotAuthorizedError, publicName } from '../errors.js';
import { loginChannel } from '../events.js';
import { locationOf } from '../session/return-to.js';
import { sessionOf, userIdOf, userOf } from '../session/session.js';
import { reasonOf, SessionLogin } from '../session/session-login.js';
import type { Visit } from '../session/visit.js';

import { type CallbackQuery, type CallbackRequest, type CallbackRoute, checkCallback } from './callback-request.js';
import { finishLogin } from './finish-login.js';
import type { CallbackFailure, FinishedLogin, LoginContext } from './login-context.js';

const OTHER_SESSION: CallbackFailure = {
  kind: 'fail',
  reason: 'refused',
  info: {
    message:
      'The user has logged out, or logged in again, while this account was being connected. Please connect it again.',
  },
  status: 403,
};

/** Answers a request to the callback's route with one of Passport's actions. @throws what is Passport's `error` to report */
export async function handleCallback(
  context: LoginContext,
  actions: PassportActions,
  visit: Visit,
  res: ServerResponse,
  route: CallbackRoute,
  answer: CallbackQuery,
): Promise<void> {
  const { req } = visit;
  const popup = context.popups?.popupOf(req);
  // A popup redirects nowhere, and its frame takes the session by a same-site request.
  context.advice.beforeCallback(visit, route.establishesSession, Boolean(route.page) && !popup);
  const manager = context.grants.managerFor(req);
  const sessionAtStart = route.isConnection ? JSON.stringify({ ...sessionOf(req) }) : undefined;
  const report = loginReport(context.settings.name);
  const request = { visit, res, route, answer, popup, manager, sessionAtStart, report };
  try {
    const checked = checkCallback(context, request);
    const outcome = checked.kind === 'checked' ? await finishLogin(context, request, checked) : checked;
    if (outcome.kind === 'success') await succeed(context, actions, request, outcome);
    else await fail(context, actions, request, outcome);
  } catch (error) {
    report('error', { reason: reasonOf(error) });
    throw error;
  }
}

/** Ends a login that the service and the application have accepted. Its session may still fail. */
async function succeed(
  context: LoginContext,
  actions: PassportActions,
  request: CallbackRequest,
  login: FinishedLogin,
): Promise<void> {
  const { grants, clients, advice } = context;
  const { visit, res, route, popup, manager } = request;
  const { returnTo, tokens, verdict } = login;
  const { loops } = advice;
  // A login that came from a page: if the session is lost on the way, the page sends the browser round again.
  const isCounted = route.establishesSession && (returnTo !== undefined || loops.hasCookie(visit.headers.cookie));
  const isKnown = isCounted && !loops.isBroken(visit) && (await grants.hasGrant(visit.req, manager));
  // Rounds are those of the user's tabs: a popup leads to no page.
  const mayBeRound = isCounted && !isKnown && !popup;
  // A user without an id is another account each time.
  const account = mayBeRound ? (tokens.subject ?? userIdOf(verdict.user) ?? randomUUID()) : undefined;
  if (account !== undefined) await loops.throwIfLooping(visit, res, account, manager);
  const session = route.isConnection
    ? // Loaded on first use: most applications connect no second account.
      await (await import('../accounts/connect-account.js')).connectAccount(context, request, tokens, returnTo)
    : new SessionLogin(request, grants, tokens, verdict.user);
  if (!session) return await fail(context, actions, request, OTHER_SESSION);
  if (!route.isConnection) {
    popup?.admit(session.grantId);
    const grant = await session.store();
    session.hookLogIn(returnTo);
    session.source = clients.switchTo(visit.req, manager, session.grantId, grant);
  }
  if (isKnown) loops.reset(visit, res);
  advice.afterLogin(session.grantId);
  const grantId = grants.idIsInSession ? session.grantId : '';
  if (account !== undefined && returnTo !== undefined) loops.count(visit, res, account, grantId, manager);
  try {
    await actions.success(verdict.user, verdict.info);
  } finally {
    session.reportUnwritten();
  }
}

/** Ends a callback that neither logs in nor is an error. */
async function fail(
  context: LoginContext,
  actions: PassportActions,
  request: CallbackRequest,
  { reason, info, status }: CallbackFailure,
): Promise<void> {
  const { loops } = context.advice;
  const { visit, res, route, popup, manager, report } = request;
  const page = reason === 'replayed' ? await pageOfLoggedIn(context, request) : undefined;
  const canLoop = page === undefined && reason !== 'foreign' && !popup;
  if (canLoop && loops.redirectsToLogin(route.failureRedirect)) {
    await loops.throwIfLooping(visit, res, NO_ACCOUNT, manager);
    loops.count(visit, res, NO_ACCOUNT, '', manager);
  }
  // Events know one reason for a state that is wrong, unknown or used up.
  const published = reason === 'replayed' || reason === 'foreign' ? 'refused' : reason;
  report(reason === 'declined' ? 'declined' : 'refused', { reason: published });
  if (page === undefined) actions.fail(info, status);
  else actions.redirect(locationOf(page));
}

/**
 * Returns the page that the callback's route names, if the user is logged in with this strategy already: for the back
 * button, a reload, and a bookmarked callback.
 */
async function pageOfLoggedIn(
  { grants }: LoginContext,
  { visit: { req }, route, manager }: CallbackRequest,
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

/** What Passport lets a strategy do with a request: exactly one of them. */
export interface PassportActions {
  /** Returns what a callback given to `passport.authenticate` returns: a promise, if that is an async function. */
  success(user: unknown, info?: unknown): unknown;
  fail(info?: unknown, status?: number): unknown;
  redirect(url: string, status?: number): void;
  /** Returns like `success`. */
  error(error: unknown): unknown;
}

/** Returns a function that publishes how a login ended: the first call counts. */
function loginReport(strategy: string): CallbackRequest['report'] {
  const since = performance.now();
  let isPublished = false;
  return (outcome, details) => {
    const isLate = isPublished;
    isPublished = true;
    if (isLate || !loginChannel.hasSubscribers) return;
    loginChannel.publish({ ...publicName(strategy), outcome, durationMs: performance.now() - since, ...details });
  };
}
