import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { RequestClients } from '../session/request-clients.js';
import { ANONYMOUS, type RequestGrants } from '../session/request-grants.js';
import { safeReturnTo } from '../session/return-to.js';
import {
  passportRecordOf,
  regenerateSession,
  type SessionLike,
  saveSession,
  sessionOf,
  sessionStoreFailed,
  settle,
  userOf,
} from '../session/session.js';
import { SessionLogin, type SessionLoginRequest, sentResponseError } from '../session/session-login.js';
import type { Visit } from '../session/visit.js';
import { KeyedQueue } from '../waiting.js';

/** The callback of a connection. */
export interface ConnectionRequest extends SessionLoginRequest {
  /** The session when the callback began, as JSON. */
  readonly sessionAtStart: string | undefined;
}

/** Properties of a session that a request has changed, with their values: `undefined` for one that it has deleted. */
type SessionChanges = ReadonlyMap<string, unknown>;

/** Connections by the session's id. Each saves the whole session, so those of one session run one after the other. */
const connectionsOfSession = new KeyedQueue();

/** Prefix of the ids of locks on sessions in the token store. No grant's id begins with it. */
const SESSION_PREFIX = 'session:';

const NO_USER = 'No user is logged in, so this account cannot be connected. Please log in first.';

const OTHER_USER = 'The logged-in user changed while this account was being connected. Please connect it again.';

/**
 * Returns why a request cannot connect an account, if it cannot. If the option `grantId` derives ids from users, someone has to
 * be logged in: the id of the connected account may be that of another user here.
 *
 * @param userMark Of the user who began the connection: see `RequestGrants.userMarkOf`. Left out when it begins.
 * @throws ConfigurationError if nothing identifies the user, or the option makes no valid id
 */
export function connectionRefusal(grants: RequestGrants, req: IncomingMessage, userMark?: string): string | undefined {
  if (userMark !== undefined && userMark !== grants.userMarkOf(req, true)) return OTHER_USER;
  if (grants.idIsInSession) return undefined;
  const user = userOf(req);
  if (!user) return NO_USER;
  grants.newId(req, user);
  return undefined;
}

/**
 * Connects an account to the logged-in user, for `passport.authorize`: stores its grant, and writes the reference into the
 * session at once.
 *
 * @returns `undefined` if the user has logged out, or logged in again, since the callback began
 * @throws ConfigurationError if the response was already sent, or if the user logged in with another account
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
  // The grant belongs to the logged-in user. `verify` returns the connected account, whose id may be another user's here.
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
 * Throws if the user logged in with this strategy and another account: connecting an account would replace the grant of the
 * login.
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
 * Ends a connection while no other one of its session does: in this process, and in all others where the token store has
 * locks. A session without an id (cookie-session) is the request's alone.
 *
 * @throws TokenStoreError if the lock cannot be acquired
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
 * @param store Stores the grant, unless that is done.
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
  // The user may have logged out during the save.
  if (store && (await isGone())) {
    login.withdraw();
    return false;
  }
  const before = sessionOf(req);
  // Without a session there is nothing to write.
  if (!before) return true;
  const isAnonymous = !userOf(req);
  login.write(before, before, isAnonymous ? ANONYMOUS : true);
  try {
    const session = isAnonymous ? await regenerateSession(req, before) : before;
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
  login.succeeded();
  return true;
}

/** Returns what the request has changed in its session. @param start The session when the callback began, as JSON. */
function sessionChanges(req: IncomingMessage, start = '{}'): SessionChanges {
  const session = sessionOf(req) ?? {};
  const before: SessionLike = JSON.parse(start);
  const isChanged = (name: string) => JSON.stringify(session[name]) !== JSON.stringify(before[name]);
  const changed = Object.keys({ ...before, ...session }).filter((name) => name !== 'cookie' && isChanged(name));
  return new Map(changed.map((name) => [name, session[name]]));
}

/**
 * Loads the request's session again, since other requests of the browser may have changed it or logged the user out, and
 * repeats what this request has changed. A session that did not come with the request, or that has no store, stays.
 *
 * @returns the session; `undefined` if it is gone, or belongs to another user now
 * @throws TokenStoreError if the session store fails
 */
async function reloadSession(visit: Visit, changes: SessionChanges): Promise<SessionLike | undefined> {
  const { req } = visit;
  const before = sessionOf(req);
  const id: unknown = before && 'sessionID' in req ? req.sessionID : undefined;
  if (!before || typeof before.reload !== 'function' || typeof id !== 'string') return before;
  // A session that no cookie names is new: no store has it yet.
  if (!Object.values(visit.cookies).some((value) => value?.includes(id))) return before;
  const owner = JSON.stringify(passportRecordOf(req));
  try {
    await settle(before.reload.bind(before));
  } catch (error) {
    const isMissing =
      error instanceof Error && (Reflect.get(error, 'code') === 'ENOENT' || MISSING.test(error.message));
    if (isMissing) return undefined;
    throw sessionStoreFailed(error);
  }
  const session = sessionOf(req);
  if (!session || JSON.stringify(passportRecordOf(req)) !== owner) return undefined;
  for (const [name, value] of changes) {
    if (value === undefined) delete session[name];
    else session[name] = value;
  }
  return session;
}

const MISSING = /failed to load session/i;
