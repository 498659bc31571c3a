import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { ANONYMOUS, type RequestGrants } from '../session/grant-reference.js';
import type { RequestClients } from '../session/request-clients.js';
import { safeReturnTo } from '../session/return-cookie.js';
import {
  regenerateSession,
  reloadSession,
  type SessionChanges,
  type SessionContent,
  saveSession,
  sessionChanges,
  sessionOf,
  userOf,
} from '../session/session.js';
import { SessionLogin, type SessionLoginRequest, sentResponseError } from '../session/session-login.js';
import type { Visit } from '../session/visit.js';
import { KeyedQueue } from '../waiting.js';

/** The callback of a connection. */
export interface ConnectionRequest extends SessionLoginRequest {
  /** The content of the session when the callback began. */
  readonly sessionAtStart: SessionContent;
}

/** Connections by the session's id: those of one session write it one after the other, since each saves the whole session. */
const connectionsOfSession = new KeyedQueue();

/** Begins the ids of locks of sessions in the token store, which no grant has. */
const SESSION_PREFIX = 'session:';

/**
 * Connects an account to the user who is logged in, for `passport.authorize`: stores its grant, and writes the reference into
 * the session at once.
 *
 * @returns `undefined` if the user has logged out, or logged in again, since the callback began
 * @throws ConfigurationError if the response was sent already, or if the user has logged in with another account
 * @throws TokenStoreError if the grant or the session cannot be saved
 */
export async function connectAccount(
  { grants, clients }: { readonly grants: RequestGrants; readonly clients: RequestClients },
  request: ConnectionRequest,
  tokens: TokenSet,
  returnTo: string | undefined,
): Promise<SessionLogin | undefined> {
  const { visit, res, manager, sessionAtStart } = request;
  const { req } = visit;
  // The grant belongs to the user who is logged in. `verify` returns the connected account, whose id may be another user's here.
  const login = new SessionLogin(request, grants, tokens, userOf(req));
  await refuseOtherAccount(grants, manager, req, tokens);
  const { idIsInSession } = grants;
  let grant: Grant | undefined;
  const store = async () => {
    grant = await login.store();
  };
  // A grant under the user's own id replaces another one: not before it is known that the user is still there.
  if (idIsInSession) await store();
  const changes = sessionChanges(req, sessionAtStart);
  let isConnected: boolean;
  try {
    isConnected = await inTurn(manager, req, () =>
      connect(visit, res, login, returnTo, changes, idIsInSession ? undefined : store),
    );
  } catch (error) {
    login.discard();
    throw error;
  }
  if (!isConnected) return undefined;
  login.source = clients.switchTo(req, manager, login.grantId, grant);
  return login;
}

/**
 * Throws if the user has logged in with this strategy and another account: connecting an account would replace the grant
 * of the login.
 */
async function refuseOtherAccount(
  grants: RequestGrants,
  manager: GrantManager,
  req: IncomingMessage,
  { subject }: TokenSet,
): Promise<void> {
  const connected = sessionOf(req)?.[grants.connectionKey];
  const isOfLogin = grants.idIsInSession ? !connected : connected === false;
  const reference = userOf(req) && isOfLogin ? grants.idOf(req) : undefined;
  if (reference === undefined) return;
  const current = await Promise.resolve(manager.current(reference)).catch((error: unknown) => {
    if (error instanceof NotAuthorizedError) return undefined;
    throw error;
  });
  if (!current || (subject !== undefined && subject === current.subject)) return;
  throw new ConfigurationError(
    'passport.authorize: the user logged in with another account of this strategy, and a session holds one grant per strategy. Connect accounts with a second Strategy under another name.',
    { code: 'ERR_OTHER_ACCOUNT' },
  );
}

/**
 * Runs the end of a connection while no other one of its session runs: in this process, and in all others where the token store
 * has locks. A session without an id (cookie-session) is the request's own.
 *
 * @throws TokenStoreError if the lock cannot be had
 */
async function inTurn(
  { access }: GrantManager,
  req: IncomingMessage,
  connect: () => Promise<boolean>,
): Promise<boolean> {
  const sessionId: unknown = 'sessionID' in req ? req.sessionID : undefined;
  if (typeof sessionId !== 'string') return await connect();
  return await connectionsOfSession.run(sessionId, async () => {
    const lock = await access.acquire(SESSION_PREFIX + createHash('sha256').update(sessionId).digest('base64url'));
    try {
      return await connect();
    } finally {
      await lock.release();
    }
  });
}

/**
 * Writes the reference into the session, as it is now, and saves it.
 *
 * A session of a user who is not logged in gets a new id: an attacker may have planted it in this browser.
 *
 * @param store Stores the grant, if that was not done before.
 * @returns false if the session is gone, or belongs to another user now
 */
async function connect(
  visit: Visit,
  res: ServerResponse,
  login: SessionLogin,
  returnTo: string | undefined,
  changes: SessionChanges,
  store: (() => Promise<void>) | undefined,
): Promise<boolean> {
  const { req } = visit;
  const isGone = async () => sessionOf(req) !== undefined && (await reloadSession(visit, changes)) === undefined;
  if (await isGone()) {
    login.discard();
    return false;
  }
  await store?.();
  // A save takes its time: the user may have logged out by now.
  if (store && (await isGone())) {
    login.withdraw();
    return false;
  }
  const before = sessionOf(req);
  // Without a session there is nothing to write.
  if (!before) return true;
  login.begin(before);
  try {
    const isAnonymous = !userOf(req);
    const session = isAnonymous ? await regenerateSession(req, before) : before;
    login.write(session, isAnonymous ? ANONYMOUS : true);
    const target = returnTo ?? session.returnTo;
    if (target !== undefined) session.returnTo = safeReturnTo(target);
    await saveSession(session);
    const sent = sentResponseError(res);
    if (sent) throw sent;
  } catch (error) {
    const session = sessionOf(req) ?? before;
    login.restore(session);
    // express-session saves at the end of the response, which may have been sent.
    if (res.headersSent) await saveSession(session).catch(() => {});
    login.failed(error);
    throw error;
  }
  login.saved();
  return true;
}
