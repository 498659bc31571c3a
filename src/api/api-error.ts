import { OAuthAppError, ServiceUnavailableError } from '../errors.js';
import type { HttpHeaders } from '../http/message.js';
import type { TransportError, TransportFault } from '../http/transport-error.js';
import { grantedScope } from '../oauth/scope.js';
import { withoutSecrets } from '../redaction.js';
import type { SchemaIssue } from './call-options.js';

/** Details of an {@link ApiError}. */
export interface ApiErrorDetails {
  /** Of the response; 502 if the response is a success that cannot be used. */
  readonly status: number;
  /** The parsed body, or its text. */
  readonly data: unknown;
  readonly headers: HttpHeaders;
  readonly method: string;
  /** Below the API's base address, without the query. */
  readonly path: string;
  /** Milliseconds that the service asks to wait. */
  readonly retryAfterMs?: number | undefined;
  /** The scopes that the request needs, if the service refused it for lack of them. */
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
  // Private, and read through the prototype: no way of showing an object finds them.
  readonly #data: unknown;
  readonly #headers: HttpHeaders;
  readonly #issues: readonly SchemaIssue[] | undefined;
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
    this.#data = details.data;
    this.#headers = details.headers;
    this.#issues = details.issues;
  }

  /** The parsed body, or its text if it is not JSON. */
  get data(): unknown {
    return this.#data;
  }

  /** Headers of the response; names in lower case. */
  get headers(): HttpHeaders {
    return this.#headers;
  }

  /** Reasons why the body does not match the `schema` of the call. */
  get issues(): readonly SchemaIssue[] | undefined {
    return this.#issues;
  }
}

/** Maximum length of what the service says, in a message. */
const MAX_LENGTH = 300;

/** Maximum length of a `WWW-Authenticate` header that is read. */
const MAX_CHALLENGE = 4_096;

/** Maximum number of entries of a list of errors in a message. */
const MAX_ENTRIES = 3;

const HINTS: Readonly<Record<number, string>> = {
  401: 'The access token is refused: the user has to authorize the application again.',
  403: 'The scopes of the authorization, or the rights of the user, do not suffice.',
  404: 'It does not exist, or not for this user and organization.',
  429: 'Too many requests: the option `concurrency` keeps each account within the limit of the service.',
};

const RENEWED_HINT =
  'The access token was refused and has been renewed, but the body of this call is a stream, which cannot be sent again: make the call anew.';

/** A response that is not a success, and what its message depends on. */
export interface RefusedResponse extends Omit<ApiErrorDetails, 'code' | 'cause' | 'issues'> {
  /** Kept out of the message, even if the service repeats it. */
  readonly accessToken: string;
  /** True if a newer token is at hand, and the request could not be sent again. */
  readonly isTokenRenewed: boolean;
}

/** Creates the error for a response that is not a success. */
export function refusedResponse({ accessToken, isTokenRenewed, ...details }: RefusedResponse): ApiError {
  const { status, method, path, data } = details;
  const said = serviceMessage(data, accessToken);
  const parts = [
    `${method} ${shown(path)}: status ${status}.`,
    said === undefined ? '' : `${said}.`,
    (isTokenRenewed ? RENEWED_HINT : HINTS[status]) ?? '',
  ];
  return new ApiError(parts.filter((part) => part !== '').join(' '), { ...details, ...insufficientScope(details) });
}

/**
 * Returns code and scopes of a refusal for lack of scopes.
 *
 * @see RFC 6750, 3 and 3.1
 */
function insufficientScope({
  status,
  headers,
}: RefusedResponse | Omit<RefusedResponse, 'accessToken' | 'isTokenRenewed'>): Pick<ApiErrorDetails, 'code' | 'scope'> {
  const challenge = status === 403 ? String(headers['www-authenticate'] ?? '').slice(0, MAX_CHALLENGE) : '';
  if (!/\berror\s*=\s*"?insufficient_scope\b/i.test(challenge)) return {};
  const [, scope] = /[\s,]scope\s*=\s*"([^"]*)"/i.exec(challenge) ?? [];
  return { code: 'ERR_INSUFFICIENT_SCOPE', scope: scope === undefined ? undefined : grantedScope(scope) };
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

/** Codes of the faults that the service is not to blame for, or not alone. */
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
export function callError(
  fault: TransportError,
  method: string,
  path: string,
  sent: boolean,
): ServiceUnavailableError | ApiError {
  if (fault.kind === 'too-large' || fault.kind === 'encoding' || fault.kind === 'protocol') {
    return unusableResponse(`${fault.message}.`, { data: undefined, headers: {}, method, path, cause: fault });
  }
  const code = CODES[fault.kind] ?? 'ERR_SERVICE_UNAVAILABLE';
  return new ServiceUnavailableError(`${method} ${shown(path)}: ${fault.message}.`, { code, cause: fault, sent });
}

/** Creates the error for a call that got no place in time. @param concurrency `Infinity` if only the refusals of the service limit the account */
export function noPlaceError(
  method: string,
  path: string,
  concurrency: number,
  sent: boolean,
): ServiceUnavailableError {
  const late =
    concurrency === Infinity
      ? 'no request of the account ended in time, and the service has refused more at once with 429.'
      : `none of the ${concurrency} places of the option \`concurrency\` became free in time.`;
  const message = `${method} ${shown(path)}: ${late} Read the bodies of streams to their end or destroy them, or raise \`timeout\`.`;
  return new ServiceUnavailableError(message, { code: 'ERR_CONCURRENCY', sent });
}

function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}

/**
 * Returns what the service says about a refused request, in one of the shapes that are in use:
 * `{ error: { message, code } }`, `{ errors: [{ error: { key, errors: [{ code, message }] } }] }`,
 * `{ error, error_description }` (RFC 6749, 5.2; RFC 6750), `{ title, detail }` (RFC 9457), `{ message }`.
 *
 * @param accessToken Removed, as a whole and in its parts: services echo what they choke on
 * @returns One line of at most 300 characters; `undefined` if the data has none of the shapes
 */
export function serviceMessage(data: unknown, accessToken: string): string | undefined {
  const error = field(data, 'error');
  const message = textOf(field(error, 'message'));
  const text =
    (message && withCode(message, field(error, 'code'))) ??
    listOfErrors(data) ??
    joined(error, field(data, 'error_description')) ??
    joined(field(data, 'title'), field(data, 'detail')) ??
    textOf(field(data, 'message'));
  const line = text === undefined ? '' : oneLine(text, accessToken);
  return line === '' ? undefined : line;
}

function listOfErrors(data: unknown): string | undefined {
  const entries = listOf(field(data, 'errors')).flatMap((entry) => {
    const error = field(entry, 'error');
    const key = textOf(field(error, 'key'));
    return listOf(field(error, 'errors')).map((one) => {
      const text = withCode(textOf(field(one, 'message')) ?? '', field(one, 'code'));
      return key === undefined ? text : `${key}: ${text}`;
    });
  });
  return entries.length === 0 ? undefined : entries.slice(0, MAX_ENTRIES).join('; ');
}

function withCode(message: string, code: unknown): string {
  return typeof code === 'string' || typeof code === 'number' ? `${message} (${code})` : message;
}

function joined(title: unknown, detail: unknown): string | undefined {
  const parts = [textOf(title), textOf(detail)].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(': ');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

function oneLine(text: string, accessToken: string): string {
  return withoutSecrets(text, [accessToken]).replace(CONTROLS, ' ').trim().replace(/\.$/, '').slice(0, MAX_LENGTH);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ENTRIES) : [];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** Returns an own field of a parsed body; `undefined` if the body is not an object or lacks the field. */
export function field(value: unknown, name: string): unknown {
  const hasField = typeof value === 'object' && value !== null && Object.hasOwn(value, name);
  return hasField ? Reflect.get(value, name) : undefined;
}
