import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Secret } from '../redaction.js';
import { isSecure } from './incoming-request.js';
import { cookieSettingsOf, isForFrames } from './session.js';

/** Maximum number of characters of a browser's `Cookie` header: many proxies refuse a header above 8 KB. A session cookie still has to fit in. */
export const MAX_COOKIE_HEADER = 7_800;

/**
 * Maximum number of characters that this package adds to the headers of one response. nginx answers 502 where all headers
 * are longer than its buffer, 4 KB by default; the application adds its own. Browsers keep cookies of up to 4,096 bytes.
 */
export const MAX_RESPONSE_HEADERS = 2_800;

/** Characters of a line of `Set-Cookie` around name and value: its attributes, and the header's name. */
export const SET_COOKIE_LENGTH = 90;

/** Lifetime of the return cookie, in seconds: long enough for a page that links to the login route. */
const RETURN_MAX_AGE_S = 10 * 60;

/** Maximum length of a path to return to, in characters. */
const MAX_RETURN_TO = 2048;

/** Control characters and white space, which browsers drop or read as an end, and the backslash, which they read as a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\x00-\x20\x7f\\]/;

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const HOST_PREFIX = '__Host-';

const ALGORITHM = 'aes-256-gcm';
const IV_LENGTH = 12;
const TAG_LENGTH = 16;

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/** Returns the value of a cookie, decoded. */
export function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const { cookie = '' } = headers;
  return cookie.includes(name) ? parseCookies(cookie)[name] : undefined;
}

/**
 * Returns the cookies of a `Cookie` header by name, like the package `cookie` 1.x: of several with one name the first, and a
 * value that cannot be decoded as it was sent.
 */
export function parseCookies(header: string): Readonly<Record<string, string | undefined>> {
  const cookies: Record<string, string | undefined> = Object.create(null);
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    if (equals === -1) continue;
    let [nameStart, nameEnd, start, end] = [0, equals, equals + 1, pair.length];
    // Drops spaces and tabs alone. `trim` drops more: with U+00A0 before its name, a cookie of a sibling host would pass for
    // one with the prefix `__Host-`. A regular expression takes quadratic time for many spaces.
    while (pair[nameStart] === ' ' || pair[nameStart] === '\t') nameStart += 1;
    while (nameEnd > nameStart && (pair[nameEnd - 1] === ' ' || pair[nameEnd - 1] === '\t')) nameEnd -= 1;
    while (pair[start] === ' ' || pair[start] === '\t') start += 1;
    while (end > start && (pair[end - 1] === ' ' || pair[end - 1] === '\t')) end -= 1;
    const value = pair.slice(start, end);
    cookies[pair.slice(nameStart, nameEnd)] ??= value.includes('%') ? decoded(value) : value;
  }
  return cookies;
}

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}

/**
 * Sets a cookie of visible ASCII. Ends it, and returns false, if the response, or the browser, has no room for the value.
 *
 * @param used Characters that other headers of this package take in the response.
 */
export function setCookie(
  req: IncomingMessage,
  res: ServerResponse,
  name: string,
  value: string,
  maxAgeS: number,
  used = 0,
): boolean {
  const encoded = value.replace(/[%;,"=]/g, encodeURIComponent);
  const length = name.length + encoded.length + 1;
  const others = (req.headers.cookie ?? '').length - (readCookie(req, name)?.length ?? 0);
  const hasRoom = length <= MAX_RESPONSE_HEADERS - SET_COOKIE_LENGTH - used && others + length <= MAX_COOKIE_HEADER;
  if (hasRoom) appendCookie(req, res, `${name}=${encoded}; Max-Age=${maxAgeS}`);
  else endCookie(req, res, name);
  return hasRoom;
}

/** Ends a cookie in the browser. */
export function endCookie(req: IncomingMessage, res: ServerResponse, name: string): void {
  appendCookie(req, res, `${name}=; Max-Age=0`);
}

function appendCookie(req: IncomingMessage, res: ServerResponse, cookie: string): void {
  res.appendHeader('Set-Cookie', cookie + cookieAttributes(req, isSecure(req)));
}

/**
 * Returns the attributes of a cookie of this package. They follow those of the session: where its cookie is made for frames
 * of other sites, so are these. `Lax` otherwise: a callback is a navigation from another site.
 *
 * @see RFC 6265bis, 5.6.7; https://datatracker.ietf.org/doc/draft-cutler-httpbis-partitioned-cookies/
 */
export function cookieAttributes(req: IncomingMessage, isSecure: boolean): string {
  const always = '; Path=/; HttpOnly; SameSite=';
  if (!isForFrames(req)) return `${always}Lax${isSecure ? '; Secure' : ''}`;
  return `${always}None; Secure${cookieSettingsOf(req).partitioned === true ? '; Partitioned' : ''}`;
}

/**
 * Seals the content of a cookie: only holders of a secret can read or create it, and only for the context that it was
 * sealed for. The first secret seals, all open.
 *
 * AES-256-GCM with random IVs, under keys that HKDF derives once, and the context as additional data (NIST SP 800-38D).
 * Synchronous: at this size a job for the thread pool costs more than the cipher, and every visitor who begins a login
 * passes here.
 */
export class CookieSeal {
  readonly #keys: readonly [KeyObject, ...KeyObject[]];

  /** @param purpose Separates keys that are derived from one secret. */
  constructor(purpose: string, [first, ...others]: readonly [Secret, ...Secret[]]) {
    this.#keys = [keyOf(purpose, first), ...others.map((secret) => keyOf(purpose, secret))];
  }

  /** Returns the length of a sealed text. */
  static lengthOf(text: string): number {
    return Math.ceil(((IV_LENGTH + Buffer.byteLength(text) + TAG_LENGTH) * 4) / 3);
  }

  /** Encrypts a text. @returns base64url */
  seal(context: string, text: string): string {
    const iv = randomBytes(IV_LENGTH);
    const cipher = createCipheriv(ALGORITHM, this.#keys[0], iv).setAAD(Buffer.from(context));
    const sealed = cipher.update(text, 'utf8');
    return Buffer.concat([iv, sealed, cipher.final(), cipher.getAuthTag()]).toString('base64url');
  }

  /** Decrypts a text; returns `undefined` for anything that was not sealed for this context. */
  open(context: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length < IV_LENGTH + TAG_LENGTH) return undefined;
    for (const key of this.#keys) {
      try {
        const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, IV_LENGTH));
        decipher.setAAD(Buffer.from(context)).setAuthTag(bytes.subarray(-TAG_LENGTH));
        const text = decipher.update(bytes.subarray(IV_LENGTH, -TAG_LENGTH));
        return Buffer.concat([text, decipher.final()]).toString();
      } catch {
        // Sealed with another key, or not at all.
      }
    }
    return undefined;
  }
}

function keyOf(purpose: string, secret: Secret): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', purpose, 32)));
}

/**
 * Remembers, in a cookie of one strategy, the path to return to after the login, for links without `returnTo`.
 *
 * Visitors who are sent to log in thus leave nothing in the session store. The cookie holds a path and nothing else, and
 * is checked when it is read.
 */
export class ReturnCookie {
  readonly #name: string;

  /** @param name Differs for each application of a host. */
  constructor(name: string) {
    this.#name = name;
  }

  /**
   * Stores a page's path, or `/` for an unsafe or overlong one. Ends the cookie if it does not fit, so that no older path is
   * followed.
   *
   * @param used Characters that other headers of this package take in the response.
   */
  remember(req: IncomingMessage, res: ServerResponse, path: string, used = 0): void {
    setCookie(req, res, this.#name, safeReturnTo(path), RETURN_MAX_AGE_S, used);
  }

  /** Returns the number of characters that the cookie takes in the request. */
  lengthIn({ headers: { cookie = '' } }: IncomingMessage): number {
    const start = cookie.indexOf(`${this.#name}=`);
    if (start === -1) return 0;
    const end = cookie.indexOf(';', start);
    return (end === -1 ? cookie.length : end) - start;
  }

  /** Returns the stored path, and ends the cookie, so that a later login does not lead there. */
  take(req: IncomingMessage, res: ServerResponse): string | undefined {
    const value = readCookie(req, this.#name);
    if (value === undefined) return undefined;
    endCookie(req, res, this.#name);
    return safeReturnTo(value);
  }
}

/**
 * Returns the normalized path if `value` is one of this origin that a browser can return to after the login, else `/`.
 *
 * Refuses what a browser could take for another origin, also after it has resolved dot segments.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_RETURN_TO || !value.startsWith('/')) return '/';
  // In query and fragment a backslash is a character like any other, but not every reader knows that.
  const [, path = '', rest = ''] = /^([^?#]*)(.*)$/s.exec(value) ?? [];
  const text = path + rest.replaceAll('\\', '%5C');
  if (UNSAFE.test(text) || !URL.canParse(text, 'http://relative.invalid')) return '/';
  const { origin, pathname, search, hash } = new URL(text, 'http://relative.invalid');
  const safe = pathname + search + hash;
  // Percent-encoding can make a path nine times as long.
  return origin === 'http://relative.invalid' && !safe.startsWith('//') && safe.length <= MAX_RETURN_TO ? safe : '/';
}
