import type { IncomingMessage, ServerResponse } from 'node:http';
import * as check from '../checks.js';
import { endpointUrl } from '../oauth/addresses.js';
import type { Settings } from '../options.js';
import { HeaderBudget } from '../session/cookies.js';
import { safeReturnTo } from '../session/return-to.js';
import { ABSOLUTE_URL, type Visit } from '../session/visit.js';
import type { AuthorizationRequest, FurtherParams, LoginContext, RouteOptions } from './login-context.js';

/**
 * Begins a login: sets the browser's cookie, and returns the URL of the authorization request, or `undefined`
 * if `callbackURL` is relative and the request names no host.
 *
 * @param callbackURL That of the route, else that of the strategy.
 * @throws ConfigurationError for invalid options of `passport.authenticate`
 * @see service.md, 4.1; RFC 6749, 4.1.1; RFC 7636, 4.3
 */
export function beginLogin(
  context: LoginContext,
  visit: Visit,
  res: ServerResponse,
  callbackURL: string,
  options: RouteOptions,
): string | undefined {
  const { settings, grants, pendingLogins, returnCookie, pageScopes, advice, popups } = context;
  const ofRouteOrStrategy = options.scope === undefined ? settings.scope : check.scope('scope', options.scope);
  const { req } = visit;
  const redirectUri = redirectUriFor(visit, callbackURL);
  if (redirectUri === undefined) return undefined;
  const frame = popups?.popupOf(req)?.target;
  // The page to return to, and its cookie, belong to the user's tabs.
  const remembered = frame ? undefined : returnCookie.take(visit, res);
  const [requested, ...others] = visit.query.getAll('returnTo');
  const returnTo = requested === undefined ? remembered : safeReturnTo(others.length === 0 ? requested : undefined);
  // What a page of the application has asked for: nothing that a link could say.
  const steppedUp = returnTo === undefined ? undefined : pageScopes()?.take(visit, res, returnTo, grants.idOf(req));
  const scope = steppedUp ?? frame?.scope ?? ofRouteOrStrategy;
  const data = options.state === undefined ? undefined : loginData('state', options.state);
  const isConnection = Boolean(options.assignProperty);
  const isDefault = redirectUri === settings.callbackURL && scope === settings.scope;
  const request = isDefault ? context.defaultRequest : authorizationRequest(settings, redirectUri, scope);
  const further = furtherParamsFor(context, req, options.authorizationParams);
  const isSilent = request.isSilent || further.isSilent;
  const userMark = grants.userMarkOf(req, isConnection);
  const ownScope = scope === settings.scope ? undefined : scope;
  const isStepUp = steppedUp !== undefined || frame?.isStepUp === true;
  const login = { redirectUri, returnTo, isConnection, isSilent, isStepUp, scope: ownScope, userMark, frame, data };
  const budget = new HeaderBudget(visit, res, request.url.length + further.text.length + STATE_LENGTH);
  const { state, codeChallenge, cookies } = pendingLogins.begin(visit, login, settings.pkce, budget);
  advice.hosts.note(visit, redirectUri, state, redirectUri !== callbackURL);
  for (const cookie of cookies) res.appendHeader('Set-Cookie', cookie);
  // Base64url needs no escapes.
  const challenge = codeChallenge === undefined ? '' : `&code_challenge=${codeChallenge}&code_challenge_method=S256`;
  return `${request.url}&state=${state}${further.text}${challenge}`;
}

/** Most characters of the data that travels with a login. */
const MAX_DATA_LENGTH = 500;

/** Reads the option `state` of `passport.authenticate`. @throws ConfigurationError */
function loginData(option: string, value: unknown): Readonly<Record<string, unknown>> {
  const problem = `expected a plain JSON object of at most ${MAX_DATA_LENGTH} characters that travels with the login. The strategy makes the parameter state itself`;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw check.optionError(option, problem);
  try {
    if (JSON.stringify(value).length <= MAX_DATA_LENGTH && isPlain(value)) return { ...value };
  } catch {
    // It has a cycle, or a big integer.
  }
  throw check.optionError(option, problem);
}

/** Returns true for what JSON keeps as it is. An undefined property is left out. */
function isPlain(value: unknown): boolean {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every((one) => one !== undefined && isPlain(one));
  if (typeof value !== 'object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain);
}

/** Characters of the parameters `state`, `code_challenge` and `code_challenge_method` in an authorization request. */
const STATE_LENGTH = 150;

/** Returns the parameters of the strategy, replaced by those of the route. @throws ConfigurationError */
function furtherParamsFor(
  { defaultParams, settings }: LoginContext,
  req: IncomingMessage,
  ofRoute: unknown,
): FurtherParams {
  if (ofRoute === undefined && defaultParams) return defaultParams;
  const own = paramsFor(req, settings.authorizationParams);
  return furtherParams(ofRoute === undefined ? own : { ...own, ...paramsFor(req, ofRoute) });
}

/** Returns further parameters as the text that ends an authorization URL, and whether they ask for a silent login. */
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

/**
 * Returns the redirect URL of a login: `callbackURL` unchanged if it is absolute, else resolved against the request.
 * Returns `undefined` if the request names no host to resolve it against.
 */
function redirectUriFor(visit: Visit, callbackURL: string): string | undefined {
  if (ABSOLUTE_URL.test(callbackURL)) return callbackURL;
  const { host, isSecure, url } = visit;
  if (host === undefined) return undefined;
  const base = `${isSecure ? 'https' : 'http'}://${host}`;
  // A request line may hold a whole URL, or a path that a URL parser takes for a host.
  return new URL(callbackURL, url.startsWith('/') ? `${base}${url}` : base).href;
}

/** Returns an authorization request up to its `state`. */
export function authorizationRequest(
  {
    authUrl,
    authorizationPath,
    clientID,
    scopeSeparator,
  }: Pick<Settings, 'authUrl' | 'authorizationPath' | 'clientID' | 'scopeSeparator'>,
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
