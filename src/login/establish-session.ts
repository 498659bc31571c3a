import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { safeReturnTo } from '../request/browser-cookie.js';
import { ANONYMOUS, connectionKey, type RequestGrants } from '../request/grant-reference.js';
import { userOf, whenSettled } from '../request/incoming-request.js';
import type { RequestClients } from '../request/request-clients.js';
import {
  type Done,
  emptySession,
  intercept,
  polyfillSessionMethods,
  regenerateSession,
  reloadSession,
  type SessionChanges,
  type SessionContent,
  type SessionLike,
  saveSession,
  sessionChanges,
  sessionOf,
} from '../request/session.js';
import { KeyedQueue } from '../stores/waiting.js';
import type { CallbackOutcome } from './finish-login.js';
import type { FrameLogins } from './frame-logins.js';
import { GrantHandoff, type LoginReport } from './grant-handoff.js';

/** Options of `passport.authenticate` and `passport.authorize` that decide about the session. */
export interface SessionOptions {
  readonly session?: unknown;
  /** Set by `passport.authorize`, which logs nobody in. */
  readonly assignProperty?: unknown;
}

/** What a session is established with. */
export interface EstablishSessionContext {
  /** `name`: the key of the reference in the session. */
  readonly settings: { readonly name: string };
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
  readonly frames: FrameLogins;
}

/** The session was lost, or got another user, while the account was being connected. */
const OTHER_SESSION: Extract<CallbackOutcome, { readonly kind: 'fail' }> = {
  kind: 'fail',
  reason: 'refused',
  info: {
    message:
      'The user has logged out, or logged in again, while this account was being connected. Please connect it again.',
  },
  status: 403,
};

/**
 * Connections of one session write it one after the other, since each saves the whole session. By the session's id: in this
 * process, and in all others where the token store has locks.
 */
const connectionsOfSession = new KeyedQueue();

/** Begins the ids of locks of sessions in the token store, which no grant has. */
const SESSION_PREFIX = 'session:';

/**
 * Stores the grant of a login, and makes the session refer to it: at once for `passport.authorize`, else when somebody
 * calls `req.logIn`.
 *
 * @param start The content of the session when the callback began.
 * @returns the handoff, or the failure of a connection whose user has left meanwhile
 * @throws ConfigurationError if somebody else has sent the response; the grant is removed unless its id is the application's own
 * @throws TokenStoreError if the grant, or the session of `passport.authorize`, cannot be saved
 */
export async function establishSession(
  { settings, grants, clients, frames }: EstablishSessionContext,
  manager: GrantManager,
  req: IncomingMessage,
  res: ServerResponse,
  options: SessionOptions,
  { tokens, verdict, returnTo }: Extract<CallbackOutcome, { readonly kind: 'success' }>,
  start: SessionContent,
  report: LoginReport,
): Promise<GrantHandoff | Extract<CallbackOutcome, { readonly kind: 'fail' }>> {
  const sent = sentResponseError(res);
  if (sent) throw sent;
  const isConnection = Boolean(options.assignProperty);
  // With passport.authorize the grant belongs to the user who is logged in. `verify` returns the connected account, whose
  // id may be another user's here.
  const owner = isConnection ? userOf(req) : verdict.user;
  const grantId = grants.newId(req, owner);
  if (!isConnection) frames.admit(req, grantId);
  const { name: key } = settings;
  const { idIsInSession } = grants;
  if (isConnection) await refuseOtherAccount(grants, key, manager, req, tokens);
  const { scope = [] } = tokens;
  const handoff = new GrantHandoff({ key, grantId, idIsInSession, isConnection, scope, manager, report });
  const store = async () => {
    try {
      await manager.put(grantId, tokens, idIsInSession, idIsInSession ? grants.idOf(req) : grantId);
      const sent = sentResponseError(res);
      if (sent) throw sent;
    } catch (error) {
      // A slow store may save the grant after all.
      handoff.discard();
      throw error;
    }
  };
  if (isConnection) {
    // A grant under the user's own id replaces another one: not before it is known that the user is still there.
    if (idIsInSession) await store();
    const changes = sessionChanges(req, start);
    const connect = () => handOffNow(req, res, handoff, returnTo, changes, idIsInSession ? undefined : store);
    const sessionId = 'sessionID' in req ? String(req.sessionID) : '';
    const isConnected = await connectionsOfSession.run(sessionId, () => withLock(manager, sessionId, handoff, connect));
    if (!isConnected) return OTHER_SESSION;
  } else {
    await store();
    handOffAtLogIn(req, res, handoff, returnTo);
  }
  handoff.source = await clients.switchTo(req, manager, grantId);
  const sentMeanwhile = isConnection ? undefined : sentResponseError(res);
  if (!sentMeanwhile) return handoff;
  handoff.failed(sentMeanwhile);
  throw sentMeanwhile;
}

/** Returns the error for a response that somebody else has sent: the browser would never learn of its session. */
function sentResponseError(res: ServerResponse): ConfigurationError | undefined {
  if (!res.headersSent && !res.writableEnded) return undefined;
  return new ConfigurationError(
    'The response was sent before the login ended, most likely by a time-out middleware: nobody was logged in. Give the callback route more time than the option timeout.',
    { code: 'ERR_RESPONSE_SENT' },
  );
}

/**
 * Throws if the user has logged in with this strategy and another account: connecting an account would replace the grant
 * of the login.
 */
async function refuseOtherAccount(
  grants: RequestGrants,
  key: string,
  manager: GrantManager,
  req: IncomingMessage,
  { subject }: TokenSet,
): Promise<void> {
  const connected = sessionOf(req)?.[connectionKey(key)];
  const isOfLogin = grants.idIsInSession ? !connected : connected === false;
  const reference = userOf(req) && isOfLogin ? grants.idOf(req) : undefined;
  if (reference === undefined) return;
  const current = await Promise.resolve(manager.current(reference)).catch((error: unknown) => {
    if (error instanceof NotAuthorizedError) return undefined;
    throw error;
  });
  if (!current || (subject !== undefined && subject === current.subject)) return;
  throw new ConfigurationError(
    'passport.authorize: the user has logged in with this strategy and another account, and a session holds one grant for each strategy. Connect accounts with a second Strategy that has a name of its own.',
    { code: 'ERR_OTHER_ACCOUNT' },
  );
}

/** Runs the end of a connection under the lock of its session, if the token store has locks. @throws TokenStoreError if it cannot be had */
async function withLock(
  { access }: GrantManager,
  sessionId: string,
  handoff: GrantHandoff,
  connect: () => Promise<boolean>,
): Promise<boolean> {
  const id = SESSION_PREFIX + createHash('sha256').update(sessionId).digest('base64url');
  const lock = await access.acquire(id).catch((error: unknown) => {
    handoff.discard();
    throw error;
  });
  try {
    return await connect();
  } finally {
    await lock.release();
  }
}

/**
 * Writes the reference into the session, as it is now, and saves it.
 *
 * A session of a user who is not logged in gets a new id: somebody else may have planted it in this browser.
 *
 * @param store Stores the grant, if that was not done before.
 * @returns false if the session is gone, or belongs to another user now
 */
async function handOffNow(
  req: IncomingMessage,
  res: ServerResponse,
  handoff: GrantHandoff,
  returnTo: string | undefined,
  changes: SessionChanges,
  store: (() => Promise<void>) | undefined,
): Promise<boolean> {
  const isGone = async () => sessionOf(req) !== undefined && (await reloadSession(req, changes)) === undefined;
  if (await isGone()) {
    handoff.discard();
    return false;
  }
  await store?.();
  // A save takes its time: the user may have logged out meanwhile.
  if (store && (await isGone())) {
    handoff.withdraw();
    return false;
  }
  const before = sessionOf(req);
  // Without a session there is nothing to write.
  if (!before) return true;
  const former = handoff.begin(before);
  try {
    const isAnonymous = !userOf(req);
    const session = isAnonymous ? await regenerateSession(req, before) : before;
    handoff.write(session, isAnonymous ? ANONYMOUS : true);
    const target = returnTo ?? session.returnTo;
    if (target !== undefined) session.returnTo = safeReturnTo(target);
    await saveSession(session);
    const sent = sentResponseError(res);
    if (sent) throw sent;
  } catch (error) {
    const session = sessionOf(req) ?? before;
    handoff.restore(session, former);
    // express-session saves at the end of the response, which may have been sent.
    if (res.headersSent) await saveSession(session).catch(() => {});
    handoff.failed(error);
    throw error;
  }
  handoff.saved(former);
  return true;
}

type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => unknown;

/** Options of `req.logIn` that Passport reads. */
interface LogInOptions {
  readonly session?: unknown;
  readonly keepSessionInfo?: unknown;
  readonly successReturnToOrRedirect?: unknown;
  readonly successRedirect?: unknown;
}

/**
 * Wraps `req.logIn`, so that each call that writes a session carries the reference through Passport's regeneration of
 * it. Passport calls it, or the application after `session: false` or in a callback of its own.
 */
function handOffAtLogIn(
  req: IncomingMessage & { logIn?: LogIn; login?: LogIn },
  res: ServerResponse,
  handoff: GrantHandoff,
  returnTo: string | undefined,
): void {
  const logIn = req.logIn;
  if (!logIn) return;
  const logInWithGrant: LogIn = function logInWithGrant(user, given, callback) {
    const [options, done] = typeof given === 'function' ? [undefined, given as Done] : [given, callback];
    const { session: saves, keepSessionInfo, ...redirects }: LogInOptions = Object(options);
    const before = sessionOf(req);
    const target = returnTo ?? before?.returnTo;
    polyfillSessionMethods(before, keepSessionInfo === true);
    const writesSession = saves !== false;
    const former = writesSession ? handoff.begin(before) : undefined;
    if (writesSession && before) writeAtRegeneration(before, req, handoff);
    const undo = (error: unknown) => {
      const session = sessionOf(req);
      // express-session saves what is left at the end of the response. Its store may work again by then, and would log
      // in a user who was told otherwise.
      if (session && session !== before) {
        emptySession(session);
        // The response was sent, so express-session will not overwrite the saved session: destroy it.
        if (res.headersSent && typeof session.destroy === 'function') session.destroy(() => {});
      } else if (session) {
        handoff.restore(session, former);
      }
      handoff.failed(error);
    };
    let ended = false;
    const end: Done = (failure) => {
      if (ended) return;
      ended = true;
      const error = failure || (writesSession ? sentResponseError(res) : undefined);
      if (writesSession && error) undo(error);
      else if (writesSession) handoff.saved(former);
      // After the save: Passport reads and deletes it for its redirect, so the session need not be saved once more.
      // Nobody reads it before a fixed successRedirect: the next login would lead there.
      const isRead = redirects.successReturnToOrRedirect || (writesSession && !redirects.successRedirect);
      const after = !error && isRead && target !== undefined ? (sessionOf(req) ?? noSession(req)) : undefined;
      if (after) after.returnTo = safeReturnTo(target);
      done?.(error);
    };
    try {
      const returned = logIn.call(this, user, options, end);
      whenSettled(returned, end);
      return returned;
    } catch (error) {
      if (writesSession && !ended) undo(error);
      throw error;
    }
  };
  req.logIn = logInWithGrant;
  req.login = logInWithGrant;
}

/** Adds an object from which Passport reads the page to return to, where the application has no sessions. */
function noSession(req: IncomingMessage): SessionLike {
  const value: SessionLike = {};
  Object.defineProperty(req, 'session', { value, configurable: true, writable: true });
  return value;
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
    // Only to turn the store's error into ours.
    intercept(next, 'save');
  });
  // With keepSessionInfo Passport copies the old session over the new one.
  handoff.write(session);
}
