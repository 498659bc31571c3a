import type { IncomingMessage } from 'node:http';
import type { RequestGrants } from '../request/grant-reference.js';
import { userOf } from '../request/incoming-request.js';
import type { RequestClients } from '../request/request-clients.js';
import { safeReturnTo } from '../request/return-to.js';
import {
  type Done,
  emptySession,
  polyfillSessionMethods,
  type SessionLike,
  saveSession,
  sessionOf,
  sessionStoreFailed,
} from '../request/session.js';
import type { CallbackOutcome } from './finish-login.js';
import { GrantHandoff, type LoginReport } from './grant-handoff.js';

/** Options of `passport.authenticate` and `passport.authorize` that decide about the session. */
export interface SessionOptions {
  readonly session?: unknown;
  /** Set by `passport.authorize`, which logs nobody in. */
  readonly assignProperty?: unknown;
}

/** What a session is established with. */
export interface EstablishSessionContext {
  /** `name`: the key of the reference under the session. */
  readonly settings: { readonly name: string };
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
}

/**
 * Stores the grant of a login, and makes the session refer to it: at once for `passport.authorize`, else when somebody
 * calls `req.logIn`.
 *
 * @throws TokenStoreError if the grant, or the session of `passport.authorize`, cannot be saved
 */
export async function establishSession(
  { settings, grants, clients }: EstablishSessionContext,
  req: IncomingMessage,
  options: SessionOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
  report: LoginReport,
): Promise<GrantHandoff> {
  const manager = grants.managerFor(req);
  // With passport.authorize the grant belongs to the user who is logged in. `verify` returns the connected account, whose
  // id may be another user's here.
  const owner = (options.assignProperty ? userOf(req) : undefined) ?? verdict.user;
  const grantId = grants.newId(req, owner);
  const { idIsInSession } = grants;
  const handoff = new GrantHandoff({ key: settings.name, grantId, idIsInSession, manager, returnTo, report });
  try {
    await manager.put(grantId, tokens);
  } catch (error) {
    // A slow store may save the grant after all.
    handoff.discard();
    throw error;
  }
  if (options.assignProperty) await handOffNow(req, handoff);
  else handOffAtLogIn(req, handoff);
  handoff.watch(await clients.switchTo(req, manager, grantId));
  return handoff;
}

/** Writes the reference into the session that there is, and saves it. */
async function handOffNow(req: IncomingMessage, handoff: GrantHandoff): Promise<void> {
  const session = sessionOf(req);
  if (!session) return;
  const former = handoff.begin(session);
  handoff.write(session);
  setReturnTo(session, handoff.targetOf(session));
  try {
    await saveSession(session);
  } catch (error) {
    handoff.restore(session, former);
    handoff.failed(error);
    throw error;
  }
  handoff.saved(former);
}

type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => void;

/**
 * Wraps `req.logIn`, so that each call that writes a session carries the reference through Passport's regeneration of
 * it. Passport calls it, or the application after `session: false` or in a callback of its own.
 */
function handOffAtLogIn(req: IncomingMessage & { logIn?: LogIn; login?: LogIn }, handoff: GrantHandoff): void {
  const logIn = req.logIn;
  if (!logIn) return;
  const logInWithGrant: LogIn = function logInWithGrant(user, given, callback) {
    const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
    const before = sessionOf(req);
    const target = handoff.targetOf(before);
    polyfillSessionMethods(before, isOption(options, 'keepSessionInfo', true));
    const writesSession = !isOption(options, 'session', false);
    const former = writesSession ? handoff.begin(before) : undefined;
    if (writesSession && before) writeAtRegeneration(before, req, handoff);
    const undo = (error: unknown) => {
      const session = sessionOf(req);
      // express-session saves what is left at the end of the response. Its store may work again by then, and would log
      // in a user who was told otherwise.
      if (session && session !== before) emptySession(session);
      else if (session) handoff.restore(session, former);
      handoff.failed(error);
    };
    let ended = false;
    const end: Done = (error) => {
      ended = true;
      if (writesSession && error) undo(error);
      else if (writesSession) handoff.saved(former);
      // After the save: Passport reads and deletes it for its redirect, so the session need not be saved once more.
      if (!error) setReturnTo(sessionOf(req), target);
      done?.(error);
    };
    try {
      logIn.call(this, user, options, end);
    } catch (error) {
      if (writesSession && !ended) undo(error);
      throw error;
    }
  };
  req.logIn = logInWithGrant;
  req.login = logInWithGrant;
}

/**
 * Writes the reference into the session that Passport's login creates, together with the user, before it is saved.
 *
 * Written there, it needs neither a save of its own nor `keepSessionInfo`.
 */
function writeAtRegeneration(session: SessionLike, req: IncomingMessage, handoff: GrantHandoff): void {
  intercept(session, 'regenerate', () => {
    const next = sessionOf(req);
    if (!next) return;
    handoff.write(next);
    intercept(next, 'save', () => {});
  });
  // With keepSessionInfo Passport copies the old session over the new one.
  handoff.write(session);
}

/** Calls `then` after the next successful call of a session's callback method, and replaces its error by one of ours. */
function intercept(session: SessionLike, method: 'regenerate' | 'save', then: () => void): void {
  const original = session[method];
  if (typeof original !== 'function') return;
  const own = Object.getOwnPropertyDescriptor(session, method);
  const intercepted = function (this: unknown, done?: Done) {
    delete session[method];
    if (own) Object.defineProperty(session, method, own);
    return original.call(this, (error?: unknown) => {
      if (!error) then();
      done?.(error ? sessionStoreFailed(error) : undefined);
    });
  };
  // Not enumerable: Passport would copy it along with the session.
  Object.defineProperty(session, method, { value: intercepted, configurable: true, enumerable: false, writable: true });
}

function setReturnTo(session: SessionLike | undefined, target: unknown): void {
  if (session && target !== undefined) session.returnTo = safeReturnTo(target);
}

function isOption(options: unknown, name: string, value: boolean): boolean {
  return typeof options === 'object' && options !== null && Reflect.get(options, name) === value;
}
