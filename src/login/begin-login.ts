import type { IncomingMessage } from 'node:http';
import * as check from '../checks.js';
import { AuthorizationError } from '../errors.js';
import { endpointUrl } from '../oauth/addresses.js';
import type { Settings } from '../options.js';
import { hasLoginCookie } from '../session/cookies.js';
import { safeReturnTo } from '../session/return-to.js';
import { asRouted, isPrefetch, type Visit } from '../session/visit.js';
import type { AuthorizationPart, LoginContext, RouteRequest } from './login-context.js';

const BY_SCRIPT =
  'A script cannot follow the redirect to the service. Begin the login with a link to this route, or with location.assign().';

/**
 * Begins a login: sets the browser's cookie, and redirects to the authorization endpoint.
 *
 * @throws ConfigurationError for invalid options of `passport.authenticate`; AuthorizationError for a prefetch
 * @see service.md, 4.1; RFC 6749, 4.1.1; RFC 7636, 4.3
 */
export async function beginLogin(context: LoginContext, request: RouteRequest): Promise<void> {
  const { runtime, advice, loops } = context;
  const { settings, grants, managers } = runtime;
  const { visit, res, actions, options, callbackURL = settings.callbackURL } = request;
  const { req, headers, path } = visit;
  advice.beforeLogin(visit, options);
  managers.for(req);
  if (isPrefetch(headers) && !isFetch(headers)) {
    throw new AuthorizationError('A login must not be prefetched.', { code: 'ERR_PREFETCH', status: 503 });
  }
  // Answered here, since a script would follow failureRedirect. Turbo loads the page again unless the answer is HTML.
  if (isFetch(headers)) {
    res.statusCode = 403;
    res.setHeader('Content-Type', 'text/plain; charset=utf-8');
    res.end(BY_SCRIPT);
    return;
  }
  if (options.assignProperty) {
    const { connectionRefusal } = await import('../accounts/connect-account.js');
    const message = connectionRefusal(grants, req);
    if (message !== undefined) return void actions.fail({ message }, 403);
  }
  const isAtCallback = hasLoginCookie(visit) && asRouted(path) === routedPathOf(callbackURL, path);
  if (isAtCallback) loops.countEmptyCallback(visit, res);
  loops.rememberRoute(visit);
  const redirectUri = redirectUriFor(visit, callbackURL);
  if (redirectUri === undefined) {
    return void actions.fail({ message: 'The request names no host to return to after the login.' }, 400);
  }
  const { state, url } = startLogin(context, request, redirectUri);
  advice.noteHosts(visit, redirectUri, state, redirectUri !== callbackURL);
  actions.redirect(url);
}

/** Makes a login pending in the browser. Returns its state, and the URL of the authorization request. */
function startLogin(
  context: LoginContext,
  { visit, res, options }: RouteRequest,
  redirectUri: string,
): { readonly state: string; readonly url: string } {
  const { settings, grants, returnCookie, pageScopes, popups } = context.runtime;
  const scopeOfRoute = options.scope === undefined ? settings.scope : check.scope('scope', options.scope);
  const { req } = visit;
  const frame = popups?.get(req)?.target;
  // The page to return to, and its cookie, belong to the user's tabs.
  const remembered = frame ? undefined : returnCookie.take(visit, res);
  const [requested, ...others] = visit.url.includes('?') ? visit.query.getAll('returnTo') : [];
  const returnTo = requested === undefined ? remembered : safeReturnTo(others.length === 0 ? requested : undefined);
  // What a page of the application asked for: no link can set it.
  const steppedUp = returnTo === undefined ? undefined : pageScopes()?.take(visit, res, returnTo, grants.idOf(req));
  const scope = steppedUp ?? frame?.scope ?? scopeOfRoute;
  const data = options.state === undefined ? undefined : loginData('state', options.state);
  const isConnection = Boolean(options.assignProperty);
  const isDefault = redirectUri === settings.callbackURL && scope === settings.scope;
  const request = isDefault ? context.defaultRequest : authorizationRequest(settings, redirectUri, scope);
  const further = furtherParamsFor(context, req, options.authorizationParams);
  const login = {
    redirectUri,
    returnTo,
    isConnection,
    isSilent: request.isSilent || further.isSilent,
    isStepUp: steppedUp !== undefined || frame?.isStepUp === true,
    scope: scope === settings.scope ? undefined : scope,
    userMark: grants.userMarkOf(req, isConnection),
    frame,
    data,
  };
  const location = request.text.length + further.text.length + STATE_LENGTH;
  const { state, codeChallenge } = context.pendingLogins.begin(visit, res, login, location);
  // Base64url needs no escapes.
  const challenge = codeChallenge === undefined ? '' : `&code_challenge=${codeChallenge}&code_challenge_method=S256`;
  return { state, url: `${request.text}&state=${state}${further.text}${challenge}` };
}

/** Characters of the parameters `state`, `code_challenge` and `code_challenge_method` in an authorization request. */
const STATE_LENGTH = 150;

/** Maximum length of the data that travels with a login, in characters. */
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

/** Returns true for what JSON keeps unchanged. An undefined property is left out. */
function isPlain(value: unknown): boolean {
  if (value === null || value === undefined || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) return value.every((one) => one !== undefined && isPlain(one));
  if (typeof value !== 'object') return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return (prototype === Object.prototype || prototype === null) && Object.values(value).every(isPlain);
}

/** Returns the parameters of the strategy, replaced by those of the route. @throws ConfigurationError */
function furtherParamsFor(
  { runtime, defaultParams }: LoginContext,
  req: IncomingMessage,
  ofRoute: unknown,
): AuthorizationPart {
  if (ofRoute === undefined && defaultParams) return defaultParams;
  const general = paramsFor(req, runtime.settings.authorizationParams);
  return furtherParams(ofRoute === undefined ? general : { ...general, ...paramsFor(req, ofRoute) });
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

/** A `callbackURL` that is the same for all requests. */
export const ABSOLUTE_URL: RegExp = /^https?:/i;

/** Returns the routed path of a `callbackURL`. A relative one is resolved against the path of the request. */
export function routedPathOf(callbackURL: string, path: string): string {
  // A request line may hold a whole URL.
  return asRouted(new URL(callbackURL, `http://relative.invalid${path.startsWith('/') ? path : '/'}`).pathname);
}

/** Returns an authorization request up to its `state`. */
export function authorizationRequest(
  { authUrl, authorizationPath, clientID, scopeSeparator }: Settings,
  redirectUri: string,
  scope: string,
): AuthorizationPart {
  const query = new URLSearchParams({ client_id: clientID, redirect_uri: redirectUri, response_type: 'code' });
  // Services without scopes get none.
  if (scope !== '') query.set('scope', scope.replaceAll(' ', scopeSeparator));
  const endpoint = endpointUrl(authUrl, authorizationPath);
  const text = `${endpoint}${endpoint.search === '' ? '?' : '&'}${query}`;
  return { text, isSilent: isSilent(endpoint.searchParams) };
}

/** Returns further parameters as the text that ends an authorization URL. */
export function furtherParams(params: Readonly<Record<string, string>>): AuthorizationPart {
  const query = new URLSearchParams(params);
  return { text: query.size === 0 ? '' : `&${query}`, isSilent: isSilent(query) };
}

function isSilent(query: URLSearchParams): boolean {
  return query.getAll('prompt').some((prompt) => prompt.split(' ').includes('none'));
}

/**
 * Returns true if a script sent the request: it cannot follow a redirect to the service. A service worker that passes on the
 * navigation of a page (`fetch(event.request)`) can.
 */
function isFetch(headers: Visit['headers']): boolean {
  return headers['sec-fetch-dest'] === 'empty' && headers['sec-fetch-mode'] !== 'navigate';
}
