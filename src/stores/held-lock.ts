import { number, type Optional, withDefault } from '../checks.js';
import { type Age, ageOf, type Moment, momentOf } from '../clock.js';
import type { HeldLease } from './token-store.js';

/** How long a save takes at most, with some reserve, in milliseconds. */
const SAVE_MS = 3_000;
/** How much longer than a token request a lease must be, in milliseconds: time for two saves. */
const SPARE_MS = 5_000;
/** Longest time for which a lock is held for saves that fail, in milliseconds. */
const MAX_HOLD_MS = 15_000;

/** A refresh seldom takes more than 20 seconds: one HTTP request of 10 s and a second attempt. */
export const DEFAULT_LEASE_SECONDS = 30;

/** Longest lease, in seconds. If its owner dies, the user waits that long. */
export const MAX_LEASE_SECONDS = 600;

/** Reads the option `lease` of a store: seconds. */
export const leaseSeconds: Optional<number> = withDefault(
  DEFAULT_LEASE_SECONDS,
  number(1, MAX_LEASE_SECONDS, 'seconds'),
);

/** Lengths of the leases of locks, in milliseconds. */
const lengths = new WeakMap<object, number>();

/** Records the length of a lock's lease, in milliseconds. */
export function ofLength<Lock extends object>(leaseMs: number, lock: Lock): Lock {
  lengths.set(lock, leaseMs);
  return lock;
}

/** Returns the length of the lease of a token store's lock, in milliseconds; `undefined` for any other lock. */
export function leaseMsOf(lock: object | undefined): number | undefined {
  return lock && lengths.get(lock);
}

/** Returns the shortest lease that keeps every login, in milliseconds. @param requestMs Time limit of a token request. */
export function shortestLeaseMs(requestMs: number): number {
  return requestMs + SPARE_MS;
}

/** A lock of the token store that this process has. Its age counts from when the store was asked: the lease may have begun then. */
export class HeldLock {
  /** True for a lease whose store can check whether it {@link isHeld}. */
  readonly isLease: boolean;
  readonly #lease: HeldLease | undefined;
  readonly #leaseMs: number;
  readonly #clock: () => number;
  readonly #askedAt: Moment;
  readonly #end: () => void | Promise<void>;
  readonly #holds: Promise<unknown>[] = [];
  #maxAge: Age = { ageMs: 0, wallAgeMs: 0 };
  #isReleased = false;

  /**
   * @param lease What the store reports about the lock; `undefined` if nothing, `none` if it has no locks.
   * @param clock Epoch milliseconds.
   * @param end Releases the lock; a promise resolves when it was released, or after a while.
   */
  constructor(lease: HeldLease | undefined | 'none', clock: () => number, end: () => void | Promise<void>) {
    this.#lease = lease === 'none' ? undefined : lease;
    this.isLease = this.#lease !== undefined;
    this.#leaseMs = lease === 'none' ? Number.POSITIVE_INFINITY : (lease?.leaseMs ?? DEFAULT_LEASE_SECONDS * 1000);
    this.#clock = clock;
    this.#askedAt = momentOf(clock, this.#lease?.ageMs);
    this.#end = end;
  }

  /** Limits the age up to which {@link maySend} is true, so that a request of `requestMs` and its save end before the lease. */
  limitTo(requestMs: number, limit: Age = { ageMs: Number.POSITIVE_INFINITY, wallAgeMs: 0 }): this {
    const isEnough = this.#leaseMs >= shortestLeaseMs(requestMs);
    // Under a lease that is too short, each request may outlive it: most do not.
    const ageMs = Math.min(limit.ageMs, isEnough ? this.#leaseMs - requestMs - SAVE_MS : this.#leaseMs / 2);
    const wallAgeMs = limit.wallAgeMs === Number.POSITIVE_INFINITY ? limit.wallAgeMs : ageMs;
    this.#maxAge = { ageMs, wallAgeMs };
    return this;
  }

  /** True while a refresh token may be sent under the lock. */
  get maySend(): boolean {
    if (this.#isReleased) return false;
    const { ageMs, wallAgeMs } = ageOf(this.#askedAt, this.#clock);
    return ageMs <= this.#maxAge.ageMs && wallAgeMs <= this.#maxAge.wallAgeMs;
  }

  /** Returns false if the store has lost the lock, or given it to another owner. @throws if the store fails */
  async isHeld(): Promise<boolean> {
    return (await this.#lease?.isHeld()) ?? true;
  }

  /**
   * Returns how long the lock is held for an unsaved pair, in milliseconds: its last save ends before the lease. By the monotonic
   * clock alone: a wall clock that was set forward must not give the lock to a process that knows the old pair only.
   */
  holdMs(): number {
    const leftMs = this.#leaseMs - ageOf(this.#askedAt, this.#clock).ageMs - Math.min(SAVE_MS, this.#leaseMs / 2);
    return Math.max(0, Math.min(MAX_HOLD_MS, leftMs));
  }

  /** Holds the lock until the promise has settled. {@link release} does not wait for it. */
  holdUntil(promise: Promise<unknown>): void {
    this.#holds.push(promise.catch(() => undefined));
  }

  /** Releases the lock, now or once everything that it is held for has settled. Waits for the store only if it is now. */
  async release(): Promise<void> {
    const hold = this.#holds.shift();
    if (hold) return void hold.then(() => this.release());
    this.#isReleased = true;
    await this.#end();
  }
}
