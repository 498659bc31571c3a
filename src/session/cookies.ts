import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isRecent } from '../clock.js';
import type { Secret } from '../redaction.js';
import { cookieSettingsOf } from './session.js';
import type { Visit } from './visit.js';

/** Options of a {@link SealedCookie}. */
export interface SealedCookieOptions {
  /** Without the prefix. */
  readonly name: string;
  readonly seal: CookieSeal;
  readonly maxAgeS: number;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** What the content is bound to, besides the name. */
  readonly binding?: string | undefined;
}

/** A short-lived cookie of JSON that no browser, and no sibling host, can read or forge. Its time is sealed, too. */
export class SealedCookie<Content extends readonly unknown[]> {
  /** Without the prefix: a `Cookie` header without it has no such cookie. */
  readonly name: string;
  readonly #options: SealedCookieOptions;

  constructor(options: SealedCookieOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** Returns the time at which the content was made, and the content; `undefined` if the cookie is older than its maximum age. */
  read(visit: Visit): readonly [at: number, ...Content] | undefined {
    const { seal, maxAgeS, clock } = this.#options;
    const value = visit.cookie(this.#nameFor(visit));
    const text = value && seal.open(this.#contextFor(visit), value);
    if (!text) return undefined;
    const content = JSON.parse(text) as readonly [number, ...Content];
    return isRecent(content[0], maxAgeS * 1000, clock()) ? content : undefined;
  }

  /** Sets the cookie. Returns false if there is no room for it. @param at When the content was made. Default: now. */
  write(visit: Visit, res: ServerResponse, content: Content, at: number = this.#options.clock()): boolean {
    const { seal, maxAgeS } = this.#options;
    const sealed = seal.seal(this.#contextFor(visit), JSON.stringify([at, ...content]));
    return setCookie(visit, res, this.#nameFor(visit), sealed, maxAgeS);
  }

  /** Ends the cookie, if the browser has it. Returns false if it has none. */
  end(visit: Visit, res: ServerResponse): boolean {
    const name = this.#nameFor(visit);
    if (visit.cookie(name) === undefined) return false;
    endCookie(visit, res, name);
    return true;
  }

  /** A cookie without the prefix may come from a sibling host: with https it is not read. */
  #nameFor({ isSecure }: Visit): string {
    return isSecure ? HOST_PREFIX + this.name : this.name;
  }

  #contextFor(visit: Visit): string {
    return JSON.stringify([this.#nameFor(visit), this.#options.binding ?? '']);
  }
}

const ALGORITHM = 'aes-256-gcm';
const IV_LENGTH = 12;
const TAG_LENGTH = 16;

/**
 * Seals the content of a cookie for a context: only holders of a secret can read or create it. The first secret seals, all open.
 *
 * AES-256-GCM with random IVs, under keys that HKDF derives once, and the context as additional data (NIST SP 800-38D).
 * Synchronous: at this size a job for the thread pool costs more than the cipher.
 */
export class CookieSeal {
  static readonly IV_LENGTH: number = IV_LENGTH;
  readonly #keys: readonly [KeyObject, ...KeyObject[]];

  /** @param purpose Separates keys that are derived from one secret. */
  constructor(purpose: string, [first, ...others]: readonly [Secret, ...Secret[]]) {
    this.#keys = [deriveKey(purpose, first), ...others.map((secret) => deriveKey(purpose, secret))];
  }

  /** Returns the length of a sealed text. */
  static lengthOf(text: string): number {
    return Math.ceil(((IV_LENGTH + Buffer.byteLength(text) + TAG_LENGTH) * 4) / 3);
  }

  /** Encrypts a text. @param iv Random bytes that nothing else uses. @returns base64url */
  seal(context: string, text: string, iv: Uint8Array = randomBytes(IV_LENGTH)): string {
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

function deriveKey(purpose: string, secret: Secret): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', purpose, 32)));
}

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const HOST_PREFIX = '__Host-';

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/** Precedes the hash of the state in the name of a pending login's cookie. */
export const LOGIN_PART = '.login.';

/** Returns true if the browser sends a cookie of a pending login, of any strategy, as far as the unparsed header shows. */
export function hasLoginCookie({ cookieHeader }: Visit): boolean {
  return cookieHeader.includes(LOGIN_PART);
}

/**
 * Sets a cookie of visible ASCII. If the response or the browser has no room for the value, ends it and returns false.
 *
 * @param location Characters of the address that the response redirects to.
 */
export function setCookie(
  visit: Visit,
  res: ServerResponse,
  name: string,
  value: string,
  maxAgeS: number,
  location = 0,
): boolean {
  const encoded = value.replace(/[%;,"=]/g, encodeURIComponent);
  const former = visit.cookie(name)?.length ?? 0;
  const hasRoom = new HeaderBudget(visit, res, location).hasRoomFor(name, encoded.length, -former);
  const pair = hasRoom ? `${name}=${encoded}; Max-Age=${maxAgeS}` : `${name}=; Max-Age=0`;
  res.appendHeader('Set-Cookie', pair + cookieAttributes(visit.req, visit.isSecure));
  return hasRoom;
}

/** Ends a cookie in the browser. */
export function endCookie(visit: Visit, res: ServerResponse, name: string): void {
  res.appendHeader('Set-Cookie', `${name}=; Max-Age=0${cookieAttributes(visit.req, visit.isSecure)}`);
}

/**
 * Returns the attributes of a cookie of this package: for frames of other sites if the session's cookie is `SameSite=None`.
 * Otherwise `Lax`, since a callback is a navigation from another site.
 *
 * @see RFC 6265bis, 5.6.7; https://datatracker.ietf.org/doc/draft-cutler-httpbis-partitioned-cookies/
 */
export function cookieAttributes(req: Visit['req'], isSecure: boolean): string {
  const always = '; Path=/; HttpOnly; SameSite=';
  if (!isForFrames(req)) return `${always}Lax${isSecure ? '; Secure' : ''}`;
  return `${always}None; Secure${isPartitioned(req) ? '; Partitioned' : ''}`;
}

function isForFrames(req: Visit['req']): boolean {
  return String(cookieSettingsOf(req).sameSite).toLowerCase() === 'none';
}

/** Returns true if cookies of this package, like the session's, are kept apart for each site that frames the application. */
export function isPartitioned(req: Visit['req']): boolean {
  return isForFrames(req) && cookieSettingsOf(req).partitioned === true;
}

/** Most characters of a browser's `Cookie` header: many proxies refuse more than 8 KB, and a session cookie has to fit in. */
const MAX_COOKIE_HEADER = 7_800;

/**
 * Most characters that this package adds to the headers of one response. nginx answers 502 if all headers exceed its buffer,
 * 4 KB by default, and the application adds more. Browsers keep cookies of up to 4,096 bytes.
 */
const MAX_RESPONSE_HEADERS = 2_800;

/** Characters of a line of `Set-Cookie` around name and value: its attributes, and the header's name. */
const SET_COOKIE_LENGTH = 90;

/** Characters around name and value of a cookie in the `Cookie` header. */
const PAIR_LENGTH = '=; '.length;

/** What a response has room for: in its own headers, and in the `Cookie` header that its cookies lead to. */
export class HeaderBudget {
  /** Characters that the response's headers may still take. */
  #response: number;
  /** Characters that the browser's `Cookie` header may still take. */
  #cookies: number;

  /** @param location Characters of the address that the response redirects to. */
  constructor(visit: Visit, res: Partial<ServerResponse>, location = 0) {
    this.#response = MAX_RESPONSE_HEADERS - location;
    this.#cookies = MAX_COOKIE_HEADER - visit.cookieHeader.length;
    // A double in a unit test may lack the method.
    for (const line of [res.getHeader?.('Set-Cookie') ?? []].flat().map(String)) {
      const [, name = '', value = ''] = /^([^=]*)=([^;]*)/.exec(line) ?? [];
      this.#response -= line.length;
      this.#cookies += pairLength(name, visit.cookies[name]);
      if (!/; Max-Age=0\b/i.test(line)) this.#cookies -= pairLength(name, value);
    }
  }

  /** Returns true if the response can redirect to an address of this length, and still set a short cookie. */
  hasRoomForLocation(length: number): boolean {
    return length <= this.#response - 300;
  }

  /** Returns true if a cookie fits into both. @param reserved Characters of the `Cookie` header to leave to other cookies. */
  hasRoomFor(name: string, length: number, reserved = 0): boolean {
    return (
      name.length + length + PAIR_LENGTH <= this.#response - SET_COOKIE_LENGTH &&
      name.length + length + PAIR_LENGTH <= this.#cookies - reserved
    );
  }

  /** Counts a cookie that the response sets. */
  add(name: string, length: number): void {
    this.#response -= name.length + length + SET_COOKIE_LENGTH;
    this.#cookies -= name.length + length + PAIR_LENGTH;
  }

  /** Counts a cookie that the response ends. Returns false if it has no room for that. */
  end(name: string, value: string): boolean {
    if (name.length + SET_COOKIE_LENGTH > this.#response) return false;
    this.#response -= name.length + SET_COOKIE_LENGTH;
    this.#cookies += pairLength(name, value);
    return true;
  }

  /** True if the cookies that were counted are more than a proxy accepts. */
  get isExceeded(): boolean {
    return this.#cookies < 0;
  }
}

function pairLength(name: string, value: string | undefined): number {
  return value === undefined ? 0 : name.length + value.length + PAIR_LENGTH;
}
