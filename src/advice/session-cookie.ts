import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { isPartitioned } from '../session/cookies.js';
import { cookieSettingsOf, sessionOf } from '../session/session.js';
import { isInFrame, type Visit } from '../session/visit.js';

/** Throws if express-session will not set its cookie on this connection: the login would be lost. @throws ConfigurationError */
export function refuseUnsetSession(req: IncomingMessage & { readonly secure?: unknown }): void {
  if (!sessionOf(req) || cookieSettingsOf(req).secure !== true) return;
  const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true;
  // express-session's option `proxy` trusts the header without Express' setting.
  const mayBeTrusted = /^\s*https\b/i.test(String(req.headers['x-forwarded-proto'] ?? ''));
  if (isEncrypted || req.secure === true || mayBeTrusted) return;
  throw dropped(
    "is secure, and this request came over plain http, so that it is not set. Behind a proxy with https, set Express' trust proxy; without https, set cookie.secure to 'auto'.",
  );
}

/** Throws if the session cookie is SameSite=Strict. A callback that responds with a page works. @throws ConfigurationError */
export function refuseStrictSession(req: IncomingMessage): void {
  if (isStrict(req))
    throw dropped(
      'is SameSite=Strict, and browsers leave it out of a redirect that follows a callback from another site. Set cookie.sameSite to lax.',
    );
}

function isStrict(req: IncomingMessage): boolean {
  const { sameSite } = cookieSettingsOf(req);
  return sameSite === 'strict' || sameSite === true;
}

/** Throws if a login in a frame of another site would be lost, or would not stay in there. @throws ConfigurationError */
export function refuseUnpartitionedSession({ req, headers, isSecure }: Visit): void {
  const { 'sec-fetch-site': site, 'sec-fetch-storage-access': access } = headers;
  // After a link inside the frame, only Sec-Fetch-Storage-Access shows that the frame is of another site.
  if (!isInFrame(headers) || (site !== 'cross-site' && access === undefined)) return;
  if (isPartitioned(req) && (cookieSettingsOf(req).secure || !isSecure)) return;
  throw dropped(
    `is not Partitioned, which a login in a frame of another site needs: browsers block other cookies there, and where they do not, a foreign page could log the user's own tabs in. ${PARTITION}`,
  );
}

const PARTITION =
  "Set cookie.sameSite to 'none', cookie.secure and cookie.partitioned to true (express-session 1.18 or newer), and give the cookie a name that it did not have before.";

function dropped(reason: string): ConfigurationError {
  const message = `The login would be lost: the session cookie ${reason}`;
  return new ConfigurationError(message, { code: 'ERR_SESSION_COOKIE' });
}

/**
 * Returns the likely cause of a lost cookie if the request shows it: a cookie that the browser has twice, or a frame.
 *
 * @see https://privacycg.github.io/storage-access-headers/
 */
export function lostCookieCause({ headers, cookieHeader }: Visit): string | undefined {
  const { 'sec-fetch-storage-access': access } = headers;
  const names = cookieHeader.split(';').map((pair) => pair.slice(0, Math.max(pair.indexOf('='), 0)).trim());
  const twin = names.find((name, index) => /^[\w.%-]{1,64}$/.test(name) && names.indexOf(name) < index);
  if (twin !== undefined) {
    return `The browser has two cookies named ${twin}, and sends the older one first: it was set before its attributes changed, such as Partitioned, domain or path. Give the session cookie another name.`;
  }
  if (!isInFrame(headers)) return undefined;
  const isBlocked = access === 'none' || access === 'inactive';
  const blocked = isBlocked ? 'where this browser blocks third-party cookies' : 'where browsers may block cookies';
  return `The application is in a frame, ${blocked}. ${PARTITION}`;
}

/** Returns the likely cause of a session that did not come back. */
export function lostSessionCause(visit: Visit): string {
  if (isStrict(visit.req)) {
    return 'Its session cookie is SameSite=Strict, which browsers leave out when they come from the service: set sameSite to lax.';
  }
  const seen = lostCookieCause(visit);
  if (seen !== undefined) return seen;
  if (cookieSettingsOf(visit.req).secure) {
    return "Its session cookie is secure, and express-session sets it only where it sees https: behind a proxy, set Express' trust proxy.";
  }
  return `Likely causes: the session cookie is dropped (secure without https, SameSite=Strict, another domain or path, larger than 4 KB), the session store loses sessions, sessions live in the memory of one of several processes, requireAuthorization() or apiClient() stands before the session, deserializeUser refuses the user, the option grantId returns another id for the user of deserializeUser than for that of verify, or failureRedirect leads to the login route.`;
}
