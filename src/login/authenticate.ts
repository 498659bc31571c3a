import type { IncomingMessage, ServerResponse } from 'node:http';
import { isRandomGrantId } from '../grants/grant-id.js';
import type { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { asRouted, originalPath, originalUrl, routedPathOf, userOf } from '../request/incoming-request.js';
import type { Runtime } from '../runtime.js';
import { beginLogin, callbackUrlOf, type LoginOptions } from './begin-login.js';
import { hasCallbackParameters } from './callback-query.js';
import { type GrantHandoff, handOffAtLogIn, handOffNow } from './establish-session.js';
import { type CallbackOutcome, finishLogin } from './finish-login.js';
import { LoginReport } from './login-report.js';
import { polyfillRedirect } from './polyfill-redirect.js';

/** What Passport lets a strategy do with a request; exactly one of them. */
export interface PassportActions {
  success(user: unknown, info?: unknown): void;
  fail(info?: unknown, status?: number): void;
  redirect(url: string, status?: number): void;
  error(error: unknown): void;
}

/** Options of `passport.authenticate` and `passport.authorize` that the strategy heeds. */
export interface AuthenticateOptions extends LoginOptions {
  readonly session?: unknown;
  readonly assignProperty?: unknown;
}

/**
 * Answers a request to the routes of login and callback: with one of Passport's actions, and with `error` if that throws.
 *
 * Never rejects.
 */
export async function authenticate(
  runtime: Runtime,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    res = runtime.clients.responseOf(req);
    // The URL of a callback holds the code, and the one of a login may hold more than others should know.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    if (!isCallback(req, runtime.settings.callbackURL)) {
      // What the callback's route says of the session is not known here, and nothing is written to it yet.
      runtime.grants.checkLoginIsPossible(req, false);
      actions.redirect(beginLogin(runtime, req, res, options));
      return;
    }
    const manager = runtime.grants.checkLoginIsPossible(req, options.session !== false && !options.assignProperty);
    polyfillRedirect(res);
    const finish = finishLogin.bind(undefined, runtime, req, res, {
      verify: runtime.verify,
      callbackURL: callbackUrlOf(options),
    });
    await callback(runtime, manager, actions, req, options, finish);
  } catch (error) {
    report(actions, res, error);
  }
}

/** Hands an error to Passport, and so to the runtime. */
function report(actions: PassportActions, res: ServerResponse | undefined, error: unknown): void {
  try {
    actions.error(isTellable(error) ? error : new Error('verify or userProfile failed, and did not say why'));
  } catch (thrown) {
    // A callback of the application's own threw. Beyond this point there is nobody who could answer.
    process.emitWarning(thrown instanceof Error ? thrown : 'A callback given to passport.authenticate threw');
    if (res && !res.headersSent) res.statusCode = 500;
    res?.end();
  }
}

/** Routers take a false value for no error at all, and these two texts as orders to skip handlers: the request would go on. */
function isTellable(error: unknown): boolean {
  return Boolean(error) && error !== 'route' && error !== 'router';
}

async function callback(
  runtime: Runtime,
  manager: GrantManager,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
  finish: () => Promise<CallbackOutcome>,
): Promise<void> {
  const report = new LoginReport(runtime.settings.name);
  let outcome: CallbackOutcome;
  let grantId: string | undefined;
  try {
    outcome = await finish();
    if (outcome.kind === 'success') grantId = await keep(runtime, manager, req, options, outcome, report);
  } catch (error) {
    report.failed(error);
    throw error;
  }
  if (outcome.kind === 'fail') {
    report.tell({ outcome: outcome.reason === 'declined' ? 'declined' : 'refused', reason: outcome.reason });
    actions.fail(outcome.info, outcome.status);
    return;
  }
  try {
    actions.success(outcome.verdict.user, outcome.verdict.info);
  } finally {
    // Where Passport has begun to write the session, its end is the login's.
    if (!report.awaitsSession) report.tell({ outcome: 'success', grantId });
  }
}

/** Keeps the grant, and sees to it that the session will refer to it. */
async function keep(
  runtime: Runtime,
  manager: GrantManager,
  req: IncomingMessage,
  options: AuthenticateOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
  report: LoginReport,
): Promise<string> {
  const { grants, clients, settings } = runtime;
  const grantId = grants.newId(req, ownerOf(req, options, verdict.user));
  const remove = (id: string) => void manager.remove(id).catch(() => {});
  // Nobody would ever come back to it. Under an id of the application's own somebody may.
  const discard = () => grants.idIsInSession && remove(grantId);
  let source: GrantCredentials | undefined;
  const handoff: GrantHandoff = {
    key: settings.name,
    reference: grants.idIsInSession ? grantId : undefined,
    returnTo,
    onStart: () => {
      report.awaitsSession = true;
    },
    onSaved: (former) => {
      report.tell({ outcome: 'success', grantId });
      if (grants.idIsInSession && isRandomGrantId(former) && former !== grantId) remove(former);
    },
    onFailure: (error) => {
      report.failed(error);
      source?.end();
      discard();
    },
  };
  try {
    await manager.put(grantId, tokens);
  } catch (error) {
    // A store that was too slow may take it after all.
    discard();
    throw error;
  }
  if (options.assignProperty) await handOffNow(req, handoff);
  else handOffAtLogIn(req, handoff);
  source = await clients.switchTo(req, manager, grantId);
  return grantId;
}

/**
 * Whose grant it is. With `passport.authorize` that is the user who is logged in, as with each request later on: what
 * `verify` gives there is the account that is connected, whose id may be another user's here.
 */
function ownerOf(req: IncomingMessage, options: AuthenticateOptions, account: unknown): unknown {
  return (options.assignProperty ? userOf(req) : undefined) ?? account;
}

/** Whether a request is a callback: by its path, or by what it brings where a proxy has changed the path. */
function isCallback(req: IncomingMessage, callbackURL: string): boolean {
  return asRouted(originalPath(req)) === routedPathOf(callbackURL, req) || hasCallbackParameters(originalUrl(req));
}
