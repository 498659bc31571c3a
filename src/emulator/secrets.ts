import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/** Generates and signs unguessable strings. A seed makes them the same at each start. */
export class Secrets {
  readonly #key: KeyObject;
  #made = 0;

  /** @param seed - Default: a random key that exists only as long as this instance. */
  constructor(seed?: string) {
    this.#key = createSecretKey(seed === undefined ? randomBytes(32) : Buffer.from(`emulator:${seed}`));
  }

  /** Returns the HMAC-SHA256 of the text in base64url: 43 characters. */
  sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }

  /** Returns a new unguessable string of 43 characters, never the same twice. */
  make(): string {
    this.#made += 1;
    return this.sign(`made:${this.#made}`);
  }
}
