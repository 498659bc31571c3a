import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { isRecent } from '../clock.js';
import type { Secret } from '../redaction.js';
import { HeaderBudget } from './header-budget.js';
import { cookieSettingsOf, isForFrames } from './session.js';
import type { Visit } from './visit.js';

/** What a sealed cookie is made with. */
export interface SealedCookieOptions {
  /** Without the prefix. */
  readonly name: string;
  readonly seal: CookieSeal;
  readonly maxAgeS: number;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** What the content is bound to, besides the name: it opens for the same text alone. */
  readonly binding?: string | undefined;
}

/**
 * A short-lived cookie of JSON that no browser, and no sibling host, can read or make up. The time is sealed too, so that an
 * old one is as none.
 */
export class SealedCookie<Content extends readonly unknown[]> {
  readonly #options: SealedCookieOptions;

  constructor(options: SealedCookieOptions) {
    this.#options = options;
  }

  /** Returns true if the request has the cookie, as far as a look at its header shows. */
  isSet({ cookieHeader }: Pick<Visit, 'cookieHeader'>): boolean {
    return cookieHeader.includes(this.#options.name);
  }

  /** Returns the content, behind the time at which it was made; `undefined` if the cookie is older than its maximum age. */
  read(visit: Visit): readonly [at: number, ...Content] | undefined {
    if (!this.isSet(visit)) return undefined;
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
    return isSecure ? HOST_PREFIX + this.#options.name : this.#options.name;
  }

  #contextFor(visit: Visit): string {
    return JSON.stringify([this.#nameFor(visit), this.#options.binding ?? '']);
  }
}

const ALGORITHM = 'aes-256-gcm';
const IV_LENGTH = 12;
const TAG_LENGTH = 16;

/**
 * Seals the content of a cookie: only holders of a secret can read or create it, and only for the context that it was
 * sealed for. The first secret seals, all open.
 *
 * AES-256-GCM with random IVs, under keys that HKDF derives once, and the context as additional data (NIST SP 800-38D).
 * Synchronous: at this size a job for the thread pool costs more than the cipher, and every visitor who begins a login
 * passes here.
 */
export class CookieSeal {
  static readonly IV_LENGTH: number = IV_LENGTH;
  readonly #keys: readonly [KeyObject, ...KeyObject[]];

  /** @param purpose Separates keys that are derived from one secret. */
  constructor(purpose: string, [first, ...others]: readonly [Secret, ...Secret[]]) {
    this.#keys = [keyOf(purpose, first), ...others.map((secret) => keyOf(purpose, secret))];
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

function keyOf(purpose: string, secret: Secret): KeyObject {
  return createSecretKey(Buffer.from(hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', purpose, 32)));
}

/** Browsers accept a cookie of such a name from its own host alone, over TLS (RFC 6265bis, 4.1.3.2). */
export const HOST_PREFIX = '__Host-';

/** Returns a strategy's name as cookie names can hold it (RFC 6265, 4.1.1), without dots. */
export function cookieToken(strategyName: string): string {
  return strategyName.replace(/^__|[^\w-]/g, (part) => `%${part.charCodeAt(0).toString(16)}`);
}

/**
 * Sets a cookie of visible ASCII. Ends it, and returns false, if the response or the browser has no room for the value.
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
  const line = hasRoom ? `${name}=${encoded}; Max-Age=${maxAgeS}` : `${name}=; Max-Age=0`;
  res.appendHeader('Set-Cookie', line + cookieAttributes(visit.req, visit.isSecure));
  return hasRoom;
}

/** Ends a cookie in the browser. */
export function endCookie(visit: Visit, res: ServerResponse, name: string): void {
  res.appendHeader('Set-Cookie', `${name}=; Max-Age=0${cookieAttributes(visit.req, visit.isSecure)}`);
}

/**
 * Returns the attributes of a cookie of this package. They follow those of the session: if its cookie is made for frames of
 * other sites, so are these. `Lax` otherwise: a callback is a navigation from another site.
 *
 * @see RFC 6265bis, 5.6.7; https://datatracker.ietf.org/doc/draft-cutler-httpbis-partitioned-cookies/
 */
export function cookieAttributes(req: Visit['req'], isSecure: boolean): string {
  const always = '; Path=/; HttpOnly; SameSite=';
  if (!isForFrames(req)) return `${always}Lax${isSecure ? '; Secure' : ''}`;
  return `${always}None; Secure${cookieSettingsOf(req).partitioned === true ? '; Partitioned' : ''}`;
}
