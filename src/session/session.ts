import type { IncomingMessage } from 'node:http';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';

/** Node's callback: an error, or nothing. */
export type Done = (error?: unknown) => void;

/** The members of a session that this package uses. Sessions of cookie-session have no methods. */
export interface SessionLike {
  [key: string]: unknown;
}

/** Returns the request's session, if there is one. */
export function sessionOf(req: IncomingMessage): SessionLike | undefined {
  const session: unknown = 'session' in req ? req.session : undefined;
  return typeof session === 'object' && session !== null ? (session as SessionLike) : undefined;
}

/** Returns what Passport keeps in the session of the user who is logged in; `undefined` if none is. */
export function passportRecordOf(req: IncomingMessage): unknown {
  const { passport } = sessionOf(req) ?? {};
  return typeof passport === 'object' && passport !== null ? Reflect.get(passport, 'user') : undefined;
}

/**
 * Returns true if Passport has removed the user from the session: `deserializeUser` has answered `false`, in this request or
 * in an earlier one.
 */
export function isRefusedUser(req: IncomingMessage, { passport }: SessionLike): boolean {
  return typeof passport === 'object' && passport !== null && !('user' in passport) && !userOf(req);
}

/** Saves the session now, if it has a method for that. @throws TokenStoreError if its store fails */
export async function saveSession(session: SessionLike): Promise<void> {
  const { save } = session;
  if (typeof save !== 'function') return;
  await settle((done) => save.call(session, done)).catch((error: unknown) => {
    throw sessionStoreFailed(error);
  });
}

/**
 * Adds the methods `regenerate` and `save` to a session that lacks them (cookie-session has no store). Passport calls them.
 *
 * Such a session has no id that an attacker could plant, so emptying it is enough. It is saved with the response.
 *
 * @param keepsInfo Passport's `keepSessionInfo`: the content stays.
 */
export function polyfillSessionMethods(session: SessionLike | undefined, keepsInfo: boolean): void {
  if (session === undefined || typeof session.regenerate === 'function') return;
  const regenerate = (done: Done): void => {
    if (!keepsInfo) emptySession(session);
    done();
  };
  const save = typeof session.save === 'function' ? session.save : (done?: Done) => done?.();
  for (const [name, value] of Object.entries({ regenerate, save })) {
    // Not enumerable: cookie-session would write it into the cookie.
    Object.defineProperty(session, name, { value, configurable: true, writable: true });
  }
}

/** Gives the request a new session with the content of the old one. Its id is known to this browser alone. @throws TokenStoreError */
export async function regenerateSession(req: IncomingMessage, session: SessionLike): Promise<SessionLike> {
  const { regenerate } = session;
  // Sessions of cookie-session have no id.
  if (typeof regenerate !== 'function') return session;
  const { cookie: _settings, ...content } = session;
  await settle((done) => regenerate.call(session, done)).catch((error: unknown) => {
    throw sessionStoreFailed(error);
  });
  return Object.assign(sessionOf(req) ?? session, content);
}

/** Deletes everything from a session except its cookie settings. */
export function emptySession(session: SessionLike): void {
  for (const name of Object.keys(session)) {
    if (name !== 'cookie') delete session[name];
  }
}

/** Creates the error for a failure of the application's session store. */
export function sessionStoreFailed(error: unknown): TokenStoreError {
  return new TokenStoreError('The session store failed. No login or logout took place; try again.', {
    code: 'ERR_SESSION_STORE',
    cause: safeCause(error),
  });
}

/** Settings of a session's cookie. */
export interface CookieSettings {
  readonly secure?: unknown;
  readonly sameSite?: unknown;
  readonly partitioned?: unknown;
}

/** Returns the settings of the session's cookie, of express-session or of cookie-session. */
export function cookieSettingsOf(req: IncomingMessage & { readonly sessionOptions?: unknown }): CookieSettings {
  const settings: unknown = sessionOf(req)?.cookie ?? req.sessionOptions;
  return typeof settings === 'object' && settings !== null ? settings : {};
}

/** Returns true if the session's cookie is `SameSite=None`: browsers send it in frames of other sites. */
export function isForFrames(req: IncomingMessage): boolean {
  return String(cookieSettingsOf(req).sameSite).toLowerCase() === 'none';
}

/** What Passport adds to a request. */
interface WithUser {
  readonly _userProperty?: unknown;
}

/** Returns the user that Passport has logged in. `passport.initialize({ userProperty })` may have renamed the property. */
export function userOf(req: IncomingMessage & WithUser): unknown {
  return Reflect.get(req, typeof req._userProperty === 'string' ? req._userProperty : 'user');
}

/** Sets the user of a request, as Passport would. */
export function setUser(req: IncomingMessage & WithUser, user: unknown): void {
  Reflect.set(req, typeof req._userProperty === 'string' ? req._userProperty : 'user', user);
}

/** Properties that identify a user, the first that is set: of records, of lean documents (MongoDB), of JWT claims. */
const ID_KEYS = ['id', '_id', 'sub', 'username'] as const;

/**
 * Returns a text that identifies a user, or `undefined` if the user has none of the properties `id`, `_id`, `sub` and
 * `username`. A user that is no object is its own id.
 */
export function userIdOf(user: unknown): string | undefined {
  let id: unknown = user;
  if (typeof user === 'object' && user !== null) {
    for (const key of ID_KEYS) {
      id = Reflect.get(user, key);
      if (id !== undefined && id !== null && id !== '') break;
    }
  }
  if (id === undefined || id === null || id === '') return undefined;
  if (typeof id !== 'object') return String(id);
  const text = JSON.stringify(id);
  // An object that shows nothing of itself would be the same for all users.
  return text === undefined || text === '{}' || text === '[]' ? undefined : text;
}

/** Waits for a method of Passport or of a session that takes a callback, or returns a promise, or does both. Rejects with its error. */
export function settle(call: (done: (error?: unknown) => void) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    callOnce(call, (error) => (error ? reject(error) : resolve()));
  });
}

/**
 * Calls a method that takes a callback, or returns a promise of any library, or does both. `done` is called by the first of
 * them, once.
 *
 * @returns what the method has returned
 */
export function callOnce(call: (once: (error?: unknown) => void) => unknown, done: (error?: unknown) => void): unknown {
  let isDone = false;
  const once = (error?: unknown) => {
    if (isDone) return;
    isDone = true;
    done(error);
  };
  const returned = call(once);
  if (typeof returned === 'object' && returned !== null && 'then' in returned) {
    Promise.resolve(returned).then(
      () => once(),
      (error: unknown) => once(error || new Error('A promise was rejected without a reason')),
    );
  }
  return returned;
}
