import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { ConfigurationError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { settle, userOf, whenSettled } from './incoming-request.js';

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

/**
 * Returns a short text that differs for each logged-in user, and is empty if nobody is logged in.
 *
 * Passport's record in the session identifies the user: other properties of `req.user` may change between requests.
 */
export function userMarkOf(req: IncomingMessage): string {
  const user = userOf(req);
  const { passport } = sessionOf(req) ?? {};
  const record: unknown = typeof passport === 'object' && passport !== null ? Reflect.get(passport, 'user') : undefined;
  if ((user === undefined || user === null) && record === undefined) return '';
  const id: unknown = record ?? (typeof user === 'object' && user !== null ? Reflect.get(user, 'id') : user);
  return createHash('sha256')
    .update(JSON.stringify(id) ?? '')
    .digest('base64url')
    .slice(0, 11);
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
 * Adds the methods `regenerate` and `save` to a session that has no store (cookie-session). Passport calls them.
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
  for (const [name, value] of Object.entries({ regenerate, save: (done?: Done) => done?.() })) {
    // Not enumerable: cookie-session would write it into the cookie.
    Object.defineProperty(session, name, { value, configurable: true, writable: true });
  }
}

/** Gives the request a new session with the content of the old one. Nobody else knows its id. @throws TokenStoreError */
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

/** Calls `then` after the next successful call of a session's callback method, and replaces its error by one of ours. */
export function intercept(session: SessionLike, method: 'regenerate' | 'save', then?: () => void): void {
  const original = session[method];
  if (typeof original !== 'function') return;
  const own = Object.getOwnPropertyDescriptor(session, method);
  const intercepted = function (this: unknown, done?: Done) {
    delete session[method];
    if (own) Object.defineProperty(session, method, own);
    let ended = false;
    const end: Done = (error) => {
      if (ended) return;
      ended = true;
      if (!error) then?.();
      done?.(error ? sessionStoreFailed(error) : undefined);
    };
    const returned: unknown = original.call(this, end);
    whenSettled(returned, end);
    return returned;
  };
  // Not enumerable: Passport would copy it along with the session.
  Object.defineProperty(session, method, { value: intercepted, configurable: true, enumerable: false, writable: true });
}

/** Deletes everything from a session except its cookie settings. */
export function emptySession(session: SessionLike): void {
  for (const name of Object.keys(session)) {
    if (name !== 'cookie') delete session[name];
  }
}

/** Creates the error for a failure of the application's session store. */
export function sessionStoreFailed(error: unknown): TokenStoreError {
  return new TokenStoreError('The session store failed. Nobody was logged in or out; try again.', {
    code: 'ERR_SESSION_STORE',
    cause: safeCause(error),
  });
}

/** Throws if express-session will not set its cookie on this connection: the login would be lost. @throws ConfigurationError */
export function refuseUnsetSession(req: IncomingMessage & { readonly secure?: unknown }): void {
  if (cookieSettingsOf(req).secure !== true) return;
  const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true;
  // express-session's option `proxy` trusts the header without Express' setting.
  const mayBeTrusted = /^\s*https\b/i.test(String(req.headers['x-forwarded-proto'] ?? ''));
  if (isEncrypted || req.secure === true || mayBeTrusted) return;
  throw dropped(
    "is secure, and this request came over plain http, so that express-session does not set it. Behind a proxy with https, set Express' trust proxy; without https, set cookie.secure to 'auto'.",
  );
}

/**
 * Throws if the browser will leave the session cookie out of the page that a callback redirects to: it does so for
 * SameSite=Strict where another site has sent it to the callback. A callback that answers with a page of its own works.
 *
 * @throws ConfigurationError
 */
export function refuseStrictSession(req: IncomingMessage): void {
  if (req.headers['sec-fetch-site'] !== 'cross-site') return;
  const { sameSite } = cookieSettingsOf(req);
  if (sameSite !== 'strict' && sameSite !== true) return;
  throw dropped(
    'is SameSite=Strict, and browsers leave it out of a redirect that follows a callback from another site. Set cookie.sameSite to lax.',
  );
}

/** Returns the settings of express-session's cookie. */
export function cookieSettingsOf(req: IncomingMessage): { readonly secure?: unknown; readonly sameSite?: unknown } {
  const cookie: unknown = sessionOf(req)?.cookie;
  return typeof cookie === 'object' && cookie !== null ? cookie : {};
}

function dropped(reason: string): ConfigurationError {
  return new ConfigurationError(`The login would be lost: the session cookie ${reason}`, {
    code: 'ERR_SESSION_COOKIE',
  });
}
