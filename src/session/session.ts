import type { IncomingMessage } from 'node:http';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';

/** Node's callback: an error, or nothing. */
export type Done = (error?: unknown) => void;

/** Passport's `req.logIn`. */
export type LogIn = (this: IncomingMessage, user: unknown, options: unknown, done?: Done) => unknown;

/** A session of any kind. Those of cookie-session have no methods. */
export interface SessionLike {
  [key: string]: unknown;
}

/** Returns the request's session, if there is one. */
export function sessionOf(req: IncomingMessage): SessionLike | undefined {
  const session: unknown = 'session' in req ? req.session : undefined;
  return typeof session === 'object' && session !== null ? (session as SessionLike) : undefined;
}

/** Returns what Passport keeps in the session of the logged-in user; `undefined` without one. */
export function passportRecordOf(req: IncomingMessage): unknown {
  const { passport } = sessionOf(req) ?? {};
  return typeof passport === 'object' && passport !== null ? Reflect.get(passport, 'user') : undefined;
}

/** Returns true if `deserializeUser` answered `false`, in this request or an earlier one: Passport then removes the user. */
export function isRefusedUser(req: IncomingMessage, { passport }: SessionLike): boolean {
  return typeof passport === 'object' && passport !== null && !('user' in passport) && !userOf(req);
}

/** Saves the session now, if it has a method for that. @throws TokenStoreError if its store fails */
export async function saveSession(session: SessionLike): Promise<void> {
  if (typeof session.save === 'function') await settleInStore(session.save.bind(session));
}

/**
 * Adds the methods `regenerate` and `save`, which Passport calls, to a session that lacks them (cookie-session has no store).
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

/** Gives the request a new session with the content of the old one. Only this browser knows its id. @throws TokenStoreError */
export async function regenerateSession(req: IncomingMessage, session: SessionLike): Promise<SessionLike> {
  const { regenerate, cookie: _settings, ...content } = session;
  // Sessions of cookie-session have no id.
  if (typeof regenerate !== 'function') return session;
  await settleInStore(regenerate.bind(session));
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
export type CookieSettings = { readonly [Name in 'secure' | 'sameSite' | 'partitioned']?: unknown };

/** Returns the settings of the session's cookie, of express-session or of cookie-session. */
export function cookieSettingsOf(req: IncomingMessage & { readonly sessionOptions?: unknown }): CookieSettings {
  const settings: unknown = sessionOf(req)?.cookie ?? req.sessionOptions;
  return typeof settings === 'object' && settings !== null ? settings : {};
}

/** Passport's name for the property that holds the user: `passport.initialize({ userProperty })` sets it. */
type WithUser = { readonly _userProperty?: unknown };

/** Returns the user that Passport logged in. */
export function userOf(req: IncomingMessage & WithUser): unknown {
  return Reflect.get(req, typeof req._userProperty === 'string' ? req._userProperty : 'user');
}

/** Sets the user of a request, as Passport would. */
export function setUser(req: IncomingMessage & WithUser, user: unknown): void {
  Reflect.set(req, typeof req._userProperty === 'string' ? req._userProperty : 'user', user);
}

/** Properties that identify a user, the first that is set: of records, of lean documents (MongoDB), of JWT claims. */
const ID_KEYS = ['id', '_id', 'sub', 'username'] as const;

/** Returns a text that identifies a user by one of {@link ID_KEYS}; `undefined` without any. A user that is no object is the id. */
export function userIdOf(user: unknown): string | undefined {
  const isObject = typeof user === 'object' && user !== null;
  let id: unknown = isObject ? undefined : user;
  if (isObject) for (const key of ID_KEYS) if ((id ?? '') === '') id = Reflect.get(user, key);
  if ((id ?? '') === '') return undefined;
  if (typeof id !== 'object') return String(id);
  const text = JSON.stringify(id);
  // An object without visible content would be the same for all users.
  return text === undefined || text === '{}' || text === '[]' ? undefined : text;
}

/** Waits for a method that {@link callOnce} calls. Rejects with its error. */
export function settle(call: (done: Done) => unknown): Promise<void> {
  return new Promise((resolve, reject) => {
    callOnce(call, (error) => (error ? reject(error) : resolve()));
  });
}

/** Waits for a method that needs the session store. @throws TokenStoreError */
export async function settleInStore(call: (done: Done) => unknown): Promise<void> {
  await settle(call).catch((error: unknown) => {
    throw sessionStoreFailed(error);
  });
}

/**
 * Calls a method that takes a callback, returns a promise of any library, or does both. The first of them calls `done`, once.
 *
 * @param others Arguments that follow the callback.
 * @returns what the method returned
 */
export function callOnce(
  call: (once: Done, ...others: readonly unknown[]) => unknown,
  done: Done,
  ...others: readonly unknown[]
): unknown {
  let isDone = false;
  const once = (error?: unknown) => {
    if (isDone) return;
    isDone = true;
    done(error);
  };
  const returned = call(once, ...others);
  if (typeof returned === 'object' && returned !== null && 'then' in returned) {
    Promise.resolve(returned).then(
      () => once(),
      (error: unknown) => once(error || new Error('A promise was rejected without a reason')),
    );
  }
  return returned;
}
