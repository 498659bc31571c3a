import { OAuthAppError, ServiceUnavailableError, TokenResponseError } from '../errors.js';
import type { HttpHeaders } from '../http/message.js';
import type { TransportError, TransportFault } from '../http/transport-error.js';
import { grantedScope } from '../oauth/token-response.js';
import { withoutSecrets } from '../redaction.js';
import type { SchemaIssue } from './call-options.js';

/** Details of an {@link ApiError}. */
export interface ApiErrorDetails {
  /** 502 for a success that cannot be used. */
  readonly status: number;
  readonly data: unknown;
  readonly headers: HttpHeaders;
  readonly method: string;
  readonly path: string;
  readonly retryAfterMs?: number | undefined;
  readonly scope?: readonly string[] | undefined;
  readonly issues?: readonly SchemaIssue[] | undefined;
  readonly code?: string | undefined;
  readonly cause?: unknown;
}

/**
 * The API refused a request (code `ERR_API`), or its response is a success that cannot be used (code
 * `ERR_API_RESPONSE`): invalid JSON, too large, damaged, or not what the `schema` expects.
 *
 * `data`, `headers` and `issues` hold what the service sent, whatever that is. `util.inspect`, `JSON.stringify` and so
 * logs leave them out.
 */
export class ApiError extends OAuthAppError {
  override readonly name = 'ApiError';
  // What the service sent is private and read through the prototype, so that nothing that prints an object finds it.
  readonly #details: ApiErrorDetails;
  readonly method: string;
  /** Below the API's base address, without the query. */
  readonly path: string;
  /** Seconds after which a new try makes sense, if the service said so. */
  readonly retryAfter: number | undefined;
  /** The scopes that the request needs, with the code `ERR_INSUFFICIENT_SCOPE`, if the service names them. */
  readonly scope: readonly string[] | undefined;
  /** Always true: there is a response, so the request was sent. */
  readonly sent = true;

  constructor(message: string, details: ApiErrorDetails) {
    super(message, { code: details.code ?? 'ERR_API', status: details.status, cause: details.cause });
    this.method = details.method;
    this.path = details.path;
    this.retryAfter = details.retryAfterMs === undefined ? undefined : Math.ceil(details.retryAfterMs / 1000);
    this.scope = details.scope;
    this.#details = details;
  }

  /** The parsed body, or its text if it is not JSON. */
  get data(): unknown {
    return this.#details.data;
  }

  /** Headers of the response; names in lower case. */
  get headers(): HttpHeaders {
    return this.#details.headers;
  }

  /** Reasons why the body does not match the `schema` of the call. */
  get issues(): readonly SchemaIssue[] | undefined {
    return this.#details.issues;
  }
}

/** Of the service's message in that of an error. */
const MAX_MESSAGE_CHARS = 300;

/** Of a `WWW-Authenticate` header. */
const MAX_CHALLENGE_CHARS = 4_096;

/** Of a list of errors in a message. */
const MAX_ENTRIES = 3;

const HINTS: Readonly<Record<number, string>> = {
  401: 'The access token is current, so the user may lack a permission that this request needs.',
  403: 'The granted scopes or the permissions of the user do not suffice.',
  404: 'It does not exist, or this user and organization cannot see it.',
  429: 'Too many requests: set the option `concurrency` to what the service allows each account.',
};

/** Ends the message about a refused call whose body cannot be sent again. */
export const RENEWED_HINT =
  'The access token was refused and is now renewed, but the body of this call is a stream, which cannot be sent again. Repeat the call.';

/**
 * Creates the error for a response that is not a success.
 *
 * @param accessToken Left out of the message, even if the service repeats it
 * @param isTokenRenewed True if a newer token is available, and the request could not be sent again
 * @see RFC 6750, 3 and 3.1
 */
export function refusedResponse(details: ApiErrorDetails, accessToken: string, isTokenRenewed: boolean): ApiError {
  const { status, method, path, data } = details;
  const said = serviceMessage(data, accessToken);
  const hint = isTokenRenewed ? RENEWED_HINT : HINTS[isTokenRefused(details) ? 401 : status];
  const parts = [`${method} ${shown(path)}: status ${status}.`, said && `${said}.`, hint];
  const message = parts.filter((part) => part !== undefined).join(' ');
  const { error, scope } = bearerChallenge(details);
  if (status !== 403 || error !== 'insufficient_scope') return new ApiError(message, details);
  const missing = scope === undefined ? undefined : grantedScope(scope);
  return new ApiError(message, { ...details, code: 'ERR_INSUFFICIENT_SCOPE', scope: missing });
}

/** Returns true if a response refuses the access token: a 401, or a 400 or 403 that says so. @see RFC 6750, 3.1 */
export function isTokenRefused(response: Pick<ApiErrorDetails, 'status' | 'headers'>): boolean {
  const { status } = response;
  if (status === 401) return true;
  return (status === 400 || status === 403) && bearerChallenge(response).error === 'invalid_token';
}

/** Returns true if a refusal of the access token gives no reason but that it is invalid. */
export function isTokenInvalid(response: Pick<ApiErrorDetails, 'headers'>): boolean {
  return (bearerChallenge(response).error ?? 'invalid_token') === 'invalid_token';
}

/** Returns the parameters of a Bearer challenge. @see RFC 6750, 3 */
function bearerChallenge({ headers }: Pick<ApiErrorDetails, 'headers'>): { error?: string; scope?: string } {
  const challenge = String(headers['www-authenticate'] ?? '').slice(0, MAX_CHALLENGE_CHARS);
  const [, error] = /\berror\s*=\s*"?([\w.-]+)/i.exec(challenge) ?? [];
  const [, scope] = /[\s,]scope\s*=\s*"([^"]*)"/i.exec(challenge) ?? [];
  return { ...(error && { error: error.toLowerCase() }), ...(scope !== undefined && { scope }) };
}

/** Creates the error for a success that cannot be used. */
export function unusableResponse(reason: string, details: Omit<ApiErrorDetails, 'status' | 'code'>): ApiError {
  const message = `${details.method} ${shown(details.path)}: ${reason}`;
  return new ApiError(message, { ...details, status: 502, code: 'ERR_API_RESPONSE' });
}

/** Creates the error for a body that does not match the `schema` of the call. */
export function mismatch(
  issues: readonly SchemaIssue[],
  accessToken: string,
  details: Pick<ApiErrorDetails, 'data' | 'headers' | 'method' | 'path'>,
): ApiError {
  const reasons = issues.slice(0, MAX_ENTRIES).map(({ path = [], message }) => {
    const place = path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  const reason = `the body does not match the schema: ${oneLine(reasons.join('; '), accessToken)}.`;
  return unusableResponse(reason, { ...details, issues });
}

const CODES: Readonly<Partial<Record<TransportFault, string>>> = {
  timeout: 'ERR_SERVICE_TIMEOUT',
  pool: 'ERR_CONCURRENCY',
  unread: 'ERR_UNREAD_BODY',
};

/**
 * Creates the error for a call without a usable response.
 *
 * @param sent True if this request or an earlier one of the same call may have reached the service
 */
export function failedCall(fault: TransportError, method: string, path: string, sent: boolean): OAuthAppError {
  if (fault.kind === 'address')
    return new TokenResponseError(`${method} ${shown(path)}: ${fault.message}.`, { code: 'ERR_ORGANIZATION_DOMAIN' });
  if (fault.kind === 'too-large' || fault.kind === 'encoding' || fault.kind === 'protocol') {
    return unusableResponse(`${fault.message}.`, { data: undefined, headers: {}, method, path, cause: fault });
  }
  const code = CODES[fault.kind] ?? 'ERR_SERVICE_UNAVAILABLE';
  return new ServiceUnavailableError(`${method} ${shown(path)}: ${fault.message}.`, { code, cause: fault, sent });
}

/** Creates the error for a call that got no slot in time. @param max `Infinity` if only 429s limit the account */
export function noSlotError(method: string, path: string, max: number, sent: boolean): ServiceUnavailableError {
  const late =
    max === Infinity
      ? 'timed out waiting for other requests of the account: the service refuses more at once with 429.'
      : `timed out waiting for one of the ${max} slots of the option \`concurrency\`.`;
  const message = `${method} ${shown(path)}: ${late} Read the bodies of streams to their end or destroy them, or raise \`timeout\`.`;
  return new ServiceUnavailableError(message, { code: 'ERR_CONCURRENCY', sent });
}

function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}

/**
 * Returns the service's own message about a refused request, in one of the shapes that are in use:
 * `{ error: { message, code } }`, `{ errors: [{ error: { key, errors: [{ code, message }] } }] }`,
 * `{ error, error_description }` (RFC 6749, 5.2), `{ title, detail }` (RFC 9457), `{ message }`.
 *
 * @param accessToken Removed, whole or in parts: services echo what they choke on
 * @returns One line of at most 300 characters; `undefined` if the data has none of the shapes
 */
export function serviceMessage(data: unknown, accessToken: string): string | undefined {
  const error = field(data, 'error');
  const message = joined(field(error, 'message'));
  const text =
    (message && withCode(message, field(error, 'code'))) ??
    listOfErrors(data) ??
    joined(error, field(data, 'error_description')) ??
    joined(field(data, 'title'), field(data, 'detail')) ??
    joined(field(data, 'message'));
  const line = text === undefined ? '' : oneLine(text, accessToken);
  return line === '' ? undefined : line;
}

function listOfErrors(data: unknown): string | undefined {
  const entries = listOf(field(data, 'errors')).flatMap((entry) => {
    const error = field(entry, 'error');
    const key = joined(field(error, 'key'));
    return listOf(field(error, 'errors')).map((one) => {
      const text = withCode(joined(field(one, 'message')) ?? '', field(one, 'code'));
      return key === undefined ? text : `${key}: ${text}`;
    });
  });
  return entries.length === 0 ? undefined : entries.slice(0, MAX_ENTRIES).join('; ');
}

function withCode(message: string, code: unknown): string {
  return typeof code === 'string' || typeof code === 'number' ? `${message} (${code})` : message;
}

/** Joins the texts among the values; `undefined` if there is none. */
function joined(...values: readonly unknown[]): string | undefined {
  return values.filter((value) => typeof value === 'string' && value !== '').join(': ') || undefined;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

function oneLine(text: string, accessToken: string): string {
  return withoutSecrets(text, [accessToken])
    .replace(CONTROLS, ' ')
    .trim()
    .replace(/\.$/, '')
    .slice(0, MAX_MESSAGE_CHARS);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ENTRIES) : [];
}

/** Returns an own field of a parsed body; `undefined` if the body is not an object or lacks the field. */
export function field(value: unknown, name: string): unknown {
  const hasField = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return hasField ? Reflect.get(value, name) : undefined;
}
