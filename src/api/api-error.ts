import { OAuthAppError } from '../errors.js';
import type { HttpHeaders } from '../http/message.js';

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
  readonly code?: string | undefined;
  readonly cause?: unknown;
}

/**
 * The API answered with something else than success (code `ERR_API`), or with a success that cannot be used
 * (code `ERR_API_RESPONSE`): JSON that is none, too large, damaged.
 *
 * `data` and `headers` hold what the service sent, whatever that is: they are left out of `util.inspect` and
 * `JSON.stringify`, and with them out of logs.
 */
export class ApiError extends OAuthAppError {
  override readonly name = 'ApiError';
  // Private, and read through the prototype: no way of showing an object comes by them.
  readonly #data: unknown;
  readonly #headers: HttpHeaders;
  readonly method: string;
  /** Below `/api/v2`, without the query. */
  readonly path: string;
  /** Seconds after which a new try makes sense, where the service said so. */
  readonly retryAfter: number | undefined;

  constructor(message: string, details: ApiErrorDetails) {
    super(message, { code: details.code ?? 'ERR_API', status: details.status, cause: details.cause });
    this.method = details.method;
    this.path = details.path;
    this.retryAfter = details.retryAfterMs === undefined ? undefined : Math.ceil(details.retryAfterMs / 1000);
    this.#data = details.data;
    this.#headers = details.headers;
  }

  /** The parsed body, or its text where it is no JSON. */
  get data(): unknown {
    return this.#data;
  }

  /** Of the answer; names in lower case. */
  get headers(): HttpHeaders {
    return this.#headers;
  }
}
