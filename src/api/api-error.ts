import { OAuthAppError } from '../errors.js';
import type { HttpHeaders } from '../service/http.js';
import { serviceMessage } from './service-message.js';

/** What an {@link ApiError} tells. */
export interface ApiErrorDetails {
  /** Of the answer; 502 where the answer is a success that cannot be used. */
  readonly status: number;
  /** The parsed body, or its text. */
  readonly data: unknown;
  readonly headers: HttpHeaders;
  readonly method: string;
  /** Below `/api/v2`, without the query. */
  readonly path: string;
  /** Milliseconds that the service asks to wait. */
  readonly retryAfterMs?: number | undefined;
  /** Kept out of the message, wherever the service repeats it. */
  readonly accessToken: string;
}

const HINTS: Readonly<Record<number, string>> = {
  401: 'The access token is refused: the user has to authorize the application again.',
  403: 'The scopes of the authorization, or the rights of the user, do not reach so far.',
  404: 'There is no such thing, or not for this user and organization.',
  429: 'Too many requests: the option `concurrency` keeps each grant within the limit of the service.',
};

/**
 * The API answered with something else than success (code `ERR_API`), or with a success that cannot be used
 * (code `ERR_API_RESPONSE`): JSON that is none, too large, damaged.
 *
 * `data` and `headers` hold what the service sent, whatever that is: they are left out of `util.inspect` and
 * `JSON.stringify`, and with them out of logs.
 */
export class ApiError extends OAuthAppError {
  override readonly name = 'ApiError';
  /** The parsed body, or its text where it is no JSON. */
  declare readonly data: unknown;
  /** Of the answer; names in lower case. */
  declare readonly headers: HttpHeaders;
  readonly method: string;
  /** Below `/api/v2`, without the query. */
  readonly path: string;
  /** Seconds after which a new try makes sense, where the service said so. */
  readonly retryAfter: number | undefined;

  constructor(
    message: string,
    details: Omit<ApiErrorDetails, 'accessToken'> & { readonly code?: string; readonly cause?: unknown },
  ) {
    super(message, { code: details.code ?? 'ERR_API', status: details.status, cause: details.cause });
    this.method = details.method;
    this.path = details.path;
    this.retryAfter = details.retryAfterMs === undefined ? undefined : Math.ceil(details.retryAfterMs / 1000);
    Object.defineProperty(this, 'data', { value: details.data });
    Object.defineProperty(this, 'headers', { value: details.headers });
  }
}

/** The error for an answer that is no success. */
export function refusedAnswer(details: ApiErrorDetails): ApiError {
  const { status, method, path, accessToken } = details;
  const said = serviceMessage(details.data, accessToken);
  const parts = [
    `${method} ${shown(path)}: status ${status}.`,
    said === undefined ? '' : `${said}.`,
    HINTS[status] ?? '',
  ];
  return new ApiError(parts.filter((part) => part !== '').join(' '), details);
}

/** The error for a success that cannot be used. */
export function unusableAnswer(
  reason: string,
  details: Omit<ApiErrorDetails, 'accessToken' | 'status'> & { readonly cause?: unknown },
): ApiError {
  const message = `${details.method} ${shown(details.path)}: ${reason}`;
  return new ApiError(message, { ...details, status: 502, code: 'ERR_API_RESPONSE' });
}

/** A path that fits in a message. */
export function shown(path: string): string {
  return path.length > 200 ? `${path.slice(0, 200)}…` : path;
}
