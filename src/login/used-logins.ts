import { hash, randomInt } from 'node:crypto';
import { CLOCK_SKEW_MS } from '../clock.js';
import type { StoreAccess } from '../stores/store-access.js';
import { MARK_PREFIX, type TokenStore } from '../stores/token-store.js';

/** Maximum number of used logins in memory, of about 95 bytes each. Beyond it the oldest is dropped. */
const MAX_USED = 50_000;

/** Time limit of one operation of the token store, in milliseconds. */
const STORE_LIMIT_MS = 5_000;

/** Minimum time between two sweeps for expired logins, in milliseconds. */
const MIN_SWEEP_MS = 1_000;

/** The callback that uses a login, while it runs, and afterwards if its outcome is unclaimed or the token store failed. */
interface Claim<Outcome> {
  readonly expiresAt: number;
  readonly ended: Promise<void>;
  /** Outcome that did not reach the browser. The next callback of the login takes it. */
  unclaimed?: Outcome | undefined;
  /** True if the token store failed. It may have the mark of this callback all the same. */
  hasFailed?: boolean;
}

/** How to finish a login that is used for the first time. */
export interface LoginUse<Outcome> {
  readonly state: string;
  /** Epoch milliseconds. */
  readonly expiresAt: number;
  /** The token store of the login's grant. Where it has locks, processes share used logins through it. */
  readonly access: StoreAccess;
  /** @param leave Leaves the outcome to the next callback of the login, since the browser dropped this one. */
  readonly finish: (leave: (outcome: Outcome) => void) => Promise<Outcome>;
  /** Takes over the outcome of an earlier callback. Returns false if the browser dropped this one too. */
  readonly resume: () => boolean;
}

/**
 * Remembers used logins until they have expired by the clock of any host, so that each is used once: in this process, and
 * in all that share a token store with locks.
 */
export class UsedLogins<Outcome> {
  readonly #namespace: string;
  readonly #clock: () => number;
  /**
   * By {@link keyOf} the state, nearly in the order of expiry: the claim, or the login's expiry in epoch seconds, which takes
   * half the memory.
   */
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
   * @throws TokenStoreError if the token store fails: the login can be used again
   */
  async use({ state, expiresAt, access, finish, resume }: LoginUse<Outcome>): Promise<Outcome | undefined> {
    const key = keyOf(state);
    const former = this.#used.get(key);
    if (typeof former === 'number') return undefined;
    if (former && !former.hasFailed) {
      await former.ended;
      const outcome = former.unclaimed;
      if (outcome === undefined || !resume()) return undefined;
      former.unclaimed = undefined;
      return outcome;
    }
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const claim: Claim<Outcome> = { expiresAt, ended };
    this.#used.set(key, claim);
    this.#dropExpired();
    try {
      if (access.hasLock && !(await this.#mark(access, state, claim, former !== undefined))) return undefined;
      return await finish((outcome) => {
        claim.unclaimed = outcome;
      });
    } finally {
      if (!claim.hasFailed && claim.unclaimed === undefined) this.#used.set(key, Math.ceil(expiresAt / 1000));
      end();
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
      const expiresAt = (typeof used === 'number' ? used * 1000 : used.expiresAt) + CLOCK_SKEW_MS;
      if (expiresAt > now && this.#used.size <= MAX_USED) {
        this.#sweep ??= this.#isClosed ? undefined : this.#sweepAfter(Math.max(expiresAt - now, MIN_SWEEP_MS));
        break;
      }
      this.#used.delete(key);
      if (expiresAt > now || !this.#markedIn) continue;
      const id = this.#markId(Buffer.from(key, 'latin1').toString('base64url'));
      // A mark that cannot be deleted expires in the store.
      deletions.push(this.#markedIn.use((store) => store.delete(id), 'login', STORE_LIMIT_MS).catch(() => {}));
    }
    return deletions;
  }

  #sweepAfter(delayMs: number): NodeJS.Timeout {
    return setTimeout(() => {
      this.#sweep = undefined;
      this.#dropExpired();
    }, delayMs).unref();
  }

  /**
   * Leaves a mark in the token store. Returns false if another process has left one.
   *
   * @param isRetry True if a failed try of this process may have left the mark.
   */
  async #mark(access: StoreAccess, state: string, claim: Claim<Outcome>, isRetry: boolean): Promise<boolean> {
    const id = this.#markId(state);
    const call = <R>(task: (store: TokenStore) => Promise<R>) => access.use(task, 'login', STORE_LIMIT_MS);
    try {
      const lock = await access.acquire(id);
      try {
        const mark = await call((store) => store.get(id));
        if (mark && !(isRetry && mark.version === this.#markVersion)) return false;
        const { expiresAt } = claim;
        await call((store) => store.set(id, { version: this.#markVersion, expiresAt, sealed: 'used' }));
      } finally {
        await lock.release();
      }
    } catch (error) {
      claim.hasFailed = true;
      throw error;
    }
    this.#markedIn = access;
    return true;
  }

  #markId(state: string): string {
    return `${MARK_PREFIX}${this.#namespace}+${hash('sha256', state, 'base64url')}`;
  }
}

/**
 * Returns the 32 bytes of a state as a text of one byte each. The state itself is a slice of the callback's URL, and would
 * keep all of that in memory, with the code in it.
 */
function keyOf(state: string): string {
  return Buffer.from(state, 'base64url').toString('latin1');
}
