import { ServiceUnavailableError, TokenError, TokenResponseError } from '../errors.js';
import type { HttpResponse } from '../http/message.js';
import { parseRetryAfter } from '../http/retry-after.js';
import { withoutSecrets } from '../redaction.js';
import {
  type Claims,
  MAX_TOKEN_LENGTH,
  type OrganizationDomainReader,
  organizationDomainOf,
  readClaims,
  subjectOf,
} from './claims.js';
import { tokenLifetime } from './token-lifetime.js';

/** The tokens of one answer of the token endpoint, and what their holder needs to know of them. */
export interface TokenSet {
  readonly accessToken: string;
  /** `undefined` where the answer had none: the former one stays good. */
  readonly refreshToken: string | undefined;
  /** How long the access token is good from its arrival, in milliseconds. */
  readonly lifetimeMs: number;
  readonly claims: Claims;
  readonly subject: string | undefined;
  readonly organizationDomain: string | undefined;
  /** The answer as it came, for the application's `verify`. Holds the tokens. */
  readonly params: Readonly<Record<string, unknown>>;
}

/** How to read an answer. */
export interface TokenResponseContext {
  readonly organizationDomain: OrganizationDomainReader;
  /** Epoch milliseconds of the answer's arrival. */
  readonly now: number;
  /** What was sent and must not come back in a message. */
  readonly secrets: readonly string[];
}

const MAX_DESCRIPTION_LENGTH = 200;

/** RFC 6749, 5.2. */
const REGISTERED_ERRORS: ReadonlySet<string> = new Set([
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]);

/** By error, and not on it: an error may be logged. */
const successors = new WeakMap<Error, string>();

/**
 * The token set of an answer.
 *
 * @throws TokenError if the service refused (4xx with an `error`)
 * @throws ServiceUnavailableError on 429, 408 and 5xx
 * @throws TokenResponseError for whatever else is no token response
 * @see RFC 6749, 5.1 and 5.2; service.md, 2
 */
export async function readTokenResponse(response: HttpResponse, context: TokenResponseContext): Promise<TokenSet> {
  const { status, headers } = response;
  if (isOverloadOrFault(status)) throw unavailable(status, headers, context.now);
  const body = parseObject(response.body);
  if (status >= 400 && typeof body?.error === 'string') throw refusal(status, body, context.secrets);
  if (status < 200 || status > 299) throw unusable(`status ${status} without an OAuth error${redirectHint(status)}`);
  if (!body) throw unusable('a body that is not a JSON object');
  try {
    return await readTokenSet(body, context);
  } catch (error) {
    const { refresh_token: successor } = body;
    if (error instanceof Error && typeof successor === 'string' && isSound(successor)) successors.set(error, successor);
    throw error;
  }
}

/** The refresh token of an answer that {@link readTokenResponse} could not use: by then the service has buried the former one. */
export function rotatedRefreshToken(error: unknown): string | undefined {
  return error instanceof Error ? successors.get(error) : undefined;
}

async function readTokenSet(body: Readonly<Record<string, unknown>>, context: TokenResponseContext): Promise<TokenSet> {
  const accessToken = readAccessToken(body.access_token);
  const type = body.token_type ?? 'bearer';
  if (typeof type !== 'string' || type.toLowerCase() !== 'bearer') throw unusable('a token_type other than bearer');
  const claims = await readClaims(accessToken);
  return {
    accessToken,
    refreshToken: readRefreshToken(body.refresh_token),
    lifetimeMs: tokenLifetime(body.expires_in, claims, context.now),
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, context.organizationDomain),
    params: body,
  };
}

function readAccessToken(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw unusable('no access_token');
  if (value.length > MAX_TOKEN_LENGTH) throw unusable(`an access_token over ${MAX_TOKEN_LENGTH} characters`);
  // It goes into a header: nothing but visible ASCII (RFC 6750, 2.1; RFC 6749, A.12 without the space).
  if (!/^[\x21-\x7e]+$/.test(value)) throw unusable('an access_token with characters that no header can carry');
  return value;
}

function readRefreshToken(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw unusable('a refresh_token that is no string');
  if (!isSound(value)) throw unusable(`a refresh_token over ${MAX_TOKEN_LENGTH} characters`);
  return value;
}

function isSound(refreshToken: string): boolean {
  return refreshToken !== '' && refreshToken.length <= MAX_TOKEN_LENGTH;
}

function isOverloadOrFault(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

function unavailable(status: number, headers: HttpResponse['headers'], now: number): ServiceUnavailableError {
  const retryAfterMs = parseRetryAfter(headers['retry-after'], now);
  return new ServiceUnavailableError(
    `The token endpoint answered with status ${status}. The same request can be made again later.`,
    {
      retryAfter: retryAfterMs === undefined ? undefined : retryAfterMs / 1000,
    },
  );
}

function refusal(status: number, body: Readonly<Record<string, unknown>>, secrets: readonly string[]): TokenError {
  const error = identifier(body.error, secrets);
  const description = describe(body.error_description, secrets);
  const advice = error === 'invalid_client' ? ' Check the options clientID and clientSecret.' : '';
  return new TokenError(
    `The token endpoint refused the request with status ${status}: ${error}${description && ` (${description})`}.${advice}`,
    { error },
  );
}

/** The service's `error` if it is an identifier, as all registered ones are: a text of any other form may quote anything. */
function identifier(value: unknown, secrets: readonly string[]): string {
  // What decides over a grant is taken as it is, however short a secret may be that is a part of the word.
  if (typeof value === 'string' && REGISTERED_ERRORS.has(value)) return value;
  if (typeof value !== 'string' || !/^[a-z][a-z0-9_.-]{0,63}$/i.test(value)) return 'unrecognized_error';
  // No identifier has a word that long: it is a token, if none that was sent.
  if (/[a-z0-9]{25}/i.test(value)) return 'unrecognized_error';
  return secrets.some((secret) => secret !== '' && value.includes(secret)) ? 'unrecognized_error' : value;
}

function describe(value: unknown, secrets: readonly string[]): string {
  if (typeof value !== 'string') return '';
  const open = secrets
    .filter((secret) => secret !== '')
    .reduce((text, secret) => text.replaceAll(secret, '[…]'), value);
  return withoutSecrets(open.replaceAll(/[^\x20-\x7e…]+/g, ' '))
    .slice(0, MAX_DESCRIPTION_LENGTH)
    .trim();
}

function parseObject(body: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isRecord(value) ? value : undefined;
  } catch {
    // The error of JSON.parse quotes the body, which may hold tokens: it is not even kept as a cause.
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function redirectHint(status: number): string {
  return status >= 300 && status < 400 ? ' (a redirect, which is never followed: check the option authUrl)' : '';
}

function unusable(what: string): TokenResponseError {
  return new TokenResponseError(
    `The token endpoint answered with ${what}; expected a JSON token response. Nothing of it was kept.`,
  );
}
