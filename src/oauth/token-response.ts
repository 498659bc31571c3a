import * as check from '../checks.js';
import { ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import { type HttpResponse, retryAfterMs } from '../http/message.js';
import {
  type Claims,
  MAX_TOKEN_LENGTH,
  type OrganizationDomainReader,
  organizationDomainOf,
  parseJsonObject,
  readClaims,
  subjectOf,
  type TokenResponseFields,
} from './claims.js';
import { MAX_RESPONSE_BYTES } from './client-request.js';
import { identifierOf, type Refusal, readRefusal } from './refusal.js';

/** The tokens of one token response, and what their holder needs to know about them. */
export interface TokenSet {
  readonly accessToken: string;
  /** `undefined` if the response had none: the previous one stays valid. */
  readonly refreshToken: string | undefined;
  /** Of the access token, from its arrival, in milliseconds. */
  readonly lifetimeMs: number;
  /** The same if the access token can be replaced. */
  readonly renewableLifetimeMs: number;
  /** The same of the refresh token; `undefined` if the response states none. */
  readonly refreshTokenLifetimeMs: number | undefined;
  /** The granted scopes; `undefined` if the response states none. */
  readonly scope: readonly string[] | undefined;
  readonly claims: Claims;
  readonly subject: string | undefined;
  readonly organizationDomain: string | undefined;
  /** Base address of the organization's API, if the option `enterpriseBaseUrl` is a function that returned one. */
  readonly enterpriseUrl?: string | undefined;
  /** The response as received, for the application's `verify`. Holds the tokens. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Origins of the authorization server, of a tenant's strategy. */
  readonly issuedBy?: string | undefined;
}

/** Options that decide how token responses are read. */
export interface TokenReading {
  readonly organizationDomain?: OrganizationDomainReader | undefined;
  /** Returns the base address of the organization's API. @throws TokenResponseError, ConfigurationError */
  readonly enterpriseUrl?: ((claims: Claims, tokenResponse: TokenResponseFields) => string | undefined) | undefined;
  /** Seconds that an access token lives where neither response nor token says. */
  readonly accessTokenLifetime?: number | undefined;
  /** Maps the names of the granted scopes. */
  readonly grantedScopes?: GrantedScopes | undefined;
  /** Copied to the tokens of a tenant's strategy. */
  readonly issuedBy?: string | undefined;
}

/** The token request that a response answers. */
export interface AnsweredRequest {
  /** Arrival of the response, in epoch milliseconds. */
  readonly now: number;
  /** Returns the secrets that were sent. No message repeats them. */
  readonly secrets: () => readonly string[];
  /** Returns what to do about a refusal: a sentence after a space, or nothing. `error` is `undefined` if the response has none. */
  readonly advice?: (error: string | undefined, status: number) => string;
}

/** A token is visible ASCII (RFC 6749, appendix A). */
export const VISIBLE_ASCII: RegExp = /^[\x21-\x7e]+$/;

/** What a response says that an error reports. */
interface ResponseFacts {
  /** Set for a response without a usable token. */
  readonly refusal?: Refusal;
  /** The new refresh token of a response that is otherwise unusable: the previous one is no longer valid. */
  readonly rotatedToken?: string | undefined;
  /** Its `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}

/** No property of the error, which may be logged. */
const factsByError = new WeakMap<object, ResponseFacts>();

/** Returns what is known about the response that an error of {@link readTokenResponse} reports. */
export function responseFactsOf(error: unknown): ResponseFacts {
  return factsByError.get(Object(error)) ?? {};
}

/** Adds the facts of a response to an error, and returns it. */
export function withFacts<E>(error: E, facts: ResponseFacts): E {
  if (error instanceof Error) factsByError.set(error, facts);
  return error;
}

/** Returns the error for a status that a retry may change; `undefined` for any other. @param endpoint As a message names it */
export function outageOf(endpoint: string, response: HttpResponse, now: number): ServiceUnavailableError | undefined {
  const { status } = response;
  if (status !== 408 && status !== 429 && status < 500) return undefined;
  const waitMs = retryAfterMs(response.headers, now);
  const message = `The ${endpoint} answered with status ${status}.`;
  return new ServiceUnavailableError(message, { retryAfter: waitMs && waitMs / 1000 });
}

/**
 * Parses a token response.
 *
 * @throws TokenError if the service refused the request
 * @throws ServiceUnavailableError on 429, 408 and 5xx
 * @throws TokenResponseError for any other response that is not a token response
 * @see RFC 6749, 5.1 and 5.2
 */
export function readTokenResponse(response: HttpResponse, options: TokenReading, request: AnsweredRequest): TokenSet {
  const { status, bodyFault } = response;
  const body = status >= 200 && status < 300 ? parseJsonObject(response.body) : undefined;
  const rotatedToken = isToken(body?.refresh_token) ? body.refresh_token : undefined;
  try {
    if (body && (isToken(body.access_token) || rotatedToken !== undefined))
      return readTokenSet(body, options, request.now);
  } catch (error) {
    throw withFacts(error, { rotatedToken, retryAfterMs: retryAfterMs(response.headers, request.now) });
  }
  const outage = outageOf('token endpoint', response, request.now);
  if (outage) throw outage;
  const refusal = readRefusal(response, request.secrets());
  const found = bodyFault ? UNREAD[bodyFault] : body && accessTokenFault(body.access_token);
  const error = refusalError(refusal, request, found);
  throw withFacts(error, { refusal, retryAfterMs: retryAfterMs(response.headers, request.now) });
}

const UNREAD = {
  'too-large': `more than ${MAX_RESPONSE_BYTES} bytes`,
  encoding: 'a damaged content encoding',
} as const;

/** Returns true for a token that a header can carry (RFC 6750, 2.1; RFC 6749, A.12 without the space). */
function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOKEN_LENGTH && VISIBLE_ASCII.test(value);
}

function accessTokenFault(token: unknown): string {
  if (typeof token !== 'string' || token === '') return 'no access_token';
  if (token.length > MAX_TOKEN_LENGTH) return `an access_token over ${MAX_TOKEN_LENGTH} characters`;
  return 'an access_token with characters that no header can carry';
}

function readTokenSet(body: TokenResponseFields, options: TokenReading, now: number): TokenSet {
  const { access_token: accessToken, expires_in: expiresIn } = body;
  const { accessTokenLifetime, grantedScopes, organizationDomain, enterpriseUrl, issuedBy } = options;
  if (!isToken(accessToken)) throw responseError(accessTokenFault(accessToken));
  const type = body.token_type ?? 'bearer';
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw responseError('a token_type other than bearer');
  const refreshToken = body.refresh_token ?? '';
  if (typeof refreshToken !== 'string') throw responseError('a refresh_token that is not a string');
  if (refreshToken.length > MAX_TOKEN_LENGTH)
    throw responseError(`a refresh_token over ${MAX_TOKEN_LENGTH} characters`);
  // A space is allowed (RFC 6749, A.17).
  if (/[^\x20-\x7e]/.test(refreshToken)) throw responseError('a refresh_token with characters beyond visible ASCII');
  const claims = readClaims(accessToken);
  const renewableLifetimeMs = renewableLifetime(expiresIn, claims, now, accessTokenLifetime);
  // No standard has a field for it. An invalid value is ignored.
  const refreshTokenSeconds = secondsOf(body.refresh_token_expires_in) ?? secondsOf(body.refresh_expires_in);
  return {
    accessToken,
    refreshToken: refreshToken || undefined,
    lifetimeMs: refreshToken ? renewableLifetimeMs : wholeLifetime(expiresIn, claims, now, accessTokenLifetime),
    renewableLifetimeMs,
    refreshTokenLifetimeMs: refreshTokenSeconds && refreshTokenSeconds * 1000,
    scope: grantedScope(body.scope, grantedScopes),
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, organizationDomain, body),
    enterpriseUrl: enterpriseUrl?.(claims, body),
    params: body,
    issuedBy,
  };
}

/** Ten years in seconds. */
export const TEN_YEARS_S: number = 10 * 365 * 24 * 60 * 60;
const MAX_RENEWABLE_S = 24 * 60 * 60;
const MIN_GUESS_S = 60;

/** Assumed if nothing states the lifetime of a token that can be replaced. */
const DEFAULT_LIFETIME_S = 3600;

/** Lifetime of an access token that does not expire, in milliseconds. Finite, because it is stored as JSON. */
const NO_END_MS = 10 * TEN_YEARS_S * 1000;

/**
 * Returns the lifetime of an access token that can be replaced, in milliseconds: at most 24 hours.
 *
 * `expires_in` counts if it is a number or a numeric string, from a second to ten years; else the `exp` of the token, else
 * `fallback`, else an hour. The last three count as a minute at least: refreshes must not be constant.
 *
 * @param fallback The option `accessTokenLifetime`, in seconds.
 * @see RFC 6749, 5.1; RFC 7519, 4.1.4
 */
export function renewableLifetime(expiresIn: unknown, claims: Claims, now: number, fallback?: number): number {
  const stated = secondsOf(expiresIn);
  if (stated !== undefined) return Math.min(stated, MAX_RENEWABLE_S) * 1000;
  const guess = claimedLifetime(claims, now) ?? fallback ?? DEFAULT_LIFETIME_S;
  return Math.min(Math.max(guess, MIN_GUESS_S), MAX_RENEWABLE_S) * 1000;
}

/** Returns the lifetime of an access token that nothing can replace, in milliseconds. Ten years and more, 0 and -1 mean no end. */
export function wholeLifetime(expiresIn: unknown, claims: Claims, now: number, fallback?: number): number {
  const isEndless = /^(?:0|-1)$/.test(String(expiresIn));
  const stated = isEndless ? Infinity : secondsOf(expiresIn, Infinity);
  const seconds = stated ?? claimedLifetime(claims, now, Infinity) ?? fallback ?? Infinity;
  return seconds >= TEN_YEARS_S ? NO_END_MS : seconds * 1000;
}

/** Returns the seconds from `iat` to `exp`, which does not depend on this machine's clock; without `iat`, from now. */
function claimedLifetime({ exp, iat }: Claims, now: number, max?: number): number | undefined {
  return typeof exp === 'number' ? secondsOf(exp - (typeof iat === 'number' ? iat : now / 1000), max) : undefined;
}

function secondsOf(value: unknown, max = TEN_YEARS_S): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}(\.\d{1,6})?$/.test(value.trim()) ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 1 && seconds <= max ? seconds : undefined;
}

/** Maximum length of a grant's scope, in characters: it is stored with the grant. */
const MAX_SCOPE_LENGTH = 8 * 1024;

/** Returns the names in a scope, each once. Some services separate them by commas. */
export function scopeNames(text: string): readonly string[] {
  return [...new Set(text.match(/[^\s,]+/g))];
}

/** Maps granted scopes to the application's names for them: aliases, and scopes that others imply. */
export type GrantedScopes = (names: string[]) => string[];

/**
 * Reads the `scope` of a token response: a string, or a list as some services send it. Returns `undefined` for none: the
 * scopes of the request are granted.
 *
 * @throws ConfigurationError if the application's function throws, or returns anything but a list of strings
 * @see RFC 6749, 5.1
 */
export function grantedScope(value: unknown, map?: GrantedScopes): readonly string[] | undefined {
  const text = Array.isArray(value) && value.every((name) => typeof name === 'string') ? value.join(' ') : value;
  if (typeof text !== 'string' || text.length > MAX_SCOPE_LENGTH) return undefined;
  const names = scopeNames(text);
  if (names.length === 0 || !names.every(check.isScopeName)) return undefined;
  if (!map) return names;
  const mapped: unknown = check.invoke('grantedScopes', 'names', () => map([...names]));
  if (Array.isArray(mapped) && mapped.every((name) => typeof name === 'string')) return [...new Set<string>(mapped)];
  throw check.optionError('grantedScopes', 'expected a function that returns a list of texts');
}

/** Returns the error for an answer without a usable token. @param fault What is wrong with it, if known */
function refusalError(refusal: Refusal, { advice }: AnsweredRequest, fault?: string): Error {
  const { status, body, description } = refusal;
  const isRefusal = status >= 400 ? check.isRecord(body) || refusal.error !== undefined : reportsError(body);
  if (isRefusal) {
    const error = identifierOf(refusal);
    const said = description ? ` (${description})` : '';
    const message = `The token endpoint refused the request with status ${status}: ${error}${said}.${advice?.(error, status) ?? ''}`;
    return new TokenError(message, { error });
  }
  if (status >= 200 && status < 300) return responseError(fault ?? 'a body that is not a JSON object');
  const redirect =
    ' (a redirect, which is never followed: check the option tokenPath, its trailing slash too, and authUrl)';
  const found = `status ${status} ${fault ? `and ${fault}` : 'without an OAuth error'}${status < 400 ? redirect : ''}`;
  return responseError(found, advice?.(undefined, status));
}

/** Returns true if the body of a success reports an error, as those of GitHub and Slack do. */
function reportsError(body: unknown): boolean {
  const { error, errors }: Partial<Record<'error' | 'errors', unknown>> = Object(body);
  const hasError = [error, errors].some((value) => (value ?? '') !== '');
  return hasError || (typeof body === 'string' && /(?:^|&)error=/.test(body));
}

function responseError(found: string, advice = ''): TokenResponseError {
  return new TokenResponseError(
    `The token endpoint answered with ${found}; expected a JSON token response. Nothing of it was kept.${advice}`,
  );
}
