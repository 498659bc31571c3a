import type { IncomingMessage } from 'node:http';
import { parseCookie } from 'cookie';
import { ConfigurationError, TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { isInForeignFrame, isInFrame, isSecure, settle, userOf } from './incoming-request.js';

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

/** Returns what Passport keeps in the session of the user who is logged in; `undefined` if nobody is. */
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

/** The content of a session at one moment: JSON by property, without the cookie's settings. */
export type SessionContent = ReadonlyMap<string, string | undefined>;

/** Returns the content of the request's session. */
export function sessionContent(req: IncomingMessage): SessionContent {
  const { cookie: _settings, ...content } = sessionOf(req) ?? {};
  return new Map(Object.entries(content).map(([name, value]) => [name, JSON.stringify(value)]));
}

/** Properties of a session that a request has changed, with their values: `undefined` for one that it has deleted. */
export type SessionChanges = ReadonlyMap<string, unknown>;

/** Returns what the request has changed in its session. @param start The content when the request began. */
export function sessionChanges(req: IncomingMessage, start: SessionContent): SessionChanges {
  const session = sessionOf(req) ?? {};
  const names = [...new Set([...start.keys(), ...Object.keys(session)])];
  const changed = names.filter((name) => name !== 'cookie' && JSON.stringify(session[name]) !== start.get(name));
  return new Map(changed.map((name) => [name, session[name]]));
}

/**
 * Loads the request's session again, since other requests of the browser may have changed it or logged the user out, and
 * repeats what this request has changed. A session that the browser has not brought along, or that has no store, stays.
 *
 * @returns the session; `undefined` if it is gone, or belongs to another user now
 * @throws TokenStoreError if the store of the sessions fails
 */
export async function reloadSession(req: IncomingMessage, changes: SessionChanges): Promise<SessionLike | undefined> {
  const before = sessionOf(req);
  const id: unknown = before && 'sessionID' in req ? req.sessionID : undefined;
  if (!before || typeof before.reload !== 'function' || !isBroughtAlong(req, id)) return before;
  const { reload } = before;
  const owner = JSON.stringify(passportRecordOf(req));
  const isThere = await settle((done) => reload.call(before, done)).then(
    () => true,
    (error: unknown) => {
      const isMissing =
        error instanceof Error && (Reflect.get(error, 'code') === 'ENOENT' || MISSING.test(error.message));
      if (isMissing) return false;
      throw sessionStoreFailed(error);
    },
  );
  const session = sessionOf(req);
  if (!isThere || !session || JSON.stringify(passportRecordOf(req)) !== owner) return undefined;
  for (const [name, value] of changes) {
    if (value === undefined) delete session[name];
    else session[name] = value;
  }
  return session;
}

/** The message of express-session's `reload` for a session that its store no longer has. */
const MISSING = /failed to load session/i;

/** Returns true if a cookie of the request names the session: a new one is in no store yet. */
function isBroughtAlong({ headers }: IncomingMessage, id: unknown): boolean {
  if (typeof id !== 'string') return false;
  return Object.values(parseCookie(headers.cookie ?? '')).some((value) => value?.includes(id));
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
    "is secure, and this request came over plain http, so that it is not set. Behind a proxy with https, set Express' trust proxy; without https, set cookie.secure to 'auto'.",
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

/**
 * Throws if a login in a frame of another site would be lost, or would not stay in there: its session has to be
 * `Partitioned`. With `SameSite=None` alone, a foreign page that frames the login route could log the user's own tabs in.
 *
 * @throws ConfigurationError
 */
export function refuseUnpartitionedSession(req: IncomingMessage): void {
  if (!isInForeignFrame(req)) return;
  const { partitioned, secure } = cookieSettingsOf(req);
  if (partitioned === true && isForFrames(req) && (secure || !isSecure(req))) return;
  throw dropped(
    `is not Partitioned, which a login in a frame of another site needs: browsers block other cookies there, and where they do not, a foreign page could log the user's own tabs in. ${PARTITION}`,
  );
}

const PARTITION =
  "Set cookie.sameSite to 'none', cookie.secure and cookie.partitioned to true (express-session 1.18 or newer), and give the cookie a name that it did not have before.";

/**
 * Returns the likely cause of a lost cookie, where the request shows it: a cookie that the browser has twice, or a frame.
 *
 * @see https://privacycg.github.io/storage-access-headers/
 */
export function lostCookieCause(req: IncomingMessage): string | undefined {
  const { cookie = '', 'sec-fetch-storage-access': access } = req.headers;
  const names = cookie.split(';').map((pair) => pair.slice(0, Math.max(pair.indexOf('='), 0)).trim());
  const twin = names.find((name, index) => /^[\w.%-]{1,64}$/.test(name) && names.indexOf(name) < index);
  if (twin !== undefined) {
    return `The browser has two cookies named ${twin}, and sends the older one first: it was set before its attributes changed, such as Partitioned, domain or path. Give the session cookie another name.`;
  }
  if (!isInFrame(req)) return undefined;
  const isBlocked = access === 'none' || access === 'inactive';
  const blocked = isBlocked ? 'where this browser blocks third-party cookies' : 'where browsers may block cookies';
  return `The application is in a frame, ${blocked}. ${PARTITION}`;
}

/**
 * Throws if Passport cannot log in with the request's session: it has no `regenerate`, and a `save` that cannot be replaced and
 * does not call back (iron-session).
 *
 * @throws ConfigurationError
 */
export function refuseFixedSession(session: SessionLike): void {
  if (typeof session.regenerate === 'function') return;
  const isFixed = Object.getOwnPropertyDescriptor(session, 'save')?.configurable === false;
  if (!isFixed && Object.isExtensible(session)) return;
  throw new ConfigurationError(
    'Passport cannot log in with this session: it has no method regenerate, and its save cannot be replaced (iron-session). Use express-session, or cookie-session with the option tokenStore.',
    { code: 'ERR_SESSION_TYPE' },
  );
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

function dropped(reason: string): ConfigurationError {
  return new ConfigurationError(`The login would be lost: the session cookie ${reason}`, {
    code: 'ERR_SESSION_COOKIE',
  });
}
