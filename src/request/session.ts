import type { IncomingMessage } from 'node:http';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';

type Done = (error?: unknown) => void;

/** As much of a session as this package touches; express-session's, or cookie-session's, which has no methods. */
export interface SessionLike {
  [key: string]: unknown;
}

/** The request's session, where there is one. */
export function sessionOf(req: IncomingMessage): SessionLike | undefined {
  const session: unknown = 'session' in req ? req.session : undefined;
  return typeof session === 'object' && session !== null ? (session as SessionLike) : undefined;
}

/** Saves the session now, if it is of the kind that is saved. @throws TokenStoreError if its store fails */
export function saveSession(session: SessionLike): Promise<void> {
  return new Promise((resolve, reject) => {
    if (typeof session.save !== 'function') return resolve();
    try {
      session.save((error: unknown) => (error ? reject(sessionStoreFailed(error)) : resolve()));
    } catch (error) {
      reject(sessionStoreFailed(error));
    }
  });
}

/**
 * Gives a session without a store, cookie-session's, the two methods that Passport calls at login and logout: it has
 * no id that somebody could know beforehand, so its content is all there is to renew, and it is saved with the response.
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
    // Not enumerable, or it would be written into the cookie.
    Object.defineProperty(session, name, { value, configurable: true, writable: true });
  }
}

/** Takes everything out of a session but what is the session's own. */
export function emptySession(session: SessionLike): void {
  for (const name of Object.keys(session)) {
    if (name !== 'cookie') delete session[name];
  }
}

/** The error of an application's session store that failed. */
export function sessionStoreFailed(error: unknown): TokenStoreError {
  return new TokenStoreError('The session store failed. Nobody was logged in or out; a new try can succeed.', {
    code: 'ERR_SESSION_STORE',
    cause: safeCause(error),
  });
}

/**
 * Lets a value be written into the session that `session` gives way to when it is regenerated, before that one is
 * saved for the first time.
 *
 * Passport regenerates the session at login, then writes the user into the new one and saves it. Written there
 * together with the user, the value needs no save of its own and no `keepSessionInfo`.
 *
 * @param current Gets the new session, once the old one was regenerated.
 */
export function onRegeneration(
  session: SessionLike,
  current: () => SessionLike | undefined,
  write: (session: SessionLike) => void,
): void {
  intercept(session, 'regenerate', () => {
    const next = current();
    if (!next) return;
    write(next);
    intercept(next, 'save', () => {});
  });
  // With keepSessionInfo Passport copies the old session over the new one.
  write(session);
}

/** Has `then` run when a callback method of the session has done its work, and its error told as ours. Once. */
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
  // Not enumerable, or it would be copied along with the session.
  Object.defineProperty(session, method, { value: intercepted, configurable: true, enumerable: false, writable: true });
}
