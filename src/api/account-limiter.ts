import { abortable, loadAhead, succeedOnce } from '../waiting.js';

type ConcurrencyLimiter = import('../limits/concurrency-limiter.js').ConcurrencyLimiter;

/** Limits on the concurrent requests of each account. */
export type AccountLimits = import('../limits/concurrency-limiter.js').AccountLimits;

/** The right of one request to run. */
export type Permit = import('../limits/concurrency-limiter.js').Permit;

/** Limits how many requests of each account run at once. Loads the code for that when there is a first limit. */
export class AccountLimiter {
  readonly limits: AccountLimits;
  /** True if any account is limited now. */
  isActive: boolean;
  readonly #load = succeedOnce(async () => {
    const { ConcurrencyLimiter } = await import('../limits/concurrency-limiter.js');
    this.#limiter = new ConcurrencyLimiter(this.limits, (isActive) => {
      this.isActive = isActive;
    });
    return this.#limiter;
  });
  #limiter: ConcurrencyLimiter | undefined;

  constructor(limits: AccountLimits) {
    this.limits = limits;
    this.isActive = limits.max !== Infinity;
    if (this.isActive) loadAhead(this.#load);
  }

  /**
   * Waits for a slot. Returns the permit for one request; `undefined` for an account without a limit.
   *
   * @param lateError Creates the error for a request that got no slot in time
   * @throws the signal's reason
   */
  async acquire(account: string, lateError: () => Error, signal: AbortSignal | undefined): Promise<Permit | undefined> {
    const limiter = await abortable(this.#load(), signal);
    return await limiter.acquire(account, lateError, signal);
  }

  /** Starts to limit an account because the service refuses its requests. @param running At most so many run now */
  begin(account: string, running: number): void {
    this.isActive = true;
    this.#load().then(
      (limiter) => limiter.begin(account, running),
      () => {
        this.isActive = false;
      },
    );
  }

  /** Gives all shares back. Never rejects. */
  async close(): Promise<void> {
    await this.#limiter?.close();
  }
}
