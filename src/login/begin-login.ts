import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { endpointUrl } from '../oauth/addresses.js';
import { originalUrl, queryOf, redirectUriFor } from '../request/incoming-request.js';
import { type ReturnCookie, safeReturnTo } from '../request/return-to.js';
import { userMarkOf } from '../request/session.js';
import type { HostMismatches } from './host-mismatches.js';
import type { PendingLogins } from './pending-logins.js';

/** Options of `passport.authenticate` that an application may set for one route. */
export interface LoginOptions {
  readonly scope?: unknown;
  readonly callbackURL?: unknown;
  /** Set by `passport.authorize`, which connects an account and logs nobody in. */
  readonly assignProperty?: unknown;
}

/** What a login is begun with. */
export interface BeginLoginContext {
  readonly settings: {
    /** `{auth_url}` */
    readonly authUrl: string;
    readonly authorizationPath: string;
    readonly authorizationParams: Readonly<Record<string, string>> | ((req: IncomingMessage) => unknown);
    readonly scopeSeparator: string;
    readonly clientID: string;
    readonly callbackURL: string;
    readonly scope: string;
    readonly pkce: boolean;
  };
  readonly pendingLogins: PendingLogins;
  readonly returnCookie: ReturnCookie;
  readonly hostMismatches: HostMismatches;
}

/**
 * Begins a login: sets the browser's cookie, and returns the URL of the authorization request, or `undefined`
 * if `callbackURL` is relative and the request names no host.
 *
 * @throws ConfigurationError for invalid options of `passport.authenticate`
 * @see service.md, 4.1; RFC 6749, 4.1.1; RFC 7636, 4.3
 */
export function beginLogin(
  { settings, pendingLogins, returnCookie, hostMismatches }: BeginLoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  options: LoginOptions,
): string | undefined {
  const scope = options.scope === undefined ? settings.scope : check.scope('scope', options.scope);
  const redirectUri = redirectUriFor(req, callbackUrlOf(options) ?? settings.callbackURL);
  if (redirectUri === undefined) return undefined;
  const remembered = returnCookie.take(req, res);
  const [requested, ...others] = queryOf(originalUrl(req)).getAll('returnTo');
  const returnTo = requested === undefined ? remembered : safeReturnTo(others.length === 0 ? requested : undefined);
  const login = { redirectUri, returnTo, isConnection: Boolean(options.assignProperty), userMark: userMarkOf(req) };
  const { state, codeChallenge, cookies } = pendingLogins.begin(req, login, settings.pkce);
  hostMismatches.note(req, redirectUri, state);
  for (const cookie of cookies) res.appendHeader('Set-Cookie', cookie);
  const { authorizationParams: params } = settings;
  const query = new URLSearchParams({
    client_id: settings.clientID,
    redirect_uri: redirectUri,
    response_type: 'code',
    // Services without scopes get none.
    ...(scope === '' ? {} : { scope: scope.replaceAll(' ', settings.scopeSeparator) }),
    state,
    ...(typeof params === 'function' ? check.authorizationParams('authorizationParams', params(req)) : params),
  });
  if (codeChallenge !== undefined) {
    query.set('code_challenge', codeChallenge);
    query.set('code_challenge_method', 'S256');
  }
  return `${endpointUrl(settings.authUrl, settings.authorizationPath)}?${query}`;
}

/** Returns the option `callbackURL` of one route. @throws ConfigurationError for an invalid URL */
export function callbackUrlOf(options: LoginOptions): string | undefined {
  const { callbackURL } = options;
  return callbackURL === undefined ? undefined : check.callbackUrl('callbackURL', callbackURL);
}
