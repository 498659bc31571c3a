/** Deterministic pseudo-random numbers (sfc32): the same seed and label give the same sequence on every machine. */
export class Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: number, label = '') {
    let hash = 2166136261 ^ seed;
    for (let index = 0; index < label.length; index += 1) hash = Math.imul(hash ^ label.charCodeAt(index), 16777619);
    this.#a = seed | 0;
    this.#b = hash | 0;
    this.#c = (seed / 2 ** 32) | 0;
    for (let round = 0; round < 12; round += 1) this.bits();
  }

  /** Returns 32 random bits, unsigned. */
  bits(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Returns a number from 0 up to 1. */
  next(): number {
    return this.bits() / 2 ** 32;
  }

  /** Returns a number from `low` up to `high`. */
  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** Returns a whole number from 0 up to `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** Returns true with the given probability. */
  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** Returns one of the entries. */
  pick<T>(entries: readonly T[]): T {
    const entry = entries[this.below(entries.length)];
    if (entry === undefined) throw new Error('pick() needs at least one entry');
    return entry;
  }

  /** Returns random bytes. */
  bytes(count: number): Buffer {
    const bytes = Buffer.allocUnsafe(count);
    for (let index = 0; index < count; index += 1) bytes[index] = this.bits() & 255;
    return bytes;
  }
}
