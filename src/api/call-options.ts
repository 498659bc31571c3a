import { defaultMaxListeners, getMaxListeners, setMaxListeners } from 'node:events';
import { type Query, queryString } from './query.js';
import { type RequestBody, type RequestBodyInit, requestBody } from './request-body.js';
import { DEFAULT_HEADERS, DEFAULT_STREAM_HEADERS, type RequestHeaders, requestHeaders } from './request-headers.js';
import { apiPath } from './request-target.js';

/** Options of one API call. */
export interface RequestOptions {
  /** Query parameters: an array repeats its name, `undefined` is left out, a date is sent in ISO 8601. */
  readonly query?: Query | URLSearchParams | undefined;
  /** A body to be sent as JSON. */
  readonly json?: unknown;
  /**
   * Any other body. Text and bytes go without a `Content-Type` unless `headers` name one; a `Readable` is never sent
   * twice, and destroyed if the call fails.
   */
  readonly body?: RequestBodyInit | undefined;
  /** Further headers; `Authorization`, `Host` and those of the connection are refused. */
  readonly headers?: RequestHeaders | undefined;
  /** Ends the call at once, wherever it is; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Milliseconds for the whole call: waiting for a token and a place, all tries, and the waits between them. Default:
   * no limit for the whole; each HTTP request has the strategy's `timeout`.
   */
  readonly timeout?: number | undefined;
}

/** A call, checked and ready to be sent any number of times. */
export interface CallRequest {
  readonly method: string;
  /** Below `/api/v2`, encoded. */
  readonly path: string;
  /** Empty, or with a leading `?`. */
  readonly query: string;
  /** All but `Authorization`; names and values in turn. */
  readonly headers: readonly string[];
  readonly body: RequestBody | undefined;
  readonly signal: AbortSignal | undefined;
  /** Milliseconds for the whole call, where it has a limit. */
  readonly timeoutMs: number | undefined;
  readonly streamed: boolean;
}

const OPTIONS: ReadonlySet<string> = new Set(['query', 'json', 'body', 'headers', 'signal', 'timeout']);

/** Methods that would not do what an API call does: they open tunnels, or echo the token. */
const FORBIDDEN_METHODS: ReadonlySet<string> = new Set(['CONNECT', 'TRACE', 'TRACK']);

const COMMON_METHODS: ReadonlySet<string> = new Set(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']);

/**
 * The checked form of a call.
 *
 * @throws TypeError for everything in it that is wrong; nothing is sent then
 */
export function callRequest(
  method: string,
  path: string,
  options: RequestOptions | undefined,
  streamed: boolean,
): CallRequest {
  const checkedMethod = COMMON_METHODS.has(method) ? method : otherMethod(method);
  const defaults = streamed ? DEFAULT_STREAM_HEADERS : DEFAULT_HEADERS;
  const checkedPath = apiPath(path);
  if (options === undefined) {
    return {
      method: checkedMethod,
      path: checkedPath,
      query: '',
      headers: defaults,
      body: undefined,
      signal: undefined,
      timeoutMs: undefined,
      streamed,
    };
  }
  checkOptions(options);
  const body = requestBody(options);
  if (body !== undefined && (checkedMethod === 'GET' || checkedMethod === 'HEAD')) {
    throw new TypeError(`${checkedMethod}: a request of this method has no body; give the option \`query\``);
  }
  return {
    method: checkedMethod,
    path: checkedPath,
    query: queryString(options.query),
    headers: withLength(requestHeaders(options.headers, body?.contentType, defaults), body),
    body,
    signal: options.signal,
    timeoutMs: options.timeout,
    streamed,
  };
}

function otherMethod(method: unknown): string {
  const upperCase = typeof method === 'string' ? method.toUpperCase() : '';
  if (/^[A-Z]{1,32}$/.test(upperCase) && !FORBIDDEN_METHODS.has(upperCase)) return upperCase;
  throw new TypeError('method: expected an HTTP method, for example GET');
}

function checkOptions(options: RequestOptions): void {
  if (typeof options !== 'object' || options === null) throw new TypeError('options: expected an object');
  const unknown = Object.keys(options).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined)
    throw new TypeError(`options: ${nameOf(unknown)} is not known; there are ${[...OPTIONS].join(', ')}`);
  const { signal, timeout } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new TypeError('signal: expected an AbortSignal');
  if (signal !== undefined) allowListeners(signal);
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0)) {
    throw new TypeError('timeout: expected milliseconds, more than 0');
  }
}

/** A name that is no identifier may be a value in the wrong place. */
function nameOf(option: string): string {
  return /^[a-z]{1,32}$/i.test(option) ? `\`${option}\`` : 'one of them';
}

function withLength(headers: readonly string[], body: RequestBody | undefined): readonly string[] {
  return body?.contentLength === undefined ? headers : [...headers, 'content-length', String(body.contentLength)];
}

/**
 * One signal for hundreds of calls at once is no leak, which Node takes it for from eleven listeners on: each call
 * takes its own back. A limit that the caller has set is left alone.
 */
function allowListeners(signal: AbortSignal): void {
  try {
    if (getMaxListeners(signal) === defaultMaxListeners) setMaxListeners(Infinity, signal);
  } catch {
    // Node 20 fails to read a limit of 0, which is no limit already.
  }
}
