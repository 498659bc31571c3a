import type { Grant } from './grant.js';

/** How much the cache may hold. */
export interface CacheLimits {
  /** Most grants at once. */
  readonly max: number;
  /** How long a grant is believed without a look into the store, in milliseconds. */
  readonly ttlMs: number;
}

interface Entry {
  readonly grant: Grant;
  /** Epoch milliseconds. */
  readonly since: number;
}

/**
 * Decoded grants of this process, for a short time.
 *
 * The oldest entry goes first: with a time to live of seconds, keeping track of use would cost more than it gives.
 */
export class GrantCache {
  readonly #limits: CacheLimits;
  readonly #entries = new Map<string, Entry>();

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The grant, if it was seen lately enough to be believed. */
  get(id: string, now: number): Grant | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const age = now - entry.since;
    return age >= 0 && age < this.#limits.ttlMs ? entry.grant : undefined;
  }

  /** The grant as it was last seen, however long ago: for when the store cannot be asked. None where nothing is to be believed at all. */
  last(id: string): Grant | undefined {
    return this.#limits.ttlMs > 0 ? this.#entries.get(id)?.grant : undefined;
  }

  set(id: string, grant: Grant, now: number): void {
    // Deleted first, so that the order of the map is the order of age.
    this.#entries.delete(id);
    this.#entries.set(id, { grant, since: now });
    if (this.#entries.size > this.#limits.max) this.#dropOldest();
  }

  delete(id: string): void {
    this.#entries.delete(id);
  }

  #dropOldest(): void {
    for (const id of this.#entries.keys()) {
      this.#entries.delete(id);
      return;
    }
  }
}
