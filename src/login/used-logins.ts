import { hash, randomInt } from 'node:crypto';
import { CLOCK_SKEW_MS } from '../clock.js';
import type { StoreAccess } from '../stores/store-access.js';
import { MARK_PREFIX, type TokenStore } from '../stores/token-store.js';
import type { PendingLogin } from './pending-logins.js';

/** Maximum number of used logins in memory, of about 95 bytes each. Beyond it the oldest is dropped. */
const MAX_USED = 50_000;

/** Time limit of one operation of the token store, in milliseconds. */
const STORE_LIMIT_MS = 5_000;

/** Minimum time between two sweeps for expired logins, in milliseconds. */
const MIN_SWEEP_MS = 1_000;

/** The callback that uses a login: while it runs, and afterwards if its outcome is unclaimed or the token store failed. */
interface Claim<Outcome> {
  readonly expiresAt: number;
  /** Other callbacks of the login, while this one runs. */
  waiting: (() => void)[] | undefined;
  /** An outcome that did not reach the browser. */
  unclaimed?: Outcome | undefined;
  /** True if the token store failed. It may have the mark of this callback all the same. */
  hasFailed?: boolean;
}

/**
 * Remembers used logins until they have expired by the clock of any host, so that each is used once: in this process, and
 * in all that share a token store with locks.
 */
export class UsedLogins<Outcome> {
  readonly #namespace: string;
  readonly #clock: () => number;
  /** By the bytes of the state as Latin-1, nearly in order of expiry: a claim, later its expiry in epoch seconds, which is smaller. */
  readonly #used = new Map<string, Claim<Outcome> | number>();
  /** The version of all marks of this object. */
  readonly #markVersion = randomInt(1, 2 ** 47);
  /** The token store with the latest mark. An application has one. */
  #markedIn: StoreAccess | undefined;
  /** Set while there are used logins. */
  #sweep: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** @param options `namespace`: Passport's name for the strategy and its service, escaped, for ids of the token store. */
  constructor({ namespace, clock }: { readonly namespace: string; readonly clock: () => number }) {
    this.#namespace = namespace;
    this.#clock = clock;
  }

  /**
   * Finishes a login on its first use, and resolves to the outcome. Another use waits for the first: it takes over an
   * outcome that did not reach the browser, else it resolves to `undefined`.
   *
   * @param access The token store of the login's grant. If it has locks, processes share used logins through it.
   * @param finish Calls `leave` to leave its outcome to the next use, if the browser dropped this one.
   * @param resume Called before an outcome is taken over. Returns false if the browser dropped this use too.
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use(
    { state, expiresAt }: Pick<PendingLogin, 'state' | 'expiresAt'>,
    access: StoreAccess,
    finish: (leave: (outcome: Outcome) => void) => Promise<Outcome>,
    resume: () => boolean,
  ): Promise<Outcome | undefined> {
    // Its bytes: the state itself is a slice of the callback's URL, and would keep all of that in memory, with the code in it.
    const key = Buffer.from(state, 'base64url').toString('latin1');
    const former = this.#used.get(key);
    if (typeof former === 'number') return undefined;
    if (former && !former.hasFailed) {
      if (former.waiting) await new Promise<void>((resolve) => former.waiting?.push(resolve));
      const outcome = former.unclaimed;
      if (outcome === undefined || !resume()) return undefined;
      former.unclaimed = undefined;
      return outcome;
    }
    const waiting: (() => void)[] = [];
    const claim: Claim<Outcome> = { expiresAt, waiting };
    this.#used.set(key, claim);
    this.#dropExpired();
    let hasFailed = access.hasLock;
    try {
      const isFirst = !access.hasLock || (await this.#mark(access, state, expiresAt, former !== undefined));
      hasFailed = false;
      if (!isFirst) return undefined;
      return await finish((outcome) => {
        claim.unclaimed = outcome;
      });
    } finally {
      claim.hasFailed = hasFailed;
      claim.waiting = undefined;
      if (!hasFailed && claim.unclaimed === undefined) this.#used.set(key, Math.ceil(expiresAt / 1000));
      for (const proceed of waiting) proceed();
    }
  }

  /** Deletes the marks of expired logins. The other marks are still needed, and stay until the store drops them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#sweep);
    await Promise.all(this.#dropExpired());
  }

  /** Drops expired logins, and has one timer wait for the next to expire. Returns the deletions of their marks. */
  #dropExpired(): Promise<void>[] {
    const now = this.#clock();
    const deletions: Promise<void>[] = [];
    for (const [key, used] of this.#used) {
      const waitMs = (typeof used === 'number' ? used * 1000 : used.expiresAt) + CLOCK_SKEW_MS - now;
      if (waitMs > 0 && this.#used.size <= MAX_USED) {
        const sweep = () => {
          this.#sweep = undefined;
          this.#dropExpired();
        };
        if (!this.#isClosed) this.#sweep ??= setTimeout(sweep, Math.max(waitMs, MIN_SWEEP_MS)).unref();
        break;
      }
      this.#used.delete(key);
      if (waitMs > 0 || !this.#markedIn) continue;
      const id = this.#markId(Buffer.from(key, 'latin1').toString('base64url'));
      // A mark that cannot be deleted expires in the store.
      deletions.push(this.#markedIn.use((store) => store.delete(id), 'login', STORE_LIMIT_MS).catch(() => {}));
    }
    return deletions;
  }

  /**
   * Leaves a mark in the token store. Returns false if another process has left one.
   *
   * @param isRetry True if a failed try of this process may have left the mark.
   */
  async #mark(access: StoreAccess, state: string, expiresAt: number, isRetry: boolean): Promise<boolean> {
    const id = this.#markId(state);
    const call = <R>(task: (store: TokenStore) => Promise<R>) => access.use(task, 'login', STORE_LIMIT_MS);
    const lock = await access.acquire(id);
    try {
      const mark = await call((store) => store.get(id));
      if (mark && !(isRetry && mark.version === this.#markVersion)) return false;
      await call((store) => store.set(id, { version: this.#markVersion, expiresAt, sealed: 'used' }));
    } finally {
      await lock.release();
    }
    this.#markedIn = access;
    return true;
  }

  #markId(state: string): string {
    return `${MARK_PREFIX}${this.#namespace}+${hash('sha256', state, 'base64url')}`;
  }
}
