import type { IncomingMessage } from 'node:http';
import { ConfigurationError } from '../errors.js';
import { sessionOf } from '../request/session.js';

/** Options of `passport.authenticate` that redirect after a login. */
export interface RedirectOptions {
  readonly successRedirect?: unknown;
  readonly successReturnToOrRedirect?: unknown;
  readonly failureRedirect?: unknown;
}

/** Throws if express-session will not set its cookie on this connection: the login would be lost. @throws ConfigurationError */
export function refuseUnsetSession(req: IncomingMessage & { readonly secure?: unknown }): void {
  const isEncrypted = 'encrypted' in req.socket && req.socket.encrypted === true;
  // express-session's option `proxy` trusts the header without Express' setting.
  const mayBeTrusted = /^\s*https\b/i.test(String(req.headers['x-forwarded-proto'] ?? ''));
  if (settingOf(req, 'secure') !== true || isEncrypted || req.secure === true || mayBeTrusted) return;
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
export function refuseStrictSession(req: IncomingMessage, options: RedirectOptions): void {
  const sameSite = settingOf(req, 'sameSite');
  const redirects = Boolean(options.successRedirect ?? options.successReturnToOrRedirect);
  if ((sameSite !== 'strict' && sameSite !== true) || req.headers['sec-fetch-site'] !== 'cross-site' || !redirects)
    return;
  throw dropped(
    'is SameSite=Strict, and browsers leave it out of a redirect that follows a callback from another site. Set cookie.sameSite to lax.',
  );
}

/** Returns a setting of express-session's cookie. */
export function settingOf(req: IncomingMessage, name: 'secure' | 'sameSite'): unknown {
  const cookie: unknown = sessionOf(req)?.cookie;
  return typeof cookie === 'object' && cookie !== null ? Reflect.get(cookie, name) : undefined;
}

function dropped(reason: string): ConfigurationError {
  return new ConfigurationError(`The login would be lost: the session cookie ${reason}`, {
    code: 'ERR_SESSION_COOKIE',
  });
}
