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
  /** Lifetime of the access token from its arrival, in milliseconds. */
  readonly lifetimeMs: number;
  /** The same if a refresh token can replace the access token. */
  readonly renewableLifetimeMs: number;
  /** Lifetime of the refresh token from its arrival, in milliseconds; `undefined` if the response states none. */
  readonly refreshTokenLifetimeMs: number | undefined;
  /** The scopes that are granted; `undefined` if the response states none. */
  readonly scope: readonly string[] | undefined;
  readonly claims: Claims;
  readonly subject: string | undefined;
  readonly organizationDomain: string | undefined;
  /** Base address of the organization's API, if the option `enterpriseBaseUrl` is a function and has returned one. */
  readonly enterpriseUrl?: string | undefined;
  /** The response as received, for the application's `verify`. Holds the tokens. */
  readonly params: Readonly<Record<string, unknown>>;
  /** Origins of the authorization server, of a tenant's strategy. */
  readonly issuedBy?: string | undefined;
}

/** Options that decide how token responses are read. */
export interface TokenReading {
  readonly organizationDomain: OrganizationDomainReader;
  /** Returns the base address of the organization's API. @throws TokenResponseError, ConfigurationError */
  readonly enterpriseUrl?: ((claims: Claims, tokenResponse: TokenResponseFields) => string | undefined) | undefined;
  /** Seconds that an access token lives where neither response nor token says. */
  readonly accessTokenLifetime?: number | undefined;
  /** Maps the names of the granted scopes. */
  readonly grantedScopes?: GrantedScopes | undefined;
}

/** What {@link readTokenResponse} needs beside the response. */
export interface TokenResponseContext extends TokenReading {
  /** Arrival of the response, in epoch milliseconds. */
  readonly now: number;
  /** Values that were sent and must not come back in a message. */
  readonly secrets: readonly string[];
  /** True if the access token can be replaced, whether or not the response has a refresh token. */
  readonly isRenewable?: boolean | undefined;
  /** Returns what to do about a refusal: a sentence after a space, or nothing. `error` is `undefined` if the response has none. */
  readonly advice?: (error: string | undefined, status: number) => string;
}

/** A token is visible ASCII (RFC 6749, appendix A). */
export const VISIBLE_ASCII: RegExp = /^[\x21-\x7e]+$/;

/** What the response says that an error stands for. */
interface ResponseFacts {
  /** Set for a response without a usable token. */
  readonly refusal?: Refusal;
  /** The new refresh token of a response that is of no use otherwise: the service has invalidated the previous one by then. */
  readonly rotatedToken?: string | undefined;
  /** Its `Retry-After`. */
  readonly retryAfterMs?: number | undefined;
}

/** Keyed by the error, and no property of it: an error may be logged. */
const factsByError = new WeakMap<object, ResponseFacts>();

/** Returns what is known of the response that an error of {@link readTokenResponse} stands for. */
export function responseFactsOf(error: unknown): ResponseFacts {
  return factsByError.get(Object(error)) ?? {};
}

/** Adds the facts of a response to an error, and returns it. */
export function withFacts<E>(error: E, facts: ResponseFacts): E {
  if (error instanceof Error) factsByError.set(error, facts);
  return error;
}

/**
 * Parses a token response.
 *
 * @throws TokenError if the service refused the request
 * @throws ServiceUnavailableError on 429, 408 and 5xx
 * @throws TokenResponseError for any other response that is not a token response
 * @see RFC 6749, 5.1 and 5.2
 */
export function readTokenResponse(response: HttpResponse, context: TokenResponseContext): TokenSet {
  const { status } = response;
  const waitMs = retryAfterMs(response.headers, context.now);
  if (status === 408 || status === 429 || status >= 500) {
    throw new ServiceUnavailableError(
      `The token endpoint answered with status ${status}. The same request can be made again later.`,
      { retryAfter: waitMs === undefined ? undefined : waitMs / 1000 },
    );
  }
  const body = status >= 200 && status < 300 ? parseJsonObject(response.body) : undefined;
  if (!body || !(isToken(body.access_token) || isToken(body.refresh_token))) {
    const refusal = readRefusal(response, context.secrets);
    const found = response.bodyFault ? UNREAD[response.bodyFault] : body && faultOf(body.access_token);
    throw withFacts(errorOf(refusal, context, found), { refusal, retryAfterMs: waitMs });
  }
  try {
    return readTokenSet(body, context);
  } catch (error) {
    const { refresh_token: rotated } = body;
    throw withFacts(error, { rotatedToken: isToken(rotated) ? rotated : undefined, retryAfterMs: waitMs });
  }
}

const UNREAD = {
  'too-large': `more than ${MAX_RESPONSE_BYTES} bytes`,
  encoding: 'a damaged content encoding',
} as const;

/** Returns true for a token that a header can carry: nothing but visible ASCII (RFC 6750, 2.1; RFC 6749, A.12 without the space). */
function isToken(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_TOKEN_LENGTH && VISIBLE_ASCII.test(value);
}

/** Returns what is wrong with an access token. */
function faultOf(token: unknown): string {
  if (typeof token !== 'string' || token === '') return 'no access_token';
  if (token.length > MAX_TOKEN_LENGTH) return `an access_token over ${MAX_TOKEN_LENGTH} characters`;
  return 'an access_token with characters that no header can carry';
}

function hasText(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}

function readTokenSet(body: Readonly<Record<string, unknown>>, context: TokenResponseContext): TokenSet {
  const { access_token: accessToken, refresh_token: refreshToken } = body;
  if (!isToken(accessToken)) throw responseError(faultOf(accessToken));
  const type = body.token_type ?? 'bearer';
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer')
    throw responseError('a token_type other than bearer');
  const hasRefreshToken = hasText(refreshToken);
  if (hasRefreshToken && typeof refreshToken !== 'string') throw responseError('a refresh_token that is not a string');
  if (typeof refreshToken === 'string' && refreshToken.length > MAX_TOKEN_LENGTH) {
    throw responseError(`a refresh_token over ${MAX_TOKEN_LENGTH} characters`);
  }
  // A space is allowed (RFC 6749, A.17).
  if (typeof refreshToken === 'string' && /[^\x20-\x7e]/.test(refreshToken)) {
    throw responseError('a refresh_token with characters beyond visible ASCII');
  }
  const claims = readClaims(accessToken);
  const renewableLifetimeMs = renewableLifetime(body.expires_in, claims, context);
  // No standard has a field for it. A senseless value is ignored.
  const refreshTokenSeconds = secondsOf(body.refresh_token_expires_in) ?? secondsOf(body.refresh_expires_in);
  return {
    accessToken,
    refreshToken: hasRefreshToken ? String(refreshToken) : undefined,
    lifetimeMs:
      hasRefreshToken || context.isRenewable ? renewableLifetimeMs : wholeLifetime(body.expires_in, claims, context),
    renewableLifetimeMs,
    refreshTokenLifetimeMs: refreshTokenSeconds === undefined ? undefined : refreshTokenSeconds * 1000,
    scope: grantedScope(body.scope, context.grantedScopes),
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, context.organizationDomain, body),
    enterpriseUrl: context.enterpriseUrl?.(claims, body),
    params: body,
  };
}

const DAY_S = 24 * 60 * 60;
const YEAR_S = 365 * DAY_S;
const TEN_YEARS_S = 10 * YEAR_S;
const MIN_GUESS_S = 60;

/** Assumed if nothing states the lifetime of a token that can be replaced. */
const DEFAULT_LIFETIME_S = 3600;

/** Lifetime of an access token that does not expire, in milliseconds. A finite number: it is kept as JSON. */
export const NO_END_MS: number = 100 * YEAR_S * 1000;

/** What decides over a lifetime beside the token response. */
type LifetimeContext = Pick<TokenResponseContext, 'now' | 'accessTokenLifetime'>;

/**
 * Returns the lifetime of an access token that can be replaced, in milliseconds: at most 24 hours, and never so short that
 * refreshes follow each other.
 *
 * `expires_in` counts if it is from a second to ten years, as a number or a numeric string. Otherwise the `exp` of the
 * token does, then the option `accessTokenLifetime`, then an hour.
 *
 * @see RFC 6749, 5.1; RFC 7519, 4.1.4
 */
export function renewableLifetime(expiresIn: unknown, claims: Claims, context: LifetimeContext): number {
  const stated = secondsOf(expiresIn);
  if (stated !== undefined) return Math.min(stated, DAY_S) * 1000;
  const guess = claimedLifetime(claims, context.now) ?? context.accessTokenLifetime ?? DEFAULT_LIFETIME_S;
  return Math.min(Math.max(guess, MIN_GUESS_S), DAY_S) * 1000;
}

/**
 * Returns the lifetime of an access token that nothing can replace, in milliseconds: in full, because the login ends with it.
 * Ten years and more, 0 and -1 mean that it does not expire.
 */
export function wholeLifetime(expiresIn: unknown, claims: Claims, context: LifetimeContext): number {
  const isEndless = /^(?:0|-1)$/.test(String(expiresIn));
  const stated = isEndless ? Infinity : secondsOf(expiresIn, Infinity);
  const seconds = stated ?? claimedLifetime(claims, context.now, Infinity) ?? context.accessTokenLifetime ?? Infinity;
  return seconds >= TEN_YEARS_S ? NO_END_MS : seconds * 1000;
}

/** Returns the seconds from `iat` to `exp`, which leaves this machine's clock out of it; without `iat`, from now. */
function claimedLifetime({ exp, iat }: Claims, now: number, max?: number): number | undefined {
  return typeof exp === 'number' ? secondsOf(exp - (typeof iat === 'number' ? iat : now / 1000), max) : undefined;
}

function secondsOf(value: unknown, max = TEN_YEARS_S): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}(\.\d{1,6})?$/.test(value.trim()) ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 1 && seconds <= max ? seconds : undefined;
}

/** Maximum length of all granted scope names together, in characters: they are kept with each grant. */
const MAX_SCOPE_LENGTH = 8 * 1024;

/** Returns the names of a text of scopes, each once. Separated by white space, or by commas as some services do. */
export function scopeNames(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
}

/** Maps the names of granted scopes to those by which the application knows them: aliases, and scopes that others imply. */
export type GrantedScopes = (names: string[]) => string[];

/**
 * Reads the `scope` of a token response: a text, or a list of names as some services send it. Returns `undefined` if the
 * response names none: then the scopes that were asked for are granted.
 *
 * @throws ConfigurationError if the application's function throws, or returns anything but a list of texts
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

/** Returns the error for an answer without a usable token. @param fault What is wrong with it, if that is known */
function errorOf(refusal: Refusal, { advice }: TokenResponseContext, fault?: string): TokenError | TokenResponseError {
  const { status, body, description } = refusal;
  const isRefusal = status >= 400 ? isObject(body) || refusal.error !== undefined : saysError(body);
  if (isRefusal) {
    const error = identifierOf(refusal);
    const said = description ? ` (${description})` : '';
    const hint = error === 'invalid_client' ? ' Check the options clientID and clientSecret.' : '';
    const message = `The token endpoint refused the request with status ${status}: ${error}${said}.${hint}${advice?.(error, status) ?? ''}`;
    return new TokenError(message, { error });
  }
  if (status >= 200 && status < 300) return responseError(fault ?? 'a body that is not a JSON object');
  const isRedirect = status >= 300 && status < 400;
  const hint =
    ' (a redirect, which is never followed: check the option tokenPath, its trailing slash too, and authUrl)';
  const found = `status ${status} ${fault ? `and ${fault}` : 'without an OAuth error'}${isRedirect ? hint : ''}`;
  return responseError(found, advice?.(undefined, status));
}

/** Returns true for a success that holds an error, as that of GitHub and Slack does. */
function saysError(body: unknown): boolean {
  const { error, errors }: Partial<Record<'error' | 'errors', unknown>> = Object(body);
  return hasText(error) || hasText(errors) || (typeof body === 'string' && /(?:^|&)error=/.test(body));
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function responseError(found: string, advice = ''): TokenResponseError {
  return new TokenResponseError(
    `The token endpoint answered with ${found}; expected a JSON token response. Nothing of it was kept.${advice}`,
  );
}
