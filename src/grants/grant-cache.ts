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

  get(id: string, now: number): Grant | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const age = now - entry.since;
    if (age >= 0 && age < this.#limits.ttlMs) return entry.grant;
    this.#entries.delete(id);
    return undefined;
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
