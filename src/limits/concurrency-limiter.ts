import { closedError } from '../errors.js';
import type { Deadlines, Expiring } from '../http/deadlines.js';
import { AccountShare } from './account-share.js';
import { SharedPermits, type SlotSharing } from './shared-permits.js';

/** Limits on the concurrent requests of each account. */
export interface AccountLimits {
  /** Slots of each account; `Infinity` for no limit until the service refuses with 429. */
  readonly max: number;
  readonly deadlines: Deadlines;
  /** How long each call waits without any slot becoming free, in milliseconds. */
  readonly patienceMs: number;
  /** Default: each process has all slots. */
  readonly sharing?: SlotSharing | undefined;
}

/** Beyond this number of accounts, refusals are forgotten earlier. */
const MAX_ACCOUNTS = 1_000;

/** How long a refusal is remembered, in milliseconds. */
const MEMORY_MS = 30_000;

/** Limits how many requests of each account run at once. Accounts do not wait for each other. */
export class ConcurrencyLimiter {
  readonly #limits: AccountLimits;
  readonly #permits: SharedPermits | undefined;
  readonly #onChange: (isActive: boolean) => void;
  readonly #accounts = new Map<string, AccountSlots>();
  #isClosed = false;

  /** @param onChange Called with whether any account is limited */
  constructor(limits: AccountLimits, onChange: (isActive: boolean) => void) {
    const { max, sharing } = limits;
    this.#limits = limits;
    if (max !== Infinity && sharing !== undefined) this.#permits = new SharedPermits(max, sharing);
    this.#onChange = onChange;
  }

  /**
   * Returns a permit for one request: at once if a slot is free, `undefined` for an account without a limit.
   *
   * @param lateError Creates the error for a call that got no slot in time
   * @throws the signal's reason if it is aborted before; ConfigurationError (`ERR_CLOSED`)
   */
  acquire(
    account: string,
    lateError: () => Error,
    signal: AbortSignal | undefined,
  ): Permit | undefined | Promise<Permit> {
    if (this.#isClosed) throw closedError();
    const isLimited = this.#limits.max !== Infinity;
    const slots = this.#accounts.get(account) ?? (isLimited ? this.#open(account) : undefined);
    return slots?.acquire(lateError, signal);
  }

  /** Starts to limit an account because the service refuses its requests. @param running At most so many run now */
  begin(account: string, running: number): void {
    if (!this.#accounts.has(account)) this.#open(account).lower(running);
  }

  /** Rejects the calls that wait, and gives all shares back. Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.allSettled([...this.#accounts.values()].map((slots) => slots.close()));
  }

  #open(account: string): AccountSlots {
    if (this.#accounts.size >= MAX_ACCOUNTS) for (const slots of this.#accounts.values()) slots.forget();
    const permits = this.#permits?.isAvailable ? this.#permits : undefined;
    const slots = new AccountSlots(account, this.#limits, permits, () => {
      this.#accounts.delete(account);
      this.#onChange(this.#limits.max !== Infinity || this.#accounts.size > 0);
    });
    this.#accounts.set(account, slots);
    this.#onChange(true);
    return slots;
  }
}

/** The right of one request to run. */
export class Permit {
  readonly #slots: AccountSlots;
  /** How often the limit had been lowered when the request began. */
  readonly #decreases: number;
  #isHeld = true;

  constructor(slots: AccountSlots) {
    this.#slots = slots;
    this.#decreases = slots.decreases;
  }

  /** Gives the slot back; only the first call counts. Bound, so that it can be passed on. */
  readonly release = (): void => {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#slots.release();
  };

  /** Records that the service accepted the request. */
  accepted(): void {
    this.#slots.raise();
  }

  /** Records that the service refused the request with 429. Counts once for all requests that were sent before. */
  refused(): void {
    if (this.#decreases === this.#slots.decreases) this.#slots.lower(this.#slots.running);
  }
}

/** A call that waits for a slot. */
interface Waiting {
  /** On the monotonic clock. */
  readonly since: number;
  proceed(): void;
  /** Rejects the call. @param reason Default: it got no slot in time */
  giveUp(reason?: unknown): void;
}

/**
 * The slots of one account. Further calls wait in order of arrival. A 429 halves the number of slots, and each success adds a
 * little (additive increase, multiplicative decrease, as in RFC 5681, 3.1).
 *
 * The token endpoint is limited by its response times instead: under load it slows down rather than refusing. The times of API
 * calls vary too much for that.
 */
class AccountSlots implements Expiring {
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  running = 0;
  /** How often the limit was lowered. */
  decreases = 0;
  readonly #share: AccountShare | undefined;
  readonly #max: number;
  readonly #limits: AccountLimits;
  readonly #onIdle: () => void;
  /** A Set keeps the order of arrival, and a call that gives up leaves it at once. */
  readonly #waiting = new Set<Waiting>();
  #limit: number;
  #refusedAt = -Infinity;
  /** When a slot became free last, on the monotonic clock. */
  #movedAt = -Infinity;

  constructor(account: string, limits: AccountLimits, permits: SharedPermits | undefined, onIdle: () => void) {
    this.#max = limits.max;
    this.#limit = limits.max;
    this.#limits = limits;
    this.#onIdle = onIdle;
    if (permits !== undefined) this.#share = new AccountShare(account, permits, limits.max, this);
  }

  /** Number of calls that run or wait. */
  get wanted(): number {
    return this.running + this.#waiting.size;
  }

  get #isRefusalRemembered(): boolean {
    return performance.now() - this.#refusedAt <= MEMORY_MS;
  }

  get #currentLimit(): number {
    return this.#limit === this.#max || this.#isRefusalRemembered ? this.#limit : this.#max;
  }

  get #hasFree(): boolean {
    const shared = this.#share === undefined ? Infinity : (this.#share.slots ?? 0);
    return this.running < Math.floor(Math.min(this.#currentLimit, shared));
  }

  acquire(lateError: () => Error, signal: AbortSignal | undefined): Permit | Promise<Permit> {
    const isFree = this.#hasFree;
    if (isFree) this.running++;
    const permit = isFree ? new Permit(this) : this.#wait(lateError, signal);
    this.#share?.use();
    return permit;
  }

  release(): void {
    this.running--;
    this.admit();
    if (this.running === 0 && !this.#isRefusalRemembered) this.forget();
  }

  raise(): void {
    this.#limit = Math.min(this.#max, this.#currentLimit + 1 / this.#currentLimit);
    this.admit();
  }

  /** @param running Requests that were running when the service refused one */
  lower(running: number): void {
    this.#limit = Math.max(1, Math.min(this.#currentLimit, running) / 2);
    this.#refusedAt = performance.now();
    this.decreases++;
  }

  /** Gives free slots to the calls that have waited longest. */
  admit(): void {
    const { deadlines, patienceMs } = this.#limits;
    for (const next of this.#waiting) {
      if (!this.#hasFree) return;
      this.running++;
      this.#movedAt = performance.now();
      if (this.#waiting.size > 1) deadlines.set(this, patienceMs);
      next.proceed();
    }
  }

  /** Rejects the calls that have waited too long. */
  expire(now: number): void {
    const { deadlines, patienceMs } = this.#limits;
    for (const waiting of this.#waiting) {
      const leftMs = Math.max(waiting.since, this.#movedAt) + patienceMs - now;
      if (leftMs > 0) {
        deadlines.set(this, leftMs);
        return;
      }
      waiting.giveUp();
    }
  }

  /** Rejects the calls that wait, and gives the share back. @throws if the store fails */
  async close(): Promise<void> {
    for (const waiting of this.#waiting) waiting.giveUp(closedError());
    await this.#share?.close();
  }

  /** Drops the account if no call of it runs or waits, and no share is held. */
  forget(): void {
    if (this.wanted === 0 && this.#share?.isIdle !== false) this.#onIdle();
  }

  #wait(lateError: () => Error, signal: AbortSignal | undefined): Promise<Permit> {
    const { deadlines, patienceMs } = this.#limits;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const leave = () => {
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) deadlines.remove(this);
        signal?.removeEventListener('abort', abort);
      };
      const abort = () => waiting.giveUp(signal?.reason);
      const waiting: Waiting = {
        since: performance.now(),
        proceed: () => {
          leave();
          resolve(new Permit(this));
        },
        giveUp: (reason = lateError()) => {
          leave();
          reject(reason);
        },
      };
      if (this.#waiting.size === 0) deadlines.set(this, patienceMs);
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', abort);
    });
  }
}
