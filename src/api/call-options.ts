import type { Readable } from 'node:stream';
import type { HttpHeaders } from '../http/message.js';
import type { RequestBodyInit } from './request-body.js';
import type { RequestHeaders } from './request-headers.js';

/** Value of a query parameter. A date is sent in ISO 8601; `undefined` is left out. */
export type QueryValue = string | number | bigint | boolean | Date | undefined;

/** Query parameters: an object, also one typed by an interface. An array repeats its name. */
export type Query =
  | Readonly<Record<string, QueryValue | readonly QueryValue[]>>
  | (object & { readonly [Symbol.iterator]?: never });

/**
 * A validator of the Standard Schema interface, as Zod, Valibot, ArkType and others implement it.
 *
 * @see https://standardschema.dev
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** Result of a validation. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** A reason why a value does not match a schema. */
export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Type of a schema's output. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S['~standard']['types']>['output'];

/** Options of one API call. */
export interface RequestOptions {
  /** Query parameters: an array repeats its name, `undefined` is left out, a date is sent in ISO 8601. */
  readonly query?: Query | URLSearchParams | undefined;
  /** A body that is sent as JSON. */
  readonly json?: unknown;
  /**
   * Any other body. Text and bytes get no `Content-Type` unless `headers` name one. A `Readable`, a web stream and an
   * async iterable can be sent only once, and are destroyed if the call fails.
   */
  readonly body?: RequestBodyInit | undefined;
  /** Further headers. `Authorization`, `Host` and headers of the connection are refused. */
  readonly headers?: RequestHeaders | undefined;
  /** Ends the call at once, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds for the whole call: waiting for a token and a slot, all tries, and the waits between them. Default:
   * no limit for the whole; each HTTP request has the strategy's `timeout`.
   */
  readonly timeout?: number | undefined;
  /**
   * Further tries after a failure: `limit` of them (default 2), each after a wait of at most `maxDelay` milliseconds
   * (default 10,000; a longer `Retry-After` ends the call). `false` for none. The renewal after a 401 does not count, nor
   * does a 429 by default: it is waited for and sent again for `timeout`, or 30 s.
   */
  readonly retry?: false | { readonly limit?: number | undefined; readonly maxDelay?: number | undefined } | undefined;
  /** Validates the parsed body. The result is the output of the schema; a mismatch is an `ApiError` with `issues`. */
  readonly schema?: StandardSchema | undefined;
}

/** Options of a call whose result a schema validates. */
export type OptionsWithSchema<S extends StandardSchema> = RequestOptions & { readonly schema: S };

/** A response of the API. */
export interface ApiResponse<T = unknown> {
  readonly status: number;
  /** Names in lower case; a header that occurs more than once is an array. */
  readonly headers: HttpHeaders;
  /** The body: parsed if it is JSON, text (HTML too) as a string, other types as a `Buffer`, `undefined` if it is empty. */
  readonly data: T;
}

/** The `fetch` of an API client. Its bodies may also be those of a call: Node streams and async iterables. */
export type ApiFetch = (input: string | URL | Request, init?: FetchInit) => Promise<Response>;

/** Options of {@link ApiFetch}: those of the WHATWG `fetch`, and `timeout`. */
export type FetchInit = (RequestInit | (Omit<RequestInit, 'body'> & { body?: RequestBodyInit | null | undefined })) & {
  /**
   * Milliseconds of silence that end a request: no connection, no byte of a streamed body taken, no headers, no more of
   * the response while it is read. `0` for no limit. Default: the `timeout` of the strategy, and no limit for the body of
   * a `text/event-stream`.
   */
  timeout?: number | undefined;
};

/** A response of the API whose body is still to be read. */
export interface ApiStream {
  readonly status: number;
  /**
   * Names in lower case; a header that occurs more than once is an array. Without `content-encoding` and `content-length` if the
   * body is decoded.
   */
  readonly headers: HttpHeaders;
  /**
   * Read it to its end or destroy it: until then it may hold a connection, and a slot of `concurrency`. Decoded, or as received
   * if its encoding is unknown or chained.
   */
  readonly body: Readable;
}

/** Options of `paginate`; those of a call apply to each page, `timeout` among them. */
export interface PaginateOptions<T = unknown> extends Omit<RequestOptions, 'json' | 'body'> {
  /** Items requested at once. Default: 100. The service may return fewer at once: its own `pagination.limit` counts. */
  readonly limit?: number | undefined;
  /** Items skipped at the start. Default: 0. */
  readonly offset?: number | undefined;
  /** Requests the next page while the items of one are processed; two pages are in memory then. Default: `false`. */
  readonly readAhead?: boolean | undefined;
  /** Returns all items of a page, for pages that are not `{ data: [{ data }] }`. It must not skip any: fewer than `limit` end the list. */
  readonly items?: ((page: unknown) => readonly T[]) | undefined;
  /**
   * Returns where the next page is, for lists with a cursor or a `Link` header instead of an `offset`: a URL of the API, a
   * path, parameters that replace those of the same name, or `undefined` or `false` after the last page.
   */
  readonly next?: ((page: unknown, response: ApiResponse) => NextPage) | undefined;
  /** Pages after which a list that has not ended is an error. Default: no limit. */
  readonly maxPages?: number | undefined;
}

/** What `next` returns: where the next page is; `undefined` or `false` after the last one. */
export type NextPage = string | URL | Query | URLSearchParams | false | undefined;
