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

  /** @param limits `undefined` or a time to live of 0 turns the cache off. */
  constructor(limits: CacheLimits | undefined) {
    this.#limits = limits ?? { max: 0, ttlMs: 0 };
  }

  /** Returns the grant while it is within its time to live. */
  get(id: string, now: number): Grant | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined) return undefined;
    const ageMs = now - entry.since;
    // A negative age means that the clock was set back.
    return ageMs >= 0 && ageMs < this.#limits.ttlMs ? entry.grant : undefined;
  }

  /** Returns the grant as it was last seen, however long ago; for when the store fails. */
  last(id: string): Grant | undefined {
    return this.#entries.get(id)?.grant;
  }

  /** Caches what was seen: a grant, or that there is none. @param seenAt Epoch milliseconds at which the store was asked. */
  set(id: string, grant: Grant | undefined, seenAt: number): void {
    // Deleted first, so that the order of the map is the order of age.
    this.#entries.delete(id);
    if (grant === undefined || this.#limits.ttlMs === 0) return;
    this.#entries.set(id, { grant, since: seenAt });
    if (this.#entries.size <= this.#limits.max) return;
    const [oldest = id] = this.#entries.keys();
    this.#entries.delete(oldest);
  }
}
