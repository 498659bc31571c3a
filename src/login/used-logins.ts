import { hash, randomInt } from 'node:crypto';
import { CLOCK_SKEW_MS } from '../clock.js';
import type { StoreAccess } from '../stores/store-access.js';
import { MARK_PREFIX, type TokenStore } from '../stores/token-store.js';

/** Maximum number of used logins that are remembered at once; beyond it the oldest is forgotten. About 95 bytes each. */
const MAX_USED = 50_000;

/** How long the token store may take for one operation, in milliseconds. */
const STORE_LIMIT_MS = 5_000;

/** Ended callbacks whose logins expire within this time of each other are remembered as one, in milliseconds. */
const SHARED_END_MS = 10_000;

/** Shortest time between two looks for expired logins, in milliseconds. */
const MIN_WAIT_MS = 1_000;

/** A callback that uses a login up. */
export class CallbackClaim<T> {
  readonly expiresAt: number;
  /** The token store that has the mark of the login, if this callback has left one. */
  markedIn: StoreAccess | undefined;
  /** True if the token store has failed: it may have a mark of this callback all the same. */
  hasFailed = false;
  #hasEnded = false;
  #abandoned: T | undefined;
  #waiting: (() => void)[] | undefined;

  constructor(expiresAt: number) {
    this.expiresAt = expiresAt;
  }

  /** Lets the requests that wait go on. @param abandoned The outcome, for one of them, if the browser has gone away. */
  end(abandoned: T | undefined): void {
    this.#hasEnded = true;
    this.#abandoned = abandoned;
    for (const resolve of this.#waiting ?? []) resolve();
    this.#waiting = undefined;
  }

  /**
   * Waits for the end. Resolves to the outcome if the browser has gone away, once; else to `undefined`.
   *
   * @param isWaiting Returns false if the request that takes over has gone too: the outcome is left to the next one.
   */
  async takeOver(isWaiting: () => boolean): Promise<T | undefined> {
    if (!this.#hasEnded) {
      await new Promise<void>((resolve) => {
        this.#waiting ??= [];
        this.#waiting.push(resolve);
      });
    }
    if (!isWaiting()) return undefined;
    const outcome = this.#abandoned;
    this.#abandoned = undefined;
    return outcome;
  }
}

/**
 * Remembers used logins until they have expired by the clock of any host, so that each is used once: in this process, and in the token
 * store where that has locks.
 */
export class UsedLogins<T> {
  readonly #namespace: string;
  readonly #clock: () => number;
  /** By {@link keyOf} the state, in the order of use: nearly that of expiry. */
  readonly #used = new Map<string, CallbackClaim<T>>();
  /** Stands for the callbacks that ended last. */
  #lastEnd: CallbackClaim<T> | undefined;
  /** The version of all marks of this object. */
  readonly #markVersion = randomInt(1, 2 ** 47);
  /** Runs while there are used logins: forgets the expired ones. */
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param options `namespace`: Passport's name for the strategy and its service, escaped, for ids of the token store. */
  constructor({ namespace, clock }: { readonly namespace: string; readonly clock: () => number }) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  /**
   * Uses a login up.
   *
   * @param access The token store of the login's grant. If it has locks, other processes learn of a used login through it.
   * @returns the callback that has used it: if it is the first one, it must be ended by {@link end}, else it can be taken over
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use(
    state: string,
    expiresAt: number,
    access: StoreAccess,
  ): Promise<{ readonly isFirst: boolean; readonly callback: CallbackClaim<T> }> {
    this.#forgetExpired();
    const key = keyOf(state);
    const before = this.#used.get(key);
    if (before && !before.hasFailed) return { isFirst: false, callback: before };
    const callback = new CallbackClaim<T>(expiresAt);
    this.#used.set(key, callback);
    this.#schedule();
    let isFirst = true;
    try {
      if (access.hasLock) isFirst = await this.#mark(access, state, callback, before ? this.#markVersion : undefined);
    } catch (error) {
      callback.hasFailed = true;
      callback.end(undefined);
      throw error;
    }
    if (!isFirst) this.end(state, callback, undefined);
    return { isFirst, callback };
  }

  /** Ends the callback of a login. @param abandoned Its outcome, if its browser has gone away: the browser's next request takes it. */
  end(state: string, callback: CallbackClaim<T>, abandoned: T | undefined): void {
    callback.end(abandoned);
    const key = keyOf(state);
    if (abandoned === undefined && this.#used.has(key)) this.#used.set(key, this.#endedLike(callback));
  }

  /** Returns an ended callback that expires no sooner. A separate object would be most of the memory of a used login. */
  #endedLike({ expiresAt, markedIn }: CallbackClaim<T>): CallbackClaim<T> {
    const last = this.#lastEnd;
    const laterMs = last && last.markedIn === markedIn ? last.expiresAt - expiresAt : -1;
    if (last && laterMs >= 0 && laterMs <= SHARED_END_MS) return last;
    const ended = new CallbackClaim<T>(expiresAt + SHARED_END_MS);
    ended.markedIn = markedIn;
    ended.end(undefined);
    this.#lastEnd = ended;
    return ended;
  }

  /** Deletes the marks of expired logins. Those of other logins stay until the store drops them: they are still needed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await Promise.all(this.#forgetExpired());
  }

  #forgetExpired(): Promise<void>[] {
    const now = this.#clock();
    const deletions: Promise<void>[] = [];
    for (const [key, { expiresAt, markedIn }] of this.#used) {
      const hasExpired = expiresAt + CLOCK_SKEW_MS <= now;
      if (!hasExpired && this.#used.size < MAX_USED) break;
      this.#used.delete(key);
      if (!hasExpired || !markedIn) continue;
      const id = this.#markId(stateOf(key));
      // A mark that stays ends with its time to live.
      deletions.push(markedIn.use((store) => store.delete(id), 'login', STORE_LIMIT_MS).catch(() => {}));
    }
    return deletions;
  }

  /** One timer for all: it waits for the oldest used login. */
  #schedule(): void {
    const [oldest] = this.#used.values();
    if (!oldest || this.#timer || this.#isClosed) return;
    const waitMs = Math.max(oldest.expiresAt + CLOCK_SKEW_MS - this.#clock(), MIN_WAIT_MS);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#forgetExpired();
      this.#schedule();
    }, waitMs).unref();
  }

  /**
   * Leaves a mark in the token store. Returns false if it has one that another process has left.
   *
   * @param ownVersion The version of a mark that an earlier try of this process may have left.
   */
  async #mark(
    access: StoreAccess,
    state: string,
    callback: CallbackClaim<T>,
    ownVersion: number | undefined,
  ): Promise<boolean> {
    const { expiresAt } = callback;
    const id = this.#markId(state);
    const call = <R>(task: (store: TokenStore) => Promise<R>) => access.use(task, 'login', STORE_LIMIT_MS);
    const lock = await access.acquire(id);
    try {
      const mark = await call((store) => store.get(id));
      if (mark && mark.version !== ownVersion) return false;
      await call((store) => store.set(id, { version: this.#markVersion, expiresAt, sealed: 'used' }));
    } finally {
      await lock.release();
    }
    callback.markedIn = access;
    return true;
  }

  #markId(state: string): string {
    return `${MARK_PREFIX}${this.#namespace}+${hash('sha256', state, 'base64url')}`;
  }
}

/**
 * Returns the 32 bytes of a state as a text of one byte for each: less than the state itself, which is a slice of the callback's URL
 * and would keep that in memory as a whole, with the code in it.
 */
function keyOf(state: string): string {
  return Buffer.from(state, 'base64url').toString('latin1');
}

function stateOf(key: string): string {
  return Buffer.from(key, 'latin1').toString('base64url');
}
