import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/** Makes and signs the strings that nobody else can make. With a seed they are the same at each start. */
export class Secrets {
  readonly #key: KeyObject;
  #made = 0;

  /** @param seed - Unless given, nothing can be foretold and nothing outlives this instance. */
  constructor(seed?: string) {
    this.#key = createSecretKey(seed === undefined ? randomBytes(32) : Buffer.from(`emulator:${seed}`));
  }

  /** The HMAC-SHA256 of the text, in base64url: 43 characters. */
  sign(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url');
  }

  /** A new unguessable string of 43 characters, never the same twice. */
  make(): string {
    this.#made += 1;
    return this.sign(`made:${this.#made}`);
  }
}
