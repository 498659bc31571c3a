import { ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import { type HttpResponse, retryAfterMs } from '../http/message.js';
import { withoutSecrets } from '../redaction.js';
import {
  type Claims,
  MAX_TOKEN_LENGTH,
  type OrganizationDomainReader,
  organizationDomainOf,
  parseJsonObject,
  readClaims,
  subjectOf,
} from './claims.js';
import { grantedScope } from './scope.js';

/** The tokens of one token response, and what their holder needs to know about them. */
export interface TokenSet {
  readonly accessToken: string;
  /** `undefined` if the response had none: the previous one stays valid. */
  readonly refreshToken: string | undefined;
  /** Lifetime of the access token from its arrival, in milliseconds. */
  readonly lifetimeMs: number;
  /** Lifetime of the refresh token from its arrival, in milliseconds; `undefined` if the response states none. */
  readonly refreshTokenLifetimeMs: number | undefined;
  /** The scopes that are granted; `undefined` if the response states none. */
  readonly scope: readonly string[] | undefined;
  readonly claims: Claims;
  readonly subject: string | undefined;
  readonly organizationDomain: string | undefined;
  /** The response as received, for the application's `verify`. Holds the tokens. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** What {@link readTokenResponse} needs beside the response. */
export interface TokenResponseContext {
  readonly organizationDomain: OrganizationDomainReader;
  /** Arrival of the response, in epoch milliseconds. */
  readonly now: number;
  /** Values that were sent and must not come back in a message. */
  readonly secrets: readonly string[];
  /** True for services that refuse with status 200. */
  readonly refusesWithSuccess: boolean;
  /** Returns what to do about a refusal: a sentence after a space, or nothing. `error` is `undefined` if the response has none. */
  readonly advice?: (error: string | undefined, status: number) => string;
}

/** The words of a refusal, without secrets. Services use other fields than RFC 6749, 5.2, too. */
export interface Refusal {
  /** The field `error`, else `code`, `status` or `category`: the first that is a text. */
  readonly error: string | undefined;
  /** The field `error_description`, else `message`. */
  readonly description: string | undefined;
  /** The status of the response. */
  readonly status: number;
}

/** Returns true if a refusal of a refresh means that the refresh token is dead. */
export type EndsGrant = (refusal: Refusal) => boolean;

const MAX_DESCRIPTION_LENGTH = 200;

/** A token is visible ASCII (RFC 6749, appendix A). */
export const VISIBLE_ASCII: RegExp = /^[\x21-\x7e]+$/;

/** RFC 6749, 5.2. */
const REGISTERED_ERRORS: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

/** Keyed by the error, and no property of it: an error may be logged. */
const rotatedTokens = new WeakMap<Error, string>();
const refusals = new WeakMap<Error, Refusal>();

/**
 * Parses a token response.
 *
 * @throws TokenError if the service refused the request (4xx with an `error`, or 401 with a text in place of JSON)
 * @throws ServiceUnavailableError on 429, 408 and 5xx
 * @throws TokenResponseError for any other response that is not a token response
 * @see RFC 6749, 5.1 and 5.2
 */
export function readTokenResponse(response: HttpResponse, context: TokenResponseContext): TokenSet {
  const { status } = response;
  if (status === 408 || status === 429 || status >= 500) {
    const waitMs = retryAfterMs(response.headers, context.now);
    throw new ServiceUnavailableError(
      `The token endpoint answered with status ${status}. The same request can be made again later.`,
      { retryAfter: waitMs === undefined ? undefined : waitMs / 1000 },
    );
  }
  const body = parseJsonObject(response.body) ?? (refusesClient(response) ? { error: 'invalid_client' } : undefined);
  const isRefusal = status >= 400 || (context.refusesWithSuccess && body?.access_token === undefined);
  if (isRefusal && body && (status >= 400 || typeof body.error === 'string')) {
    const error = typeof body.error === 'string' ? refusal(status, body, context) : withoutError(status, context);
    refusals.set(error, wordsOf(status, body, context.secrets));
    throw error;
  }
  if (status < 200 || status > 299) {
    throw withoutError(status, context);
  }
  if (!body) throw unusable('a body that is not a JSON object');
  try {
    return readTokenSet(body, context);
  } catch (error) {
    const { refresh_token: rotated } = body;
    const isUsable = typeof rotated === 'string' && rotated !== '' && rotated.length <= MAX_TOKEN_LENGTH;
    if (error instanceof Error && isUsable) rotatedTokens.set(error, rotated);
    throw error;
  }
}

/**
 * Returns the refresh token of a response that {@link readTokenResponse} rejected with this error. The service has
 * invalidated the previous one by then.
 */
export function rotatedRefreshToken(error: unknown): string | undefined {
  return error instanceof Error ? rotatedTokens.get(error) : undefined;
}

/** Returns the words of the refusal that {@link readTokenResponse} threw this error for. */
export function refusalOf(error: unknown): Refusal | undefined {
  return error instanceof Error ? refusals.get(error) : undefined;
}

function readTokenSet(body: Readonly<Record<string, unknown>>, context: TokenResponseContext): TokenSet {
  const { access_token: accessToken, refresh_token: refreshToken } = body;
  if (typeof accessToken !== 'string' || accessToken === '') throw unusable('no access_token');
  if (accessToken.length > MAX_TOKEN_LENGTH) throw unusable(`an access_token over ${MAX_TOKEN_LENGTH} characters`);
  // It goes into a header: nothing but visible ASCII (RFC 6750, 2.1; RFC 6749, A.12 without the space).
  if (!VISIBLE_ASCII.test(accessToken)) throw unusable('an access_token with characters that no header can carry');
  const type = body.token_type ?? 'bearer';
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') throw unusable('a token_type other than bearer');
  const hasRefreshToken = refreshToken !== undefined && refreshToken !== null && refreshToken !== '';
  if (hasRefreshToken && typeof refreshToken !== 'string') throw unusable('a refresh_token that is not a string');
  if (hasRefreshToken && refreshToken.length > MAX_TOKEN_LENGTH) {
    throw unusable(`a refresh_token over ${MAX_TOKEN_LENGTH} characters`);
  }
  const claims = readClaims(accessToken);
  // No standard has a field for it. A senseless value is ignored.
  const refreshTokenSeconds = secondsOf(body.refresh_token_expires_in) ?? secondsOf(body.refresh_expires_in);
  return {
    accessToken,
    refreshToken: hasRefreshToken ? refreshToken : undefined,
    lifetimeMs: tokenLifetime(body.expires_in, claims, context.now),
    refreshTokenLifetimeMs: refreshTokenSeconds === undefined ? undefined : refreshTokenSeconds * 1000,
    scope: grantedScope(body.scope),
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, context.organizationDomain, body),
    params: body,
  };
}

const DAY_S = 24 * 60 * 60;
const TEN_YEARS_S = 10 * 365 * DAY_S;
const MIN_GUESS_S = 60;
/** Assumed if neither the response nor the token states a lifetime. */
export const DEFAULT_LIFETIME_S = 3600;

/**
 * Returns the lifetime of an access token in milliseconds: at most 24 hours, and never so short that refreshes follow
 * each other.
 *
 * `expires_in` counts if it is from a second to ten years, as a number or a numeric string. Otherwise the `exp` of the
 * token does (against its `iat`, which leaves this machine's clock out of it, or against `now`), then an hour.
 *
 * @param now Epoch milliseconds.
 * @see RFC 6749, 5.1; RFC 7519, 4.1.4
 */
export function tokenLifetime(expiresIn: unknown, claims: Claims, now: number): number {
  const stated = secondsOf(expiresIn);
  if (stated !== undefined) return Math.min(stated, DAY_S) * 1000;
  const { exp, iat } = claims;
  const own = typeof exp === 'number' ? secondsOf(exp - (typeof iat === 'number' ? iat : now / 1000)) : undefined;
  return Math.min(Math.max(own ?? DEFAULT_LIFETIME_S, MIN_GUESS_S), DAY_S) * 1000;
}

function secondsOf(value: unknown): number | undefined {
  const seconds = typeof value === 'string' && /^\d{1,12}(\.\d{1,6})?$/.test(value.trim()) ? Number(value) : value;
  return typeof seconds === 'number' && seconds >= 1 && seconds <= TEN_YEARS_S ? seconds : undefined;
}

function wordsOf(status: number, body: Readonly<Record<string, unknown>>, secrets: readonly string[]): Refusal {
  const word = [body.error, body.code, body.status, body.category].find((value) => typeof value === 'string');
  const identifier = errorIdentifier(word, secrets);
  const error = identifier === 'unrecognized_error' ? shownText(word, secrets) : identifier;
  return { error, description: shownText(body.error_description ?? body.message, secrets), status };
}

/** Returns a text of the service that is fit to be shown; `undefined` for what is none. */
function shownText(value: unknown, secrets: readonly string[]): string | undefined {
  if (typeof value !== 'string') return undefined;
  // Secrets first: they may hold characters that are not shown. `…` is what stands in their place.
  const visible = withoutSecrets(value, secrets).replaceAll(/[^\x20-\x7e…]+/g, ' ');
  // And again: a line break in place of a space has hidden one.
  return withoutSecrets(visible, secrets).slice(0, MAX_DESCRIPTION_LENGTH).trim();
}

function refusal(
  status: number,
  body: Readonly<Record<string, unknown>>,
  { secrets, advice }: TokenResponseContext,
): TokenError {
  const error = errorIdentifier(body.error, secrets);
  const said = shownText(body.error_description, secrets);
  const check = error === 'invalid_client' ? ' Check the options clientID and clientSecret.' : '';
  return new TokenError(
    `The token endpoint refused the request with status ${status}: ${error}${said ? ` (${said})` : ''}.${check}${advice?.(error, status) ?? ''}`,
    { error },
  );
}

/** Returns the service's `error` if it is an identifier, as all registered ones are: any other text may quote anything. */
function errorIdentifier(value: unknown, secrets: readonly string[]): string {
  // A registered one decides over a grant and is taken as it is, even if a short secret happens to be a part of the word.
  if (typeof value === 'string' && REGISTERED_ERRORS.has(value)) return value;
  // GitHub's name for an invalid grant at a refresh.
  if (value === 'bad_refresh_token') return 'invalid_grant';
  if (typeof value !== 'string' || !/^[a-z][a-z0-9_.-]{0,63}$/i.test(value)) return 'unrecognized_error';
  // No identifier has a word of 25 characters: it is a token.
  if (/[a-z0-9]{25}/i.test(value)) return 'unrecognized_error';
  return secrets.some((secret) => secret !== '' && value.includes(secret)) ? 'unrecognized_error' : value;
}

/**
 * Returns true for a 401 with a text in place of JSON, as Passport sends it to a client that fails to authenticate
 * (RFC 6749, 5.2). A page is that of another server, such as a proxy.
 */
function refusesClient({ status, body }: HttpResponse): boolean {
  return status === 401 && !body.toString('latin1').trimStart().startsWith('<');
}

function withoutError(status: number, { advice }: TokenResponseContext): TokenResponseError {
  const isRedirect = status >= 300 && status < 400;
  const hint =
    ' (a redirect, which is never followed: check the option tokenPath, its trailing slash too, and authUrl)';
  const found = `status ${status} without an OAuth error${isRedirect ? hint : ''}`;
  return unusable(found, advice?.(undefined, status));
}

function unusable(found: string, advice = ''): TokenResponseError {
  return new TokenResponseError(
    `The token endpoint answered with ${found}; expected a JSON token response. Nothing of it was kept.${advice}`,
  );
}
