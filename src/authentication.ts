import type { IncomingMessage } from 'node:http';
import type { Application } from './application.js';
import { OAuthAppError } from './errors.js';
import { type LoginEvent, publishLogin } from './events.js';
import { isRandomGrantId } from './grants/grant-id.js';
import type { GrantKeeper } from './grants/grant-keeper.js';
import { beginLogin, type LoginOptions } from './login/begin-login.js';
import { hasCallbackParameters } from './login/callback-query.js';
import { type CallbackOutcome, finishLogin } from './login/finish-login.js';
import { originalPath, originalUrl } from './login/incoming.js';
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
  try {
    const res = application.responseOf(req);
    // The URL of a callback holds the code, and the one of a login may hold more than others should know.
    res.setHeader('Cache-Control', 'no-store');
    res.setHeader('Referrer-Policy', 'no-referrer');
    const keeper = application.checkLoginIsPossible(req, options.session !== false && !options.assignProperty);
    if (!isCallback(req, application.settings.callbackURL)) {
      actions.redirect(await beginLogin(application, req, res, options));
      return;
    }
    await callback(application, keeper, actions, req, options, () => finishLogin(application, req, res, verify));
  } catch (error) {
    actions.error(error);
  }
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
  const grantId = application.newGrantId(req, verdict.user);
  const remove = (id: string) => void keeper.remove(id).catch(() => {});
  await keeper.put(grantId, tokens);
  const handover: Handover = {
    key: application.settings.name,
    reference: application.keepsReference ? grantId : undefined,
    returnTo,
    onFailure: () => application.keepsReference && remove(grantId),
    onReplaced: (former) => application.keepsReference && isRandomGrantId(former) && remove(former),
  };
  if (options.assignProperty) await handOverNow(req, handover);
  else handOverAtLogIn(req, handover);
  return grantId;
}

/** Whether a request is a callback: by its path, or by what it brings where a proxy has changed the path. */
function isCallback(req: IncomingMessage, callbackURL: string): boolean {
  const path = originalPath(req);
  return (
    path === new URL(callbackURL, `http://here.invalid${path.startsWith('/') ? path : '/'}`).pathname ||
    hasCallbackParameters(originalUrl(req))
  );
}
