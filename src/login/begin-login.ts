import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { endpointUrl } from '../oauth/addresses.js';
import type { RequestGrants } from '../session/grant-reference.js';
import { hostOf, isSecure, originalUrl, queryOf, redirectUriFor } from '../session/incoming-request.js';
import { type ReturnCookie, safeReturnTo } from '../session/return-cookie.js';
import type { StepUps } from '../step-up/step-ups.js';
import type { PendingLogins } from './pending-logins.js';
import type { Popups } from './popups.js';

/** Options of `passport.authenticate` that an application may set for one route. */
export interface LoginOptions {
  readonly scope?: unknown;
  readonly callbackURL?: unknown;
  /** Further parameters of the authorization request, for this route. They replace those of the strategy. */
  readonly authorizationParams?: unknown;
  /** Set by `passport.authorize`, which connects an account and logs nobody in. */
  readonly assignProperty?: unknown;
}

/** The settings of the authorization request. */
export interface AuthorizationRequestSettings {
  /** `{auth_url}` */
  readonly authUrl: string;
  readonly authorizationPath: string;
  readonly scopeSeparator: string;
  readonly clientID: string;
}

/** What a login is begun with. */
export interface BeginLoginContext {
  readonly settings: AuthorizationRequestSettings & {
    readonly authorizationParams: Readonly<Record<string, string>> | ((req: IncomingMessage) => unknown);
    readonly callbackURL: string;
    readonly scope: string;
    readonly pkce: boolean;
  };
  /** For the strategy's own `callbackURL` and `scope`. */
  readonly usualRequest: AuthorizationRequest;
  /** The strategy's own, unless they depend on the request. */
  readonly usualParams: FurtherParams | undefined;
  readonly grants: RequestGrants;
  readonly pendingLogins: PendingLogins;
  readonly returnCookie: ReturnCookie;
  readonly stepUps: StepUps;
  readonly hostMismatches: HostMismatches;
  /** `undefined` for applications without frames. */
  readonly popups: Popups | undefined;
}

/**
 * Begins a login: sets the browser's cookie, and returns the URL of the authorization request, or `undefined`
 * if `callbackURL` is relative and the request names no host.
 *
 * @param callbackURL That of the route, else that of the strategy.
 * @throws ConfigurationError for invalid options of `passport.authenticate`
 * @see service.md, 4.1; RFC 6749, 4.1.1; RFC 7636, 4.3
 */
export function beginLogin(
  context: BeginLoginContext,
  req: IncomingMessage,
  res: ServerResponse,
  callbackURL: string,
  options: LoginOptions,
): string | undefined {
  const { settings, grants, pendingLogins, returnCookie, stepUps, hostMismatches, popups } = context;
  const ofRouteOrStrategy = options.scope === undefined ? settings.scope : check.scope('scope', options.scope);
  const redirectUri = redirectUriFor(req, callbackURL);
  if (redirectUri === undefined) return undefined;
  const frame = popups?.popupOf(req)?.target;
  const freed = frame ? 0 : returnCookie.lengthIn(req);
  // The page to return to, and its cookie, belong to the user's tabs.
  const remembered = frame ? undefined : returnCookie.take(req, res);
  const url = originalUrl(req);
  const [requested, ...others] = url.includes('?') ? queryOf(url).getAll('returnTo') : [];
  const returnTo = requested === undefined ? remembered : safeReturnTo(others.length === 0 ? requested : undefined);
  // What a page of the application has asked for: nothing that a link could say.
  const steppedUp = returnTo === undefined ? undefined : stepUps.take(req, res, returnTo, grants.idOf(req));
  const scope = steppedUp ?? frame?.scope ?? ofRouteOrStrategy;
  const isConnection = Boolean(options.assignProperty);
  const isUsual = redirectUri === settings.callbackURL && scope === settings.scope;
  const request = isUsual ? context.usualRequest : authorizationRequest(settings, redirectUri, scope);
  const further = furtherParamsFor(context, req, options.authorizationParams);
  const isSilent = request.isSilent || further.isSilent;
  const userMark = grants.userMarkOf(req, isConnection);
  const ownScope = scope === settings.scope ? undefined : scope;
  const isStepUp = steppedUp !== undefined || frame?.isStepUp === true;
  const login = { redirectUri, returnTo, isConnection, isSilent, isStepUp, scope: ownScope, userMark, frame };
  const used = request.url.length + further.text.length + STATE_LENGTH;
  const { state, codeChallenge, cookies } = pendingLogins.begin(req, login, settings.pkce, { used, freed });
  hostMismatches.note(req, redirectUri, state);
  for (const cookie of cookies) res.appendHeader('Set-Cookie', cookie);
  // Base64url needs no escapes.
  const challenge = codeChallenge === undefined ? '' : `&code_challenge=${codeChallenge}&code_challenge_method=S256`;
  return `${request.url}&state=${state}${further.text}${challenge}`;
}

/** Characters of the parameters `state`, `code_challenge` and `code_challenge_method` in an authorization request. */
const STATE_LENGTH = 150;

/** The URL of an authorization request up to its `state`. */
export interface AuthorizationRequest {
  readonly url: string;
  /** True if a parameter asks for no page of the service: see `PendingLogin.isSilent`. */
  readonly isSilent: boolean;
}

/** Parameters that the application adds to an authorization request: `&name=value` for each. */
export interface FurtherParams {
  readonly text: string;
  /** See {@link AuthorizationRequest.isSilent}. */
  readonly isSilent: boolean;
}

/** Returns the parameters of the strategy and of the route, which replace them. @throws ConfigurationError */
function furtherParamsFor(
  { usualParams, settings }: BeginLoginContext,
  req: IncomingMessage,
  ofRoute: unknown,
): FurtherParams {
  if (ofRoute === undefined && usualParams) return usualParams;
  const own = paramsFor(req, settings.authorizationParams);
  return furtherParams(ofRoute === undefined ? own : { ...own, ...paramsFor(req, ofRoute) });
}

/** Returns parameters as a part of a URL. */
export function furtherParams(params: Readonly<Record<string, string>>): FurtherParams {
  const query = new URLSearchParams(params);
  return { text: query.size === 0 ? '' : `&${query}`, isSilent: isSilent(query) };
}

function isSilent(query: URLSearchParams): boolean {
  return query.getAll('prompt').some((prompt) => prompt.split(' ').includes('none'));
}

/** Reads the option `authorizationParams`, or its result for a request. @throws ConfigurationError */
function paramsFor(req: IncomingMessage, given: unknown): Readonly<Record<string, string>> {
  const value = typeof given === 'function' ? check.result('authorizationParams', given(req)) : given;
  return check.authorizationParams('authorizationParams', value);
}

/** Returns an authorization request up to its `state`. */
export function authorizationRequest(
  { authUrl, authorizationPath, clientID, scopeSeparator }: AuthorizationRequestSettings,
  redirectUri: string,
  scope: string,
): AuthorizationRequest {
  const query = new URLSearchParams({ client_id: clientID, redirect_uri: redirectUri, response_type: 'code' });
  // Services without scopes get none.
  if (scope !== '') query.set('scope', scope.replaceAll(' ', scopeSeparator));
  const endpoint = endpointUrl(authUrl, authorizationPath);
  const url = `${endpoint}${endpoint.search === '' ? '?' : '&'}${query}`;
  return { url, isSilent: isSilent(endpoint.searchParams) };
}

const OVER_HTTP =
  'This login was begun over http, as far as the application knows, and came back over https: browsers keep no cookie of a page over http for that. Open the application over https. Behind a proxy, have it set X-Forwarded-Proto.';

/** Most logins whose host names are remembered. */
const MAX_MISMATCHES = 1_000;

/**
 * Logins that were begun under another host name than that of their callback, such as 127.0.0.1 and localhost, or over http
 * where the callback has https: the browser does not send their cookie to the callback.
 */
export class HostMismatches {
  /** What to say of a login, by its state. In the order of their start. */
  readonly #messages = new Map<string, string>();
  #hasWarned = false;

  /** Remembers a login if its callback has another host name, and warns once. */
  note(req: IncomingMessage, redirectUri: string, state: string): void {
    const { host: header, 'x-forwarded-host': forwardedHost, 'x-forwarded-proto': forwardedProto } = req.headers;
    const isTls = () => isSecure(req) || /^\s*https\b/i.test(String(forwardedProto ?? ''));
    if (/^https:/i.test(redirectUri) && !isTls()) this.#remember(state, OVER_HTTP);
    // Nearly every login: no URL has to be parsed to see that its host is the same.
    const isSame = redirectUri.startsWith(`//${header}/`, redirectUri.indexOf(':') + 1);
    if (isSame && forwardedHost === undefined) return;
    const here = hostOf(req);
    if (here === undefined) return;
    const { host, hostname } = new URL(redirectUri);
    // Cookies do not tell ports apart.
    const { hostname: hereName } = new URL(`http://${here}`);
    if (hereName === hostname) return;
    const message = `This login was begun at ${here} and came back to ${host}, where the browser does not send its cookie. Open the application at ${host}.`;
    this.#remember(state, message);
    // Tests reach an application by an address of loopback, whatever its callbackURL is. Their logins are not lost.
    const isTest =
      process.env.NODE_ENV !== 'production' && check.LOOPBACK_HOST.test(hostname) && check.LOOPBACK_HOST.test(hereName);
    if (isTest) return;
    this.#warn(
      `A login was begun at ${here}, but callbackURL leads to ${host}: the browser does not send the cookie of the login there. Open the application at ${host}. If a proxy has changed the Host header, set Express' trust proxy.`,
    );
  }

  /**
   * Returns what to tell of a login that was begun under another host name, or without TLS, and is lost now. Of the first one
   * under another host name, this warns as well.
   */
  explain(state: string | undefined): string | undefined {
    const message = state === undefined ? undefined : this.#messages.get(state);
    if (message !== undefined && message !== OVER_HTTP) this.#warn(message);
    return message;
  }

  /** Forgets a login that is not lost. */
  forget(state: string): void {
    this.#messages.delete(state);
  }

  #warn(message: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(message, { code: 'ERR_LOGIN_HOST' });
  }

  #remember(state: string, message: string): void {
    this.#messages.set(state, message);
    for (const oldest of this.#messages.keys()) {
      if (this.#messages.size <= MAX_MISMATCHES) break;
      this.#messages.delete(oldest);
    }
  }
}
