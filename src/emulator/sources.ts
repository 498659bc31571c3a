import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto';

/** Time as the service sees it: a source in epoch milliseconds, plus an offset that tests move forward. */
export class Clock {
  readonly #source: () => number;
  /** Milliseconds that the time is ahead of its source. */
  offsetMs = 0;

  /** @param source - Called at each reading. The default looks up `Date.now` each time, so a test may fake `Date`. */
  constructor(source: () => number = () => Date.now()) {
    this.#source = source;
  }

  /** Returns epoch milliseconds. */
  now(): number {
    return this.#source() + this.offsetMs;
  }
}

/** Generates and signs unguessable strings. A seed makes them the same at each start. */
export class Secrets {
  #key: KeyObject;
  #made = 0;
  #drawn = 0;

  /** @param seed - Default: a random key that exists only as long as this instance. */
  constructor(seed?: string) {
    this.#key = createSecretKey(seed === undefined ? randomBytes(32) : Buffer.from(`emulator:${seed}`));
  }

  /** Returns the key and the counters, to be restored in another process. */
  snapshot(): { readonly key: string; readonly made: number; readonly drawn: number } {
    return { key: this.#key.export().toString('base64url'), made: this.#made, drawn: this.#drawn };
  }

  restore({ key, made, drawn }: ReturnType<Secrets['snapshot']>): void {
    this.#key = createSecretKey(Buffer.from(key, 'base64url'));
    this.#made = made;
    this.#drawn = drawn;
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

  /** Returns a random number from 0 up to 1. The numbers do not influence what `make` returns. */
  random(): number {
    this.#drawn += 1;
    return Buffer.from(this.sign(`drawn:${this.#drawn}`), 'base64url').readUInt32BE(0) / 2 ** 32;
  }
}
