import { createHash, randomInt } from 'node:crypto';
import { StoreAccess } from '../grants/store-access.js';
import type { TokenStore } from '../stores/token-store.js';

/** Most used logins that are remembered at once; beyond it the oldest is forgotten. About 300 bytes each. */
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

/** A callback that is being handled. */
export interface RunningCallback<T> {
  /** Resolves when it has ended: to its outcome if its browser has gone away meanwhile, else to `undefined`. */
  readonly abandoned: Promise<T | undefined>;
  /** Ends it. @param outcome Given if its browser has gone away: the browser's next request takes it. */
  end(outcome: T | undefined): void;
}

interface Entry<T> {
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  readonly callback: RunningCallback<T>;
  isTaken: boolean;
}

/**
 * Remembers used logins until they would have expired, so that each is used once: in this process, and in the token
 * store where that has locks.
 */
export class UsedLogins<T> {
  readonly #options: UsedLoginsOptions;
  readonly #store: StoreAccess | undefined;
  /** By state, in the order of use: nearly that of expiry. */
  readonly #used = new Map<string, Entry<T>>();

  constructor(options: UsedLoginsOptions) {
    this.#options = options;
    this.#store = options.tokenStore?.lock && new StoreAccess(options.tokenStore, () => {}, options.clock);
  }

  /**
   * Uses a login up.
   *
   * @returns the callback to end, or `undefined` if the login was used before
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use(state: string, expiresAt: number): Promise<RunningCallback<T> | undefined> {
    const now = this.#options.clock();
    for (const [used, entry] of this.#used) {
      if (entry.expiresAt > now && this.#used.size < MAX_USED) break;
      this.#used.delete(used);
    }
    if (this.#used.has(state)) return undefined;
    const callback = runningCallback<T>();
    this.#used.set(state, { expiresAt, callback, isTaken: false });
    try {
      if (await this.#mark(state, expiresAt)) return callback;
    } catch (error) {
      this.#used.delete(state);
      callback.end(undefined);
      throw error;
    }
    callback.end(undefined);
    return undefined;
  }

  /** Resolves to the outcome of a used login whose browser has gone away before its end, once; else to `undefined`. */
  async takeOver(state: string): Promise<T | undefined> {
    const entry = this.#used.get(state);
    const outcome = await entry?.callback.abandoned;
    if (!entry || entry.isTaken || outcome === undefined) return undefined;
    entry.isTaken = true;
    return outcome;
  }

  /** Leaves a mark in the token store. Returns false if another process has left one before. */
  async #mark(state: string, expiresAt: number): Promise<boolean> {
    const access = this.#store;
    if (!access) return true;
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

function runningCallback<T>(): RunningCallback<T> {
  let end: (outcome: T | undefined) => void = () => {};
  const abandoned = new Promise<T | undefined>((resolve) => {
    end = resolve;
  });
  return { abandoned, end };
}
