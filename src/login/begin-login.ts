import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { originalUrl, redirectUriFor } from '../request/incoming-request.js';
import { takeReturnTo } from '../request/return-cookie.js';
import { safeReturnTo } from '../request/return-to.js';
import type { LoginContext } from './login-context.js';

/** What an application may set for one login alone, in the options of `passport.authenticate`. */
export interface LoginOptions {
  readonly scope?: unknown;
  readonly callbackURL?: unknown;
}

/**
 * Begins a login: gives the browser its cookie, and returns the URL of the authorization request.
 *
 * @throws ConfigurationError for options of `passport.authenticate` that cannot be
 * @see service.md, 4.1; RFC 6749, 4.1.1; RFC 7636, 4.3
 */
export function beginLogin(
  context: LoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  options: LoginOptions,
): string {
  const { settings, logins } = context;
  const callbackURL = callbackUrlOf(options) ?? settings.callbackURL;
  const scope = check.optional(options.scope, (value) => check.scope('scope', value)) ?? settings.scope;
  const redirectUri = redirectUriFor(req, callbackURL);
  const returnTo = returnToOf(req, res);
  const { state, codeChallenge, cookies } = logins.begin(req, { redirectUri, returnTo }, settings.pkce);
  for (const cookie of cookies) res.appendHeader('Set-Cookie', cookie);
  const query = new URLSearchParams({
    client_id: settings.clientID,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope,
    state,
  });
  if (codeChallenge !== undefined) {
    query.set('code_challenge', codeChallenge);
    query.set('code_challenge_method', 'S256');
  }
  return `${settings.authUrl}/oauth/authorize?${query}`;
}

/** The option `callbackURL` of one route. @throws ConfigurationError for what is no URL */
export function callbackUrlOf(options: LoginOptions): string | undefined {
  return check.optional(options.callbackURL, (value) => check.callbackUrl('callbackURL', value));
}

/** Where the login is to lead: what its own URL says (`/login?returnTo=/projects`), or what `requireAuthorization` left. */
function returnToOf(req: IncomingMessage, res: ServerResponse): string | undefined {
  const left = takeReturnTo(req, res);
  const url = originalUrl(req);
  const start = url.indexOf('?');
  const told = start < 0 ? [] : new URLSearchParams(url.slice(start + 1)).getAll('returnTo');
  if (told.length === 0) return left;
  return told.length === 1 ? safeReturnTo(told[0]) : '/';
}
