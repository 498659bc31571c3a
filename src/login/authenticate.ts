import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { AuthorizationError, NotAuthorizedError, ofStrategy } from '../errors.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import {
  asRouted,
  isOfScript,
  isPrefetch,
  originalUrl,
  pathOf,
  redirect,
  routedPathOf,
  userIdOf,
  userOf,
} from '../request/incoming-request.js';
import { type LoginRounds, NO_ACCOUNT } from '../request/login-rounds.js';
import {
  refuseStrictSession,
  refuseUnpartitionedSession,
  refuseUnsetSession,
  sessionContent,
} from '../request/session.js';
import { type BeginLoginContext, beginLogin, type LoginOptions } from './begin-login.js';
import { type EstablishSessionContext, establishSession, type SessionOptions } from './establish-session.js';
import {
  type CallbackOutcome,
  type FinishLoginContext,
  finishLogin,
  hasCallbackParameters,
  refuseOwnerless,
} from './finish-login.js';
import { GrantHandoff, LoginReport } from './grant-handoff.js';

/** What Passport lets a strategy do with a request: exactly one of them. */
export interface PassportActions {
  /** Returns what a callback given to `passport.authenticate` returns: a promise, if that is an async function. */
  success(user: unknown, info?: unknown): unknown;
  fail(info?: unknown, status?: number): unknown;
  redirect(url: string, status?: number): void;
  /** Returns like `success`. */
  error(error: unknown): unknown;
}

/** Options of `passport.authenticate` and `passport.authorize` that the strategy uses. */
export interface AuthenticateOptions extends LoginOptions, SessionOptions {
  readonly successRedirect?: unknown;
  readonly successReturnToOrRedirect?: unknown;
  readonly failureRedirect?: unknown;
}

/** What logins need of their strategy. */
export interface LoginContext extends BeginLoginContext, FinishLoginContext, EstablishSessionContext {
  readonly settings: BeginLoginContext['settings'] & FinishLoginContext['settings'];
  /** Routed path of the strategy's `callbackURL`; `undefined` if it depends on the request. */
  readonly callbackPath: string | undefined;
  readonly rounds: LoginRounds;
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
  options: AuthenticateOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    res = context.clients.responseOf(req);
    // The URL of a callback holds the code, and the URL of a login may hold private parts of a page's address.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    for (const name of Object.keys(options)) {
      if (!READ_OPTIONS.has(name)) warnOfIgnored(name, options, context.warnings);
    }
    const own = options.callbackURL === undefined ? undefined : check.callbackUrl('callbackURL', options.callbackURL);
    const usual = context.settings.callbackURL;
    // A callback is known by its path, whose front a proxy may have stripped, or by its parameters.
    const url = originalUrl(req);
    const here = asRouted(pathOf(url));
    const expected = (own === undefined ? context.callbackPath : undefined) ?? routedPathOf(own ?? usual, req);
    // A route that leads on after the login is no login route, whose path may end like that of the callback.
    const leadsOn = Boolean(options.successRedirect ?? options.successReturnToOrRedirect ?? options.failureRedirect);
    const isThere = here === expected || (leadsOn && here !== '' && expected.endsWith(here));
    const isCallback = isThere || (url.includes('?') && hasCallbackParameters(url));
    if (isCallback) await handleCallback(context, actions, req, res, own, options);
    else await handleLogin(context, actions, req, res, own ?? usual, options);
  } catch (error) {
    await passOn(ofStrategy(error, context.settings.name), actions, res);
  }
}

const BY_SCRIPT =
  'A script cannot follow the redirect to the service. Begin the login with a link to this route, or with location.assign().';

async function handleLogin(
  context: LoginContext,
  actions: PassportActions,
  req: IncomingMessage,
  res: ServerResponse,
  callbackURL: string,
  options: AuthenticateOptions,
): Promise<void> {
  const { grants, clients, rounds } = context;
  // The options of the callback's route are not known here.
  grants.requireSessionAndStore(req, false);
  clients.requireOrder(req);
  if (grants.idIsInSession) refuseUnsetSession(req);
  refuseUnpartitionedSession(req);
  if (isPrefetch(req) && !isOfScript(req)) {
    throw new AuthorizationError('A login must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  // Not an error: Turbo shows the page of one, and loads the page anew after an answer without a type.
  if (isOfScript(req)) {
    actions.fail({ message: BY_SCRIPT }, 403);
    return;
  }
  const ownerless = options.assignProperty ? refuseOwnerless(grants, req) : undefined;
  if (ownerless) {
    actions.fail(ownerless.info, ownerless.status);
    return;
  }
  rounds.rememberRoute(req);
  const location = beginLogin(context, req, res, callbackURL, options);
  if (location === undefined) actions.fail({ message: 'The request names no host to return to after the login.' }, 400);
  else actions.redirect(location);
}

/** Throws if the browser has made too many rounds: each ended with no session, or with one whose grant was not found. */
async function refuseLoop(
  { rounds }: LoginContext,
  manager: GrantManager,
  req: IncomingMessage,
  res: ServerResponse,
  account: string,
): Promise<void> {
  const loop = rounds.loopOf(req, account);
  if (!loop) return;
  rounds.reset(req, res);
  if (loop.grantId !== undefined) await manager.discard(loop.grantId);
  throw loop.error;
}

/** Returns a text that identifies the account of a login. One that nothing identifies is another one each time. */
function accountOf({ tokens, verdict }: Extract<CallbackOutcome, { readonly kind: 'success' }>): string {
  return tokens.subject ?? userIdOf(verdict.user) ?? randomUUID();
}

async function handleCallback(
  context: LoginContext,
  actions: PassportActions,
  req: IncomingMessage,
  res: ServerResponse,
  callbackURL: string | undefined,
  options: AuthenticateOptions,
): Promise<void> {
  // Passport calls it for successRedirect and failureRedirect. Responses of Connect have none.
  if (typeof Reflect.get(res, 'redirect') !== 'function') {
    const value = redirect.bind(undefined, res);
    Object.defineProperty(res, 'redirect', { value, configurable: true, writable: true });
  }
  const { grants, rounds } = context;
  const establishesSession = options.session !== false && !options.assignProperty;
  const manager = grants.requireSessionAndStore(req, establishesSession);
  const redirects = Boolean(options.successRedirect ?? options.successReturnToOrRedirect);
  if (establishesSession && redirects) refuseStrictSession(req);
  const wasKnown = establishesSession && !rounds.hasLost(req) && (await grants.hasGrant(req));
  const isConnection = Boolean(options.assignProperty);
  const leadsBack = () => rounds.leadsToLogin(options.failureRedirect);
  const start = isConnection ? sessionContent(req) : new Map<string, string>();
  const report = new LoginReport(context.settings.name);
  let outcome: CallbackOutcome;
  let handoff: GrantHandoff | undefined;
  let account = NO_ACCOUNT;
  try {
    outcome = await finishLogin(context, manager, req, res, { callbackURL, isConnection });
    if (outcome.kind === 'success') account = accountOf(outcome);
    const isNew = outcome.kind === 'success' ? establishesSession && !wasKnown : leadsBack();
    if (isNew) await refuseLoop(context, manager, req, res, account);
    if (outcome.kind === 'success') {
      const established = await establishSession(context, manager, req, res, options, outcome, start, report);
      if (established instanceof GrantHandoff) handoff = established;
      else outcome = established;
    }
  } catch (error) {
    report.publishError(error);
    throw error;
  }
  if (outcome.kind === 'fail') {
    const { reason, info, status } = outcome;
    const page = reason === 'replayed' ? await pageOfLoggedIn(context, req, options) : undefined;
    if (page !== undefined) {
      report.publish('refused', { reason: 'refused' });
      actions.redirect(page);
      return;
    }
    if (leadsBack()) rounds.count(req, res, NO_ACCOUNT, '');
    // Events know one reason for a state that is wrong, unknown or used up.
    const published = reason === 'replayed' ? 'refused' : reason;
    report.publish(reason === 'declined' ? 'declined' : 'refused', { reason: published });
    actions.fail(info, status);
    return;
  }
  if (wasKnown) {
    rounds.reset(req, res);
  } else if (handoff && establishesSession && outcome.returnTo !== undefined) {
    // A login that came from a page: if the session is lost on the way, the page sends the browser round again.
    const lost = rounds.count(req, res, account, grants.idIsInSession ? handoff.grantId : '');
    if (lost !== undefined) manager.discard(lost).catch(() => {});
  }
  try {
    await actions.success(outcome.verdict.user, outcome.verdict.info);
  } finally {
    // A session that is being written reports by itself, once it is saved.
    if (handoff && !handoff.isWriting) handoff.reportSuccess();
  }
}

/**
 * Returns the page that the callback's route names, if the user is logged in with this strategy already: for the back
 * button, a reload, and a bookmarked callback.
 */
async function pageOfLoggedIn(
  { grants }: LoginContext,
  req: IncomingMessage,
  { successReturnToOrRedirect, successRedirect, assignProperty }: AuthenticateOptions,
): Promise<string | undefined> {
  const page = successReturnToOrRedirect || successRedirect;
  const grantId = grants.idOf(req);
  if (typeof page !== 'string' || grantId === undefined || (!assignProperty && !userOf(req))) return undefined;
  try {
    await grants.managerFor(req).current(grantId);
  } catch (error) {
    // An outage of service or store ends no login.
    if (error instanceof NotAuthorizedError) return undefined;
  }
  return page;
}

/** Passes an error on to Passport, and so to the application's error handler. */
async function passOn(error: unknown, actions: PassportActions, res: ServerResponse | undefined): Promise<void> {
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

/** Options that Passport, its wrappers, or this strategy read. */
const READ_OPTIONS = new Set([
  ...[
    'assignProperty',
    'authInfo',
    'authorizationParams',
    'callback',
    'callbackURL',
    'defaultStrategy',
    'failWithError',
  ],
  'failureFlash',
  ...['failureMessage', 'failureRedirect', 'keepSessionInfo', 'pauseStream', 'property', 'scope', 'session'],
  ...['successFlash', 'successMessage', 'successRedirect', 'successReturnToOrRedirect', 'userProperty'],
]);

/** Warns of an option of `passport.authenticate` that nothing reads, once. */
function warnOfIgnored(name: string, options: object, warned: Set<string>): void {
  if (Reflect.get(options, name) === undefined || warned.has(name) || !/^\w{1,64}$/.test(name)) return;
  warned.add(name);
  const advice =
    name === 'state'
      ? 'The strategy always creates and checks the state itself. To return to a page, link to /login?returnTo=/page.'
      : `A parameter of the authorization request is set as { authorizationParams: { ${name}: … } }.`;
  process.emitWarning(`passport.authenticate: this strategy ignores the option ${name}. ${advice}`, {
    code: 'ERR_IGNORED_OPTION',
  });
}
