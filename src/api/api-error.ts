import { OAuthAppError } from '../errors.js';
import type { HttpHeaders } from '../http/message.js';
import type { SchemaIssue } from './schema.js';

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
  /** Always true: there is a response, so the request was sent. */
  readonly sent = true;

  constructor(message: string, details: ApiErrorDetails) {
    super(message, { code: details.code ?? 'ERR_API', status: details.status, cause: details.cause });
    this.method = details.method;
    this.path = details.path;
    this.retryAfter = details.retryAfterMs === undefined ? undefined : Math.ceil(details.retryAfterMs / 1000);
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
