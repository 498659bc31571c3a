import type { Grant } from './grant.js';

/** Limits of the cache. */
export interface CacheLimits {
  /** Largest number of grants. */
  readonly max: number;
  /** How long a grant is used without reading the store, in milliseconds. */
  readonly ttlMs: number;
}

interface Entry {
  readonly grant: Grant;
  /** Epoch milliseconds. */
  readonly since: number;
}

/**
 * Caches decoded grants of this process for a short time.
 *
 * Evicts the oldest entry first. With a time to live of seconds, tracking use would cost more than it saves.
 */
export class GrantCache {
  readonly #limits: CacheLimits;
  readonly #entries = new Map<string, Entry>();

  constructor(limits: CacheLimits) {
    this.#limits = limits;
  }

  /** Returns the grant while it is within its time to live. */
  get(id: string, now: number): Grant | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const ageMs = now - entry.since;
    // A negative age means that the clock was set back.
    return ageMs >= 0 && ageMs < this.#limits.ttlMs ? entry.grant : undefined;
  }

  /** Returns the grant as it was last seen, however long ago; for when the store fails. Returns `undefined` with a time to live of 0. */
  last(id: string): Grant | undefined {
    return this.#limits.ttlMs > 0 ? this.#entries.get(id)?.grant : undefined;
  }

  set(id: string, grant: Grant, now: number): void {
    // Deleted first, so that the order of the map is the order of age.
    this.#entries.delete(id);
    this.#entries.set(id, { grant, since: now });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#limits.max && oldest !== undefined) this.#entries.delete(oldest);
  }

  delete(id: string): void {
    this.#entries.delete(id);
  }
}
