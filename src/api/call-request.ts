import { defaultMaxListeners, getMaxListeners, setMaxListeners } from 'node:events';
import type { Query, RequestOptions, StandardSchema } from './call-options.js';
import { type RequestBody, requestBody } from './request-body.js';
import { requestHeaders } from './request-headers.js';

/** Where a request goes. The base address depends on its credential. */
export interface RequestTarget {
  /** Encoded, with a leading slash. Below the API's base address, or the whole path if there is an `origin`. */
  readonly path: string;
  /** Empty, or with a leading `?`. */
  readonly query: string;
  /** The origin of a URL, which may have to be that of the API. */
  readonly origin?: string | undefined;
  /** True for `fetch`: the path may begin with the API path already, and redirects may lead anywhere on the origin. */
  readonly isWholeOrigin?: boolean;
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

/** Paths of plain segments, which most are: there is nothing to encode or to refuse. */
const PLAIN_PATH = /^\/?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?$/;

/** Characters that a path needs escapes for (RFC 3986, 3.3), without `%`, whose escapes are checked separately. */
const TO_ENCODE = /[^\w.~!$&'()*+,;=:@/%-]+/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\u0000-\u001f\u007f\\]/;

/** Only an attempt to get past the checks is encoded more often. */
const MAX_DECODINGS = 5;

/**
 * Returns the path of a request below the API's base address, with a leading slash, percent-encoded if needed. It stays
 * below that address, however often the service decodes it.
 *
 * @param path `projects/7` or `/projects/7`. Pass values in it through `encodeURIComponent`.
 * @throws TypeError for an absolute URL, `//host`, an empty or dot segment in any encoding, a backslash, a control
 *   character, a `?` or `#`, a broken escape or a lone surrogate. Its message does not quote the path.
 */
export function apiPath(path: unknown): string {
  if (typeof path !== 'string')
    throw new TypeError(`path: expected a string, got ${path === null ? 'null' : typeof path}`);
  const rooted = path.startsWith('/') ? path : `/${path}`;
  if (PLAIN_PATH.test(path)) return rooted;
  if (/^[a-z][a-z\d+.-]*:/i.test(path)) {
    throw new TypeError(
      'path: it is an absolute URL; expected a path below client.baseUrl, for example /projects/7. ' +
        'A URL of the API itself goes to client.fetch(url), a link to another host to the global fetch(url), without the token.',
    );
  }
  refuse(path === '' || rooted.includes('//'), 'has an empty segment');
  refuse(/[?#]/.test(path), 'has a ? or #; pass the query as the option `query`, and encode values');
  refuse(/%(?![\da-f]{2})/i.test(rooted), 'has a percent sign that starts no escape; encode values');
  refuse(!rooted.isWellFormed(), 'has a lone surrogate');
  const encoded = rooted.replace(TO_ENCODE, encodeURIComponent);
  try {
    decodeURIComponent(encoded);
  } catch {
    refuse(true, 'has an escape that is not UTF-8');
  }
  const texts = decodings(encoded);
  for (const text of texts) {
    refuse(FORBIDDEN.test(text), 'has a backslash or a control character');
    // Some servers take `..;name` for `..`, and URL parsers drop the space at the end of a decoded segment.
    const names = text.split('/').map((segment) => segment.split(';', 1)[0]?.trim());
    refuse(names.includes('.') || names.includes('..'), 'has a dot segment');
  }
  refuse(texts.length > MAX_DECODINGS + 1, 'is encoded several times over');
  return encoded;
}

/** Returns a path as it is, decoded once, twice and so on, until no escape is left or after six times. */
export function decodings(path: string): readonly string[] {
  const texts = [path];
  for (let text = path; texts.length <= MAX_DECODINGS + 1; texts.push(text)) {
    const before = text;
    // Byte by byte: the checks look for ASCII only, and a second decoding need not be valid UTF-8.
    text = before.replace(/%([\da-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text === before) break;
  }
  return texts;
}

function refuse(condition: boolean, reason: string): void {
  if (condition)
    throw new TypeError(`path: it ${reason}; expected a path below client.baseUrl, for example /projects/7`);
}

/**
 * Returns the query of a request: empty, or with a leading `?`.
 *
 * @throws TypeError for objects, `null`, `NaN`, invalid dates and lone surrogates as values. Its message names the parameter,
 *   never its value.
 */
export function queryString(query: Query | URLSearchParams | undefined): string {
  if (query === undefined) return '';
  if (query instanceof URLSearchParams) return query.size === 0 ? '' : `?${query}`;
  if (typeof query !== 'object' || query === null || Symbol.iterator in query) {
    throw new TypeError('query: expected an object of parameters, or URLSearchParams');
  }
  const pairs = Object.entries(query).flatMap(([name, value]: [string, unknown]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one: unknown) => one !== undefined)
      .map((one: unknown) => `${encodeParameter(name, name)}=${encodeParameter(name, one)}`),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function encodeParameter(name: string, value: unknown): string {
  const isDate = value instanceof Date && Number.isFinite(value.getTime());
  const isText = typeof value === 'string' && value.isWellFormed();
  const isPlain = isText || typeof value === 'boolean' || typeof value === 'bigint' || Number.isFinite(value);
  if (isDate || isPlain) return encodeURIComponent(isDate ? value.toISOString() : String(value));
  const shown = /^[\w.[\]-]{1,64}$/.test(name) ? ` ${name}` : '';
  throw new TypeError(
    `query: expected strings, finite numbers, booleans, dates or arrays of these in the parameter${shown}`,
  );
}
