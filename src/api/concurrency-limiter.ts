import type { Deadlines } from '../http/deadlines.js';
import { AccountShare, type PermitSharing } from './account-share.js';
import { AdaptiveLimit } from './adaptive-limit.js';
import { Slots } from './slots.js';

/** Options of {@link ConcurrencyLimiter}. */
export interface ConcurrencyLimiterOptions {
  /** Maximum of requests at once for each account; a positive integer. Default: no limit, until the service refuses with 429. */
  readonly max?: number | undefined;
  readonly deadlines: Deadlines;
  /** How long each call waits without any slot becoming free, in milliseconds. */
  readonly patienceMs: number;
  /** Default: each process has all slots. */
  readonly sharing?: PermitSharing | undefined;
}

/** Refusals are forgotten earlier beyond this number of accounts. */
const MAX_ACCOUNTS = 1_000;

/**
 * Limits how many requests of each account run at once; the others wait in the order of their arrival. Accounts do not wait for
 * each other.
 */
export class ConcurrencyLimiter {
  /** `Infinity` for no limit. */
  readonly max: number;
  readonly #options: ConcurrencyLimiterOptions;
  readonly #queues = new Map<string, AccountQueue>();

  constructor(options: ConcurrencyLimiterOptions) {
    this.max = options.max ?? Infinity;
    this.#options = options;
  }

  /** True if any account is limited now. */
  get isActive(): boolean {
    return this.max !== Infinity || this.#queues.size > 0;
  }

  /**
   * Returns a permit for one request: at once if a slot is free, `undefined` for an account without a limit.
   *
   * @throws the signal's reason if that is aborted before; NoSlot if no slot becomes free for too long
   */
  acquire(account: string, signal: AbortSignal | undefined): Permit | undefined | Promise<Permit> {
    const queue = this.#queues.get(account) ?? (this.max === Infinity ? undefined : this.#open(account));
    return queue?.acquire(signal);
  }

  /** Starts to limit an account because the service refuses its requests. @param running At most so many run now */
  begin(account: string, running: number): void {
    if (!this.#queues.has(account)) this.#open(account).limit.refused(running);
  }

  /** Gives all shares back. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.share?.close()));
  }

  #open(account: string): AccountQueue {
    if (this.#queues.size >= MAX_ACCOUNTS) for (const queue of this.#queues.values()) queue.forget();
    const queue = new AccountQueue(account, this.max, this.#options, () => this.#queues.delete(account));
    this.#queues.set(account, queue);
    return queue;
  }
}

/** The right of one request to run. */
export class Permit {
  readonly #queue: AccountQueue;
  /** How often the limit had been lowered when the request began. */
  readonly #decreases: number;
  #isHeld = true;

  constructor(queue: AccountQueue) {
    this.#queue = queue;
    this.#decreases = queue.limit.decreases;
  }

  /** Gives the slot back; only the first call counts. Bound, so that it can be passed on. */
  readonly release = (): void => {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#queue.release();
  };

  /** Records that the service has accepted the request. */
  accepted(): void {
    this.#queue.limit.accepted();
    this.#queue.slots.admit();
  }

  /** Records that the service has refused the request with 429. Counts once for all that were sent before it did. */
  refused(): void {
    const { limit, slots } = this.#queue;
    if (this.#decreases === limit.decreases) limit.refused(slots.running);
  }
}

/** The requests of one account. */
class AccountQueue {
  readonly limit: AdaptiveLimit;
  readonly slots: Slots;
  readonly share: AccountShare | undefined;
  readonly #isLimited: boolean;
  readonly #onIdle: () => void;

  constructor(account: string, max: number, options: ConcurrencyLimiterOptions, onIdle: () => void) {
    const { deadlines, patienceMs, sharing } = options;
    this.limit = new AdaptiveLimit(max);
    this.slots = new Slots(() => this.#count, deadlines, patienceMs);
    this.#isLimited = max !== Infinity;
    this.#onIdle = onIdle;
    if (!this.#isLimited || !sharing?.isAvailable) return;
    this.share = new AccountShare({
      account,
      sharing,
      max,
      demand: () => this.slots,
      onRenewed: () => this.slots.admit(),
      // It continues with what it had, and learns the rest from refusals.
      onFailed: (slots) => this.limit.refused(Math.max(slots, 1) * 2),
      onIdle: () => this.forget(),
    });
  }

  acquire(signal: AbortSignal | undefined): Permit | Promise<Permit> {
    this.share?.use();
    const wait = this.slots.take(signal);
    return wait === undefined ? new Permit(this) : wait.then(() => new Permit(this));
  }

  release(): void {
    this.slots.release();
    if (this.slots.running === 0 && (!this.#isLimited || !this.limit.isRemembered)) this.forget();
  }

  /** Drops the account if nothing of it runs, waits or is held, nor is anything remembered that limits it. */
  forget(): void {
    const isQuiet = this.#isLimited || !this.limit.isRemembered;
    if (isQuiet && this.slots.wanted === 0 && this.share?.isIdle !== false) this.#onIdle();
  }

  get #count(): number {
    return Math.floor(this.share === undefined ? this.limit.value : Math.min(this.limit.value, this.share.slots ?? 0));
  }
}
