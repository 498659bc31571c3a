import { createHash, randomInt } from 'node:crypto';
import { StoreAccess } from '../grants/store-access.js';
import type { TokenStore } from '../stores/token-store.js';

/** Maximum number of used logins that are remembered at once; beyond it the oldest is forgotten. About 300 bytes each. */
const MAX_USED = 50_000;

/** How long the token store may take for one operation, in milliseconds. */
const STORE_LIMIT_MS = 5_000;

/** How long a mark outlives its login: clocks of several hosts differ a little. */
const CLOCK_SKEW_MS = 60_000;

/** What used logins are remembered with. */
export interface UsedLoginsOptions {
  /** Passport's name for the strategy and its service, escaped: stands in the ids of the token store. */
  readonly namespace: string;
  /** With `lock`, it tells the other processes of a used login. */
  readonly tokenStore: TokenStore | undefined;
  /** Epoch milliseconds. */
  readonly clock: () => number;
}

/** A callback that uses a login up. */
export class RunningCallback<T> {
  /** Epoch milliseconds at which its login expires. */
  readonly expiresAt: number;
  #hasEnded = false;
  #abandoned: T | undefined;
  #waiting: (() => void)[] = [];

  constructor(expiresAt: number) {
    this.expiresAt = expiresAt;
  }

  /** Ends the callback. @param abandoned Its outcome, if its browser has gone away: the browser's next request takes it. */
  end(abandoned: T | undefined): void {
    this.#hasEnded = true;
    this.#abandoned = abandoned;
    for (const resolve of this.#waiting) resolve();
    this.#waiting = [];
  }

  /** Waits for the end. Resolves to the outcome if the browser has gone away, once; else to `undefined`. */
  async takeOver(): Promise<T | undefined> {
    if (!this.#hasEnded) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const outcome = this.#abandoned;
    this.#abandoned = undefined;
    return outcome;
  }
}

/**
 * Remembers used logins until they would have expired, so that each is used once: in this process, and in the token
 * store where that has locks.
 */
export class UsedLogins<T> {
  readonly #options: UsedLoginsOptions;
  readonly #store: StoreAccess | undefined;
  /** By state, in the order of use: nearly that of expiry. */
  readonly #used = new Map<string, RunningCallback<T>>();

  constructor(options: UsedLoginsOptions) {
    this.#options = options;
    this.#store = options.tokenStore?.lock && new StoreAccess(options.tokenStore, () => {}, options.clock);
  }

  /**
   * Uses a login up.
   *
   * @returns the callback that has used it: to be ended if it is the first one, else to be taken over
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use(
    state: string,
    expiresAt: number,
  ): Promise<{ readonly isFirst: boolean; readonly callback: RunningCallback<T> }> {
    const now = this.#options.clock();
    for (const [used, { expiresAt }] of this.#used) {
      if (expiresAt > now && this.#used.size < MAX_USED) break;
      this.#used.delete(used);
    }
    const before = this.#used.get(state);
    if (before) return { isFirst: false, callback: before };
    const callback = new RunningCallback<T>(expiresAt);
    this.#used.set(state, callback);
    let isFirst = true;
    try {
      if (this.#store) isFirst = await this.#mark(this.#store, state, expiresAt);
    } catch (error) {
      this.#used.delete(state);
      callback.end(undefined);
      throw error;
    }
    if (!isFirst) callback.end(undefined);
    return { isFirst, callback };
  }

  /** Leaves a mark in the token store. Returns false if another process has left one before. */
  async #mark(access: StoreAccess, state: string, expiresAt: number): Promise<boolean> {
    const id = `login:${this.#options.namespace}+${createHash('sha256').update(state).digest('base64url')}`;
    const call = <R>(task: (store: TokenStore) => Promise<R>) => access.use(task, 'login', STORE_LIMIT_MS);
    const work = async () => {
      if (await call((store) => store.get(id))) return false;
      await call((store) => store.set(id, { version: randomInt(1, 2 ** 47), expiresAt, sealed: 'used' }));
      return true;
    };
    const isFirst = await access.locked(id, work);
    if (isFirst) {
      const keptMs = expiresAt - this.#options.clock() + CLOCK_SKEW_MS;
      setTimeout(() => call((store) => store.delete(id)).catch(() => {}), keptMs).unref();
    }
    return isFirst;
  }
}
