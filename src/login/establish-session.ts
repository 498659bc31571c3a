import type { IncomingMessage } from 'node:http';
import { OAuthAppError } from '../errors.js';
import { type LoginEvent, publishLogin } from '../events.js';
import { isRandomGrantId } from '../grants/grant-id.js';
import type { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
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

/** Reports how a login ended, once. */
export class LoginReport {
  readonly #strategy: string;
  readonly #since = performance.now();
  #isPublished = false;

  constructor(strategy: string) {
    this.#strategy = strategy;
  }

  /** Publishes the outcome on the channel `login`, unless one was published before. */
  publish(outcome: LoginEvent['outcome'], details: Pick<LoginEvent, 'reason' | 'grantId'> = {}): void {
    if (this.#isPublished) return;
    this.#isPublished = true;
    publishLogin({ strategy: this.#strategy, outcome, durationMs: performance.now() - this.#since, ...details });
  }

  /** Publishes that the login ended with an error. */
  publishError(error: unknown): void {
    this.publish('error', { reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
  }
}

/** Hands the grant of a login over to the session that will refer to it. */
export class GrantHandoff {
  readonly grantId: string;
  /** True from the moment at which a session is being written: its save decides about the login. */
  isWriting = false;
  readonly #manager: GrantManager;
  readonly #report: LoginReport;
  readonly #idIsInSession: boolean;
  /** Key of the reference under the session. */
  readonly #key: string;
  /** The path that the login leads to. Without one, the session's own `returnTo` counts. */
  readonly #returnTo: string | undefined;
  #source: GrantCredentials | undefined;

  constructor(
    { settings, grants }: EstablishSessionContext,
    manager: GrantManager,
    grantId: string,
    returnTo: string | undefined,
    report: LoginReport,
  ) {
    this.grantId = grantId;
    this.#manager = manager;
    this.#report = report;
    this.#idIsInSession = grants.idIsInSession;
    this.#key = settings.name;
    this.#returnTo = returnTo;
  }

  /** Ends the clients of `source` if the login fails later on. */
  watch(source: GrantCredentials): void {
    this.#source = source;
  }

  /** Announces that a session will be written: `saved` or `failed` follows. @returns the reference that it had before */
  begin(session: SessionLike | undefined): unknown {
    this.isWriting = true;
    return session?.[this.#key];
  }

  /** Writes the reference into a session. */
  write(session: SessionLike): void {
    if (this.#idIsInSession) session[this.#key] = this.grantId;
  }

  /** Returns the path that the login leads to: its own, or that of the session. */
  targetOf(session: SessionLike | undefined): unknown {
    return this.#returnTo ?? session?.returnTo;
  }

  /** The session refers to the grant: the login has succeeded, and the grant that the session had before can go. */
  saved(former: unknown): void {
    this.#report.publish('success', { grantId: this.grantId });
    if (this.#idIsInSession && isRandomGrantId(former) && former !== this.grantId) this.#remove(former);
  }

  /** No session refers to the grant: the login has failed. */
  failed(error: unknown): void {
    this.#report.publishError(error);
    this.#source?.end();
    this.discard();
  }

  /** Puts back the reference that a session had before. */
  restore(session: SessionLike, former: unknown): void {
    if (former === undefined) delete session[this.#key];
    else session[this.#key] = former;
  }

  /** Removes the grant, unless its id is the application's own and leads back to it. */
  discard(): void {
    if (this.#idIsInSession) this.#remove(this.grantId);
  }

  #remove(grantId: string): void {
    this.#manager.remove(grantId).catch(() => {});
  }
}

/**
 * Stores the grant of a login, and makes the session refer to it: at once for `passport.authorize`, else when somebody
 * calls `req.logIn`.
 *
 * @throws TokenStoreError if the grant, or the session of `passport.authorize`, cannot be saved
 */
export async function establishSession(
  context: EstablishSessionContext,
  req: IncomingMessage,
  options: SessionOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
  report: LoginReport,
): Promise<GrantHandoff> {
  const { grants, clients } = context;
  const manager = grants.managerFor(req);
  // With passport.authorize the grant belongs to the user who is logged in. `verify` returns the connected account, whose
  // id may be another user's here.
  const owner = (options.assignProperty ? userOf(req) : undefined) ?? verdict.user;
  const grantId = grants.newId(req, owner);
  const handoff = new GrantHandoff(context, manager, grantId, returnTo, report);
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
