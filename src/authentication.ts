import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Application } from './application.js';
import { OAuthAppError } from './errors.js';
import { type LoginEvent, publishLogin } from './events.js';
import { isRandomGrantId } from './grants/grant-id.js';
import type { GrantKeeper } from './grants/grant-keeper.js';
import type { GrantSource } from './grants/grant-source.js';
import { beginLogin, type LoginOptions } from './login/begin-login.js';
import { hasCallbackParameters } from './login/callback-query.js';
import { type CallbackOutcome, finishLogin } from './login/finish-login.js';
import { originalPath, originalUrl } from './login/incoming.js';
import { lendRedirect } from './login/lent-redirect.js';
import { type Handover, handOverAtLogIn, handOverNow } from './login/session-handover.js';
import type { AnyVerify } from './login/verify.js';

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

/** What is behind a strategy. */
export interface Behind {
  readonly application: Application;
  readonly verify: AnyVerify | undefined;
}

/**
 * Answers a request to the routes of login and callback: with exactly one of Passport's actions.
 *
 * Never rejects.
 */
export async function authenticate(
  { application, verify }: Behind,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
): Promise<void> {
  let res: ServerResponse | undefined;
  try {
    res = application.responseOf(req);
    // The URL of a callback holds the code, and the one of a login may hold more than others should know.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    if (!isCallback(req, application.settings.callbackURL)) {
      // What the callback's route says of the session is not known here, and nothing is written to it yet.
      application.checkLoginIsPossible(req, false);
      actions.redirect(beginLogin(application, req, res, options));
      return;
    }
    const keeper = application.checkLoginIsPossible(req, options.session !== false && !options.assignProperty);
    lendRedirect(res);
    const finish = finishLogin.bind(undefined, application, req, res, verify);
    await callback(application, keeper, actions, req, options, finish);
  } catch (error) {
    report(actions, res, error);
  }
}

/** Hands an error to Passport, and so to the application. */
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
  application: Application,
  keeper: GrantKeeper,
  actions: PassportActions,
  req: IncomingMessage,
  options: AuthenticateOptions,
  finish: () => Promise<CallbackOutcome>,
): Promise<void> {
  const since = performance.now();
  const tell = (event: Pick<LoginEvent, 'outcome' | 'grantId' | 'reason'>) =>
    publishLogin({ strategy: application.settings.name, durationMs: performance.now() - since, ...event });
  try {
    const outcome = await finish();
    if (outcome.kind === 'fail') {
      tell({ outcome: outcome.reason === 'declined' ? 'declined' : 'refused', reason: outcome.reason });
      actions.fail(outcome.info, outcome.status);
      return;
    }
    tell({ outcome: 'success', grantId: await keep(application, keeper, req, options, outcome) });
    actions.success(outcome.verdict.user, outcome.verdict.info);
  } catch (error) {
    tell({ outcome: 'error', reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
    throw error;
  }
}

/** Keeps the grant, and sees to it that the session will refer to it. */
async function keep(
  application: Application,
  keeper: GrantKeeper,
  req: IncomingMessage,
  options: AuthenticateOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
): Promise<string> {
  const grantId = application.newGrantId(req, ownerOf(req, options, verdict.user));
  const remove = (id: string) => void keeper.remove(id).catch(() => {});
  await keeper.put(grantId, tokens);
  let source: GrantSource | undefined;
  const handover: Handover = {
    key: application.settings.name,
    reference: application.keepsReference ? grantId : undefined,
    returnTo,
    onFailure: () => {
      source?.end();
      if (application.keepsReference) remove(grantId);
    },
    onReplaced: (former) => application.keepsReference && isRandomGrantId(former) && remove(former),
  };
  if (options.assignProperty) await handOverNow(req, handover);
  else handOverAtLogIn(req, handover);
  source = await application.switchClient(req, keeper, grantId);
  return grantId;
}

/**
 * Whose grant it is. With `passport.authorize` that is the user who is logged in, as with each request later on: what
 * `verify` gives there is the account that is connected, whose id may be another user's here.
 */
function ownerOf(req: IncomingMessage, options: AuthenticateOptions, account: unknown): unknown {
  const user: unknown = options.assignProperty && 'user' in req ? req.user : undefined;
  return user ?? account;
}

/** Whether a request is a callback: by its path, or by what it brings where a proxy has changed the path. */
function isCallback(req: IncomingMessage, callbackURL: string): boolean {
  const path = originalPath(req);
  const { pathname } = new URL(callbackURL, `http://here.invalid${path.startsWith('/') ? path : '/'}`);
  return asRouted(path) === asRouted(pathname) || hasCallbackParameters(originalUrl(req));
}

/** A path as routers compare it, unless they are told otherwise: in any case, with or without a slash at the end. */
function asRouted(path: string): string {
  return path.toLowerCase().replace(/\/$/, '');
}
