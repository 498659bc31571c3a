import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import type { Secret } from '../redaction.js';

const ALGORITHM = 'aes-256-gcm';
const IV_LENGTH = 12;
const TAG_LENGTH = 16;

/**
 * Seals the content of a cookie: only holders of the secret can read or create it, and only for the context that it was sealed for.
 *
 * AES-256-GCM with a key for each context. Synchronous: at this size a job for the thread pool costs more than the
 * cipher, and every visitor who begins a login passes here.
 */
export class CookieSeal {
  readonly #key: KeyObject;

  /** @param purpose Separates keys that are derived from one secret. */
  constructor(purpose: string, secret: Secret) {
    const key = hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', purpose, 32);
    this.#key = createSecretKey(Buffer.from(key));
  }

  /** Encrypts a text. @returns base64url */
  seal(context: string, text: string): string {
    const iv = randomBytes(IV_LENGTH);
    const cipher = createCipheriv(ALGORITHM, this.derive(context), iv);
    const sealed = cipher.update(text, 'utf8');
    return Buffer.concat([iv, sealed, cipher.final(), cipher.getAuthTag()]).toString('base64url');
  }

  /** Decrypts a text; returns `undefined` for anything that was not sealed for this context. */
  open(context: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length < IV_LENGTH + TAG_LENGTH) return undefined;
    try {
      const decipher = createDecipheriv(ALGORITHM, this.derive(context), bytes.subarray(0, IV_LENGTH));
      decipher.setAuthTag(bytes.subarray(-TAG_LENGTH));
      const text = decipher.update(bytes.subarray(IV_LENGTH, -TAG_LENGTH));
      return Buffer.concat([text, decipher.final()]).toString();
    } catch {
      return undefined;
    }
  }

  /** Derives 256 bits that only holders of the secret can compute. */
  derive(context: string): Buffer {
    return createHmac('sha256', this.#key).update(context).digest();
  }
}
