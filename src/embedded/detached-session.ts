import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';
import {
  cookieSettingsOf,
  type Done,
  passportRecordOf,
  type SessionLike,
  sessionOf,
  setUser,
  userOf,
} from '../session/session.js';

/** A session of one request, which no store and no cookie know. */
export interface DetachedSession {
  /** True once the application has logged the user out again, by any means that works on a stored session. */
  readonly hasEnded: boolean;
  /** `cookie.originalMaxAge` as the application has set it, in milliseconds; `undefined` if it has not. */
  readonly maxAge: unknown;
  /** Called when the application has called a method that may log the user out. */
  onChange: () => void;
}

/**
 * Replaces the request's session with an empty, detached one that has the methods of express-session. From then on the
 * browser's own session is neither read nor written.
 */
export function detachSession(req: IncomingMessage): DetachedSession {
  const settings = cookieSettingsOf(req);
  let saved: string | undefined;
  let wasLoggedIn = false;

  const attach = (content: object = {}) => {
    // A copy: the browser's own session keeps its settings.
    const cookie: object = Object.create(Object.getPrototypeOf(settings), Object.getOwnPropertyDescriptors(settings));
    const session: SessionLike = { ...content };
    const members = {
      cookie,
      regenerate: (done?: Done) => {
        attach();
        detached.onChange();
        done?.();
      },
      save: (done?: Done) => {
        saved = JSON.stringify(session);
        wasLoggedIn ||= passportRecordOf(req) !== undefined;
        detached.onChange();
        done?.();
      },
      reload: (done?: Done) => {
        if (saved === undefined) return done?.(new Error('failed to load session'));
        attach(JSON.parse(saved));
        done?.();
      },
      destroy: (done?: Done) => {
        Reflect.set(req, 'session', undefined);
        detached.onChange();
        done?.();
      },
      touch: () => session,
      resetMaxAge: () => session,
    };
    // Not enumerable: they are no content.
    for (const [name, value] of Object.entries(members))
      Object.defineProperty(session, name, { value, configurable: true, writable: true });
    Object.defineProperty(session, 'id', { get: refuseId, configurable: true });
    Object.defineProperty(req, 'session', { value: session, configurable: true, enumerable: true, writable: true });
  };

  const detached: DetachedSession = {
    onChange: () => {},
    get hasEnded() {
      const isLoggedIn = passportRecordOf(req) !== undefined;
      // Passport's `logOut` sets the user to null.
      return !sessionOf(req) || userOf(req) === null || (wasLoggedIn && !isLoggedIn);
    },
    get maxAge() {
      const cookie = sessionOf(req)?.cookie;
      if (typeof cookie !== 'object' || cookie === null) return undefined;
      // A setting that was made, even to the same value, is another date.
      const isSet = Reflect.get(cookie, 'expires') !== Reflect.get(settings, 'expires');
      return isSet ? Reflect.get(cookie, 'originalMaxAge') : undefined;
    },
  };
  attach();
  // Without an id express-session saves, touches and destroys nothing, and sets no cookie.
  if ('sessionID' in req) req.sessionID = undefined;
  setUser(req, undefined);
  return detached;
}

function refuseId(): never {
  throw new ConfigurationError(
    'The session of a popup has no id: the frame gets a session with an id when it takes the login. Read session.id in requests of the frame.',
    { code: 'ERR_NO_SESSION' },
  );
}
