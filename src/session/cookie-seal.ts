import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject, randomBytes } from 'node:crypto';
import type { Secret } from '../redaction.js';

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
