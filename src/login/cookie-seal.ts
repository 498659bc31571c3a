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
 * Seals what a cookie carries: only holders of the secret can read or make it, and only for the context it was made for.
 *
 * AES-256-GCM under a key of each context's own. Synchronous: at this size a job for the thread pool costs more than
 * the cipher, and this is on the way of each visitor who begins a login.
 */
export class CookieSeal {
  readonly #key: KeyObject;

  /** @param purpose Keeps keys that stem from one secret apart. */
  constructor(purpose: string, secret: Secret) {
    const key = hkdfSync('sha256', secret.reveal(), 'passport-oauth-app', purpose, 32);
    this.#key = createSecretKey(Buffer.from(key));
  }

  /** @returns base64url */
  seal(context: string, text: string): string {
    const iv = randomBytes(IV_LENGTH);
    const cipher = createCipheriv(ALGORITHM, this.#keyFor(context), iv);
    const sealed = cipher.update(text, 'utf8');
    return Buffer.concat([iv, sealed, cipher.final(), cipher.getAuthTag()]).toString('base64url');
  }

  /** The text; `undefined` for whatever was not sealed for this context. */
  open(context: string, sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url');
    if (bytes.length < IV_LENGTH + TAG_LENGTH) return undefined;
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#keyFor(context), bytes.subarray(0, IV_LENGTH));
      decipher.setAuthTag(bytes.subarray(-TAG_LENGTH));
      const text = decipher.update(bytes.subarray(IV_LENGTH, -TAG_LENGTH));
      return Buffer.concat([text, decipher.final()]).toString();
    } catch {
      return undefined;
    }
  }

  #keyFor(context: string): Buffer {
    return createHmac('sha256', this.#key).update(context).digest();
  }
}
