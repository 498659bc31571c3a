import type { Deadlines, Expiring } from '../http/deadlines.js';

/** Thrown to the calls that wait if no place of their account becomes free for too long. */
export class NoPlace extends Error {}

/** What this process may use of an account's places. */
export interface Share {
  /** Requests that this process may run at once. */
  readonly places: number;
  /** False if this process or others have yet to give back what is not theirs any more. */
  readonly isSettled: boolean;
}

/** Shares the places of accounts out over processes. */
export interface PlaceSharing {
  /** Returns true if there is a store to share over. */
  readonly isAvailable: boolean;
  /**
   * Renews the share of this process, or takes one.
   *
   * @param wanted Requests that run or wait
   * @param running Requests that run, or may begin before the answer: their places cannot be given back yet
   * @throws if the store fails
   */
  renew(account: string, wanted: number, running: number): Promise<Share>;
  /** Gives the share of this process back. @throws if the store fails */
  giveBack(account: string): Promise<void>;
}

/** Options of {@link ConcurrencyLimiter}. */
export interface ConcurrencyLimiterOptions {
  /** Maximum of requests at once for each account; a positive integer. Default: no limit, until the service refuses with 429. */
  readonly max?: number | undefined;
  readonly deadlines: Deadlines;
  /** How long each call waits without any place becoming free, in milliseconds. */
  readonly patienceMs: number;
  readonly sharing?: PlaceSharing | undefined;
}

/** Time between two renewals of a share that is in use, in milliseconds. */
const RENEWAL_MS = 500;

/** The same while places have yet to change hands. */
const UNSETTLED_RENEWAL_MS = 50;

/** How long a refusal of the service is remembered, in milliseconds. */
const MEMORY_MS = 30_000;

/** Refusals are forgotten earlier beyond this number of accounts. */
const MAX_ACCOUNTS = 1_000;

/**
 * Limits how many requests of each account run at once; the others wait in the order of their arrival. Accounts do not
 * wait for each other.
 *
 * A refusal with 429 halves what this process runs at once for the account, and each success adds a little again (additive
 * increase, multiplicative decrease, as in RFC 5681, 3.1). With a {@link PlaceSharing}, processes share the places out.
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
   * Takes a place: at once if there is one, otherwise as soon as one becomes free. Returns `undefined` for an account
   * without a limit.
   *
   * @throws the signal's reason if that is aborted before; NoPlace if no place becomes free while it waits for too long
   */
  acquire(account: string, signal: AbortSignal | undefined): Place | undefined | Promise<Place> {
    const queue = this.#queues.get(account) ?? (this.max === Infinity ? undefined : this.#open(account));
    return queue?.acquire(signal);
  }

  /** Begins to limit an account that had no limit, because the service refuses its requests. @param running That run now, at the most */
  begin(account: string, running: number): void {
    if (!this.#queues.has(account)) this.#open(account).refuse(running);
  }

  /** Gives all shares back. Never rejects. */
  async close(): Promise<void> {
    await Promise.allSettled([...this.#queues.values()].map((queue) => queue.close()));
  }

  #open(account: string): AccountQueue {
    if (this.#queues.size >= MAX_ACCOUNTS) for (const queue of this.#queues.values()) queue.forget();
    const queue = new AccountQueue(account, this.max, this.#options, () => this.#queues.delete(account));
    this.#queues.set(account, queue);
    return queue;
  }
}

/** A place among the requests of an account. */
export class Place {
  readonly #queue: AccountQueue;
  /** How often the limit had been lowered when it was taken. */
  readonly #decreases: number;
  #isHeld = true;

  constructor(queue: AccountQueue, decreases: number) {
    this.#queue = queue;
    this.#decreases = decreases;
  }

  /** Gives the place back; only the first call counts. Bound, so that it can be handed on. */
  readonly release = (): void => {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.#queue.release();
  };

  /** Records that the service has taken the request. */
  accepted(): void {
    this.#queue.accept();
  }

  /** Records that the service has refused the request with 429. Counts once for all that were sent before it did. */
  refused(): void {
    if (this.#decreases === this.#queue.decreases) this.#queue.refuse(this.#queue.running);
  }
}

/** A call that waits for a place. */
interface Waiting {
  /** On the monotonic clock. */
  readonly since: number;
  proceed(error?: NoPlace): void;
}

/** The requests of one account: how many may run and do, and which wait. */
class AccountQueue implements Expiring {
  running = 0;
  decreases = 0;
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  readonly #account: string;
  readonly #max: number;
  readonly #options: ConcurrencyLimiterOptions;
  readonly #onIdle: () => void;
  /** A Set keeps the order of arrival, and one that gives up leaves it at once. */
  readonly #waiting = new Set<Waiting>();
  /** When a place became free last, on the monotonic clock. */
  #movedAt = -Infinity;
  /** What the service takes at once, as far as its refusals have told. */
  #limit: number;
  #refusedAt = -Infinity;
  /** What this process may use; `undefined` before the store has told. */
  #share: number | undefined;
  /** Set while a share is renewed, or will be. */
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> | undefined;
  /** True if it was used since the last renewal. */
  #isUsed = false;
  #isClosed = false;

  constructor(account: string, max: number, options: ConcurrencyLimiterOptions, onIdle: () => void) {
    this.#account = account;
    this.#max = max;
    this.#limit = max;
    this.#options = options;
    this.#onIdle = onIdle;
    if (max === Infinity || !options.sharing?.isAvailable) this.#share = max;
  }

  /** Returns a place, at once if one is free. */
  acquire(signal: AbortSignal | undefined): Place | Promise<Place> {
    this.#isUsed = true;
    if (this.#limit < this.#max && performance.now() - this.#refusedAt > MEMORY_MS) this.#limit = this.#max;
    if (this.#share === undefined) this.#renewal ??= this.#renew();
    if (this.running >= this.#capacity) return this.#wait(signal);
    this.running++;
    return new Place(this, this.decreases);
  }

  /** Hands a place to the calls that wait longest. */
  release(): void {
    this.running--;
    this.#admit();
    if (this.running > 0 || this.#timer !== undefined || this.#renewal !== undefined) return;
    if (this.#limit === this.#max || this.#max === Infinity) this.forget();
  }

  accept(): void {
    if (this.#limit === this.#max) return;
    this.#limit = Math.min(this.#max, this.#limit + 1 / this.#limit);
    this.#admit();
  }

  refuse(running: number): void {
    this.decreases++;
    this.#refusedAt = performance.now();
    this.#limit = Math.max(1, Math.min(this.#limit, running) / 2);
  }

  /** Drops the account if nothing of it runs, waits or is held. */
  forget(): void {
    const isQuiet = this.#max !== Infinity || performance.now() - this.#refusedAt > MEMORY_MS;
    if (
      isQuiet &&
      this.running === 0 &&
      this.#waiting.size === 0 &&
      this.#timer === undefined &&
      this.#renewal === undefined
    )
      this.#onIdle();
  }

  /** Gives its share back. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#renewal;
    if (this.#options.sharing?.isAvailable) await this.#options.sharing.giveBack(this.#account);
  }

  /** Ends the calls that have waited for too long. Those that came later have their own time. */
  expire(now: number): void {
    const { deadlines, patienceMs } = this.#options;
    for (const waiting of this.#waiting) {
      const leftMs = Math.max(waiting.since, this.#movedAt) + patienceMs - now;
      if (leftMs > 0) {
        deadlines.add(this, leftMs);
        return;
      }
      waiting.proceed(new NoPlace());
    }
  }

  get #capacity(): number {
    return Math.floor(Math.min(this.#limit, this.#share ?? 0));
  }

  #wait(signal: AbortSignal | undefined): Promise<Place> {
    const { deadlines, patienceMs } = this.#options;
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) deadlines.remove(this);
        signal?.removeEventListener('abort', giveUp);
      };
      const waiting: Waiting = {
        since: performance.now(),
        proceed: (error) => {
          leave();
          if (error === undefined) resolve(new Place(this, this.decreases));
          else reject(error);
        },
      };
      const giveUp = () => {
        leave();
        reject(signal?.reason);
      };
      if (signal?.aborted) return giveUp();
      if (this.#waiting.size === 0) deadlines.add(this, patienceMs);
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', giveUp);
    });
  }

  #admit(): void {
    for (const next of this.#waiting) {
      if (this.running >= this.#capacity) return;
      this.running++;
      this.#movedAt = performance.now();
      if (this.#waiting.size > 1) this.#options.deadlines.extend(this, this.#options.patienceMs);
      next.proceed();
    }
  }

  /** Renews the share, or gives it back if nobody uses it. Never rejects: without the store, refusals alone set the limit. */
  async #renew(): Promise<void> {
    const { sharing } = this.#options;
    const wanted = this.running + this.#waiting.size;
    let nextMs = RENEWAL_MS;
    try {
      if (wanted === 0 && !this.#isUsed) {
        // Calls that come from now on wait for the next share.
        this.#share = undefined;
        await sharing?.giveBack(this.#account);
        nextMs = Infinity;
      } else {
        this.#isUsed = false;
        const mayRun = Math.max(this.running, this.#share ?? 0);
        const share = await sharing?.renew(this.#account, Math.max(wanted, 1), mayRun);
        this.#share = share?.places ?? this.#max;
        if (share?.isSettled === false) nextMs = UNSETTLED_RENEWAL_MS;
      }
    } catch {
      // It goes on from what it has had, and learns the rest from refusals.
      if (this.#share !== undefined && this.#share < this.#max) this.refuse(Math.max(this.#share, 1) * 2);
      this.#share = this.#max;
      if (wanted === 0 && !this.#isUsed) nextMs = Infinity;
    }
    this.#renewal = undefined;
    if (nextMs === Infinity) {
      this.#share = undefined;
      // Calls may have come meanwhile.
      if (this.running + this.#waiting.size > 0) this.#renewal = this.#renew();
      else this.forget();
      return;
    }
    this.#admit();
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#renewal = this.#renew();
    }, nextMs).unref();
  }
}
