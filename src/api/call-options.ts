import { defaultMaxListeners, getMaxListeners, setMaxListeners } from 'node:events';
import type { HttpHeaders } from '../http/message.js';
import { type RequestBody, type RequestBodyInit, requestBody } from './request-body.js';
import { type RequestHeaders, requestHeaders } from './request-headers.js';
import type { Query, RequestTarget } from './request-target.js';

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

/** A checked call. */
export interface CallRequest extends RequestTarget {
  readonly method: string;
  /** Names and values in turn, without `Authorization`. */
  readonly headers: readonly string[];
  readonly body: RequestBody | undefined;
  readonly signal: AbortSignal | undefined;
  /** For the whole call, if it has a limit. */
  readonly timeoutMs: number | undefined;
  /** Of silence in each HTTP request of `fetch`, if the caller sets a limit. */
  readonly silenceMs?: number | undefined;
  readonly retry: RetryLimits;
  /** `manual`: a redirect is the response. */
  readonly redirect: 'follow' | 'manual';
  readonly schema: StandardSchema | undefined;
}

/** Limits on the retries of a call. */
export interface RetryLimits {
  readonly limit: number;
  /** Before one retry. A longer `Retry-After` ends the call. */
  readonly maxDelayMs: number;
  /** Of all waits together. */
  readonly maxTotalMs: number;
  /** Before one retry for which the service sets no time. */
  readonly maxBackOffMs: number;
}

/** A few seconds at most: a browser waits for most calls. */
export const DEFAULT_RETRY: RetryLimits = Object.freeze({
  limit: 2,
  maxDelayMs: 10_000,
  maxTotalMs: 15_000,
  maxBackOffMs: 10_000,
});

const OPTIONS: ReadonlySet<string> = new Set('query json body headers signal timeout retry schema'.split(' '));

const COMMON_METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']);

/** They open tunnels or echo the token. */
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

/**
 * Checks a call to a target, which includes the option `query`.
 *
 * @param defaults Default headers; names and values in turn
 * @throws TypeError for anything wrong in it
 */
export function requestTo(
  target: RequestTarget,
  method: string,
  options: RequestOptions | undefined,
  defaults: readonly string[],
): CallRequest {
  const checked = COMMON_METHODS.has(method) ? method : methodOf(method);
  if (options !== undefined) checkOptions(options);
  const body = options === undefined ? undefined : requestBody(options);
  if (body !== undefined && (checked === 'GET' || checked === 'HEAD')) {
    throw new TypeError(`${checked}: a request of this method has no body; use the option \`query\``);
  }
  return {
    path: target.path,
    query: target.query,
    origin: target.origin,
    isWholeOrigin: target.isWholeOrigin ?? false,
    method: checked,
    headers: options === undefined ? defaults : requestHeaders(options.headers, body, defaults),
    body,
    signal: options?.signal,
    timeoutMs: options?.timeout,
    retry: options?.retry === undefined ? DEFAULT_RETRY : retryLimits(options.retry),
    redirect: 'follow',
    schema: options?.schema,
  };
}

/** Returns the method of a call in upper case. @throws TypeError for one that opens a tunnel or echoes the token, and for anything else */
export function methodOf(method: unknown): string {
  const upperCase = typeof method === 'string' ? method.toUpperCase() : '';
  if (/^[A-Z]{1,32}$/.test(upperCase) && !FORBIDDEN_METHODS.has(upperCase)) return upperCase;
  throw new TypeError('method: expected an HTTP method, for example GET');
}

function checkOptions(options: RequestOptions): void {
  if (typeof options !== 'object' || options === null) throw new TypeError('options: expected an object');
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined) {
    // A name that is not an identifier may be a misplaced value.
    const shown = /^[a-z]{1,32}$/i.test(unknown) ? `\`${unknown}\`` : 'one of them';
    throw new TypeError(`options: ${shown} is unknown; expected ${[...OPTIONS].join(', ')}`);
  }
  const { signal, timeout, schema } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal: expected an AbortSignal');
  if (signal !== undefined) allowListeners(signal);
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0)) {
    throw new TypeError('timeout: expected milliseconds, more than 0');
  }
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw new TypeError('schema: expected a Standard Schema, such as one of Zod, Valibot or ArkType');
  }
}

/** Returns true for an object, or a function as in ArkType, with the Standard Schema interface. */
function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  const standard: unknown = Reflect.get(value, '~standard');
  return typeof standard === 'object' && standard !== null && typeof Reflect.get(standard, 'validate') === 'function';
}

function retryLimits(retry: unknown): RetryLimits {
  if (retry === false) return { ...DEFAULT_RETRY, limit: 0 };
  const given: Readonly<Record<string, unknown>> =
    typeof retry === 'object' && retry !== null ? { ...retry } : { retry };
  const { limit = DEFAULT_RETRY.limit, maxDelay = DEFAULT_RETRY.maxDelayMs, ...others } = given;
  if (Object.keys(others).length > 0) throw new TypeError('retry: expected false, or { limit, maxDelay }');
  if (typeof limit !== 'number' || !Number.isSafeInteger(limit) || limit < 0) {
    throw new TypeError('retry.limit: expected a number of further tries, 0 or more');
  }
  if (typeof maxDelay !== 'number' || !(maxDelay >= 0 && maxDelay < 2 ** 31)) {
    throw new TypeError('retry.maxDelay: expected milliseconds, 0 or more');
  }
  return { limit, maxDelayMs: maxDelay, maxTotalMs: Infinity, maxBackOffMs: maxDelay };
}

/**
 * Raises the limit of listeners of a signal unless the caller has set one. Node warns of a leak from eleven on, but each call
 * removes its own.
 */
function allowListeners(signal: AbortSignal): void {
  try {
    if (getMaxListeners(signal) === defaultMaxListeners) setMaxListeners(Infinity, signal);
  } catch {
    // Node 20 fails to read a limit of 0, which means no limit already.
  }
}
