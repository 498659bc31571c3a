import { ACCEPTED_ENCODINGS } from '../http/content-encoding.js';
import type { Credential } from './credential.js';

/** Headers of the caller. A list gives the same header several times; `undefined` is not sent. */
export type RequestHeaders =
  | Readonly<Record<string, string | number | readonly string[] | undefined>>
  | Iterable<readonly [string, string]>;

/** Set by this package, or by the HTTP connection; a caller that sets them breaks the request or leaks the token. */
const RESERVED: ReadonlySet<string> = new Set([
  'authorization',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** What is sent where the caller says nothing else; names and values in turn. */
export const DEFAULT_HEADERS: readonly string[] = Object.freeze([
  'accept',
  'application/json',
  'accept-encoding',
  ACCEPTED_ENCODINGS,
  'user-agent',
  'passport-oauth-app',
]);

/** The same for an answer that is passed on as it comes: compressed downloads are rare, and resuming them is not possible. */
export const DEFAULT_STREAM_HEADERS: readonly string[] = Object.freeze([
  'accept',
  '*/*',
  'accept-encoding',
  'identity',
  'user-agent',
  'passport-oauth-app',
]);

/**
 * Names and values in turn: those of the caller, and the defaults that the caller did not replace.
 *
 * @throws TypeError for `Authorization`, `Host` and headers of the connection in any case, and for what is no valid
 *   name or value (RFC 9110, 5.5 and 5.6.2). Its message never holds a value.
 */
export function requestHeaders(
  headers: RequestHeaders | undefined,
  contentType: string | undefined,
  defaults: readonly string[],
): readonly string[] {
  if (headers === undefined && contentType === undefined) return defaults;
  const own = headers === undefined ? [] : pairsOf(headers).flatMap(([name, value]) => checked(name, value));
  const names = new Set(own.filter((_text, index) => index % 2 === 0));
  const others = contentType === undefined ? defaults : [...defaults, 'content-type', contentType];
  for (let index = 0; index < others.length; index += 2) {
    const [name = '', value = ''] = others.slice(index, index + 2);
    if (!names.has(name)) own.push(name, value);
  }
  return own;
}

const authorizations = new WeakMap<Credential, string>();
const defaultLists = new WeakMap<Credential, readonly string[]>();

/** All headers of a request with this credential. Built once for each credential where they are the defaults. */
export function authorizedHeaders(credential: Credential, headers: readonly string[]): readonly string[] {
  if (headers !== DEFAULT_HEADERS) return ['authorization', authorizationOf(credential), ...headers];
  let list = defaultLists.get(credential);
  if (list === undefined) {
    list = ['authorization', authorizationOf(credential), ...headers];
    defaultLists.set(credential, list);
  }
  return list;
}

function authorizationOf(credential: Credential): string {
  let authorization = authorizations.get(credential);
  if (authorization === undefined) {
    authorization = `Bearer ${credential.accessToken}`;
    authorizations.set(credential, authorization);
  }
  return authorization;
}

function pairsOf(headers: RequestHeaders): (readonly [string, unknown])[] {
  if (typeof headers !== 'object' || headers === null) throw new TypeError('headers: expected an object');
  if (!(Symbol.iterator in headers)) return Object.entries(headers);
  const pairs = [...headers];
  if (pairs.every((pair) => Array.isArray(pair) && pair.length === 2)) return pairs;
  throw new TypeError('headers: expected pairs of name and value');
}

function checked(name: string, value: unknown): string[] {
  const lowerCase = checkedName(name);
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.filter((one) => one !== undefined).flatMap((one) => [lowerCase, checkedValue(lowerCase, one)]);
}

function checkedName(name: unknown): string {
  if (typeof name !== 'string' || !/^[!#$%&'*+.^_`|~\w-]{1,256}$/.test(name)) {
    throw new TypeError('headers: a name is not valid (RFC 9110, 5.6.2)');
  }
  const lowerCase = name.toLowerCase();
  if (RESERVED.has(lowerCase)) throw new TypeError(`headers: ${lowerCase} is set by the client and cannot be given`);
  return lowerCase;
}

function checkedValue(name: string, value: unknown): string {
  const text = typeof value === 'number' ? String(value) : value;
  if (typeof text === 'string' && /^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(text)) return text;
  throw new TypeError(`headers: the value of ${name} is not valid (RFC 9110, 5.5)`);
}
