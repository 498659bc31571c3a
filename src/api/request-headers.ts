import { optionError } from '../checks.js';
import { ConfigurationError } from '../errors.js';
import { ACCEPTED_ENCODINGS } from '../http/decoding.js';
import { USER_AGENT } from '../http/message.js';
import type { RequestBody } from './request-body.js';

/** Headers of the caller. A list sends the same header several times; `undefined` is left out. */
export type RequestHeaders =
  | Readonly<Record<string, string | number | readonly string[] | undefined>>
  | Iterable<readonly [string, string]>;

/** Set by this package or by the HTTP connection. A caller that set them would break the request or leak the token. */
const RESERVED: ReadonlySet<string> = new Set([
  ...['authorization', 'proxy-authorization', 'host', 'content-length', 'expect', 'te', 'trailer'],
  ...['connection', 'proxy-connection', 'keep-alive', 'transfer-encoding', 'upgrade'],
]);

/** Set by this package or by callers: none of them can carry the token. */
const ORDINARY: ReadonlySet<string> = new Set(['accept', 'accept-encoding', 'content-type', 'cookie', 'user-agent']);

/** A field name (RFC 9110, 5.6.2). */
const NAME = /^[!#$%&'*+.^_`|~\w-]{1,256}$/;

/** Reads the name of the header that carries the access token, and returns it in lower case. @throws ConfigurationError */
export function tokenHeaderName(option: string, value: unknown): string {
  const name = typeof value === 'string' && NAME.test(value) ? value.toLowerCase() : '';
  const isFree = name === 'authorization' || !(RESERVED.has(name) || ORDINARY.has(name));
  if (name !== '' && isFree) return name;
  throw optionError(option, 'expected the name of a header for the token alone, such as X-Shopify-Access-Token');
}

/** Headers that are sent unless the caller sets them; names and values in turn. */
export interface DefaultHeaders {
  /** For responses that are parsed. */
  readonly parsed: readonly string[];
  /** For responses that are passed on as they arrive. */
  readonly streamed: readonly string[];
  /** For `fetch`. */
  readonly fetched: readonly string[];
}

/** Returns the default headers, with those of the option `headers` first; names and values in turn. */
export function defaultHeaders(own: readonly string[] = []): DefaultHeaders {
  const accepting = (type: string, encoding: string) =>
    withDefaults(own, ['accept', type, 'accept-encoding', encoding, 'user-agent', USER_AGENT]);
  return Object.freeze({
    parsed: accepting('application/json', ACCEPTED_ENCODINGS),
    // A compressed download could not be resumed.
    streamed: accepting('*/*', 'identity'),
    fetched: accepting('*/*', ACCEPTED_ENCODINGS),
  });
}

/**
 * Returns the headers of a request, names and values in turn: the caller's, and those of the body and the defaults that
 * the caller does not replace.
 *
 * @throws TypeError for `Authorization`, `Host`, headers of the connection, and an invalid name or value (RFC 9110, 5.5 and
 *   5.6.2). Its message never holds a value.
 */
export function requestHeaders(
  headers: RequestHeaders | undefined,
  body: RequestBody | undefined,
  defaults: readonly string[],
): readonly string[] {
  if (headers === undefined && body === undefined) return defaults;
  const own = headers === undefined ? [] : pairsOf(headers).flatMap(([name, value]) => checked(name, value, body));
  const ofBody = body?.contentType === undefined ? [] : ['content-type', body.contentType];
  const length = body?.contentLength === undefined ? [] : ['content-length', String(body.contentLength)];
  return withDefaults(own, [...defaults, ...ofBody, ...length]);
}

/** Returns headers with those of `others` that are not among them. */
function withDefaults(headers: readonly string[], others: readonly string[]): readonly string[] {
  const all = [...headers];
  for (let index = 0; index < others.length; index += 2) {
    const [name = '', value = ''] = others.slice(index, index + 2);
    if (headerIn(headers, name) === undefined) all.push(name, value);
  }
  return all;
}

/** Reads the option `headers` of a strategy as names and values in turn. @throws ConfigurationError that names the option */
export function strategyHeaders(option: string, value: unknown): readonly string[] {
  try {
    return requestHeaders(value as RequestHeaders, undefined, []);
  } catch (error) {
    throw error instanceof TypeError ? new ConfigurationError(error.message, { option }) : error;
  }
}

/** Returns the value of a header in a list of names and values. @param name In lower case */
export function headerIn(headers: readonly string[], name: string): string | undefined {
  return headers.find((_text, index) => index % 2 === 1 && headers[index - 1] === name);
}

function pairsOf(headers: RequestHeaders): (readonly [string, unknown])[] {
  if (typeof headers !== 'object' || headers === null) throw new TypeError('headers: expected an object');
  if (!(Symbol.iterator in headers)) return Object.entries(headers);
  const pairs = [...headers];
  if (pairs.every((pair) => Array.isArray(pair) && pair.length === 2)) return pairs;
  throw new TypeError('headers: expected pairs of name and value');
}

function checked(name: unknown, value: unknown, body: RequestBody | undefined): string[] {
  if (typeof name !== 'string' || !NAME.test(name)) {
    throw new TypeError('headers: a name is not valid (RFC 9110, 5.6.2)');
  }
  const lowerCase = name.toLowerCase();
  // The length of a stream is known to the caller alone.
  const isLengthOfStream = lowerCase === 'content-length' && body?.isReplayable === false;
  if (RESERVED.has(lowerCase) && !isLengthOfStream) {
    throw new TypeError(`headers: ${lowerCase} is set by the client; leave it out`);
  }
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.flatMap((one) => {
    if (one === undefined) return [];
    const text = typeof one === 'number' ? String(one) : one;
    if (typeof text === 'string' && /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(text)) return [lowerCase, text];
    throw new TypeError(`headers: the value of ${lowerCase} is not valid (RFC 9110, 5.5)`);
  });
}
