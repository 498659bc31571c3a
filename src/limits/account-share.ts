import type { SharedPermits } from './shared-permits.js';

/** The calls of an account. */
interface ShareUser {
  readonly running: number;
  /** Calls that run or wait. */
  readonly wanted: number;
  /** Called with each renewal. */
  admit(): void;
  /** Called when the store fails. */
  lower(running: number): void;
  /** Called when the share is given back. */
  forget(): void;
}

/** Time between two renewals of a share that is in use, in milliseconds. */
const RENEWAL_MS = 500;

/** The same while slots have yet to change hands. */
const UNSETTLED_RENEWAL_MS = 50;

/** Keeps this process's share of one account's slots while it is used. */
export class AccountShare {
  /** `undefined` before the store has answered. */
  slots: number | undefined;
  readonly #account: string;
  readonly #permits: SharedPermits;
  readonly #max: number;
  readonly #user: ShareUser;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> | undefined;
  /** Slots that the last renewal asked for. */
  #asked = 0;
  /** True if it was used since the last renewal. */
  #isUsed = false;
  #isClosed = false;

  /** @param max Slots while the store fails */
  constructor(account: string, permits: SharedPermits, max: number, user: ShareUser) {
    this.#account = account;
    this.#permits = permits;
    this.#max = max;
    this.#user = user;
  }

  /** True if it is neither held nor being renewed. */
  get isIdle(): boolean {
    return this.#timer === undefined && this.#renewal === undefined;
  }

  /** True if calls wait, and the last renewal got all that it asked for: there may be more. */
  get #isOutgrown(): boolean {
    const { slots = 0 } = this;
    return slots >= this.#asked && slots < this.#max && slots < this.#user.wanted;
  }

  /** Asks for a share if there is none, or it is too small. */
  use(): void {
    this.#isUsed = true;
    if (this.#renewal !== undefined || (this.slots !== undefined && !this.#isOutgrown)) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#renewal = this.#renew();
  }

  /** Gives the share back. @throws if the store fails */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#renewal;
    await this.#permits.giveBack(this.#account);
  }

  /** Renews the share, or gives it back if it is not used. Never rejects: without the store, refusals alone set the limit. */
  async #renew(): Promise<void> {
    const user = this.#user;
    const { running, wanted } = user;
    let isNeeded = wanted > 0 || this.#isUsed;
    let nextMs = RENEWAL_MS;
    try {
      if (isNeeded) {
        this.#isUsed = false;
        const held = Math.max(running, this.slots ?? 0);
        this.#asked = Math.max(wanted, 1);
        const share = await this.#permits.renew(this.#account, this.#asked, held);
        this.slots = share.slots;
        if (!share.isSettled) nextMs = UNSETTLED_RENEWAL_MS;
      } else {
        // Calls that come from now on wait for the next share.
        this.slots = undefined;
        await this.#permits.giveBack(this.#account);
      }
    } catch {
      // It continues with what it had, and learns the rest from refusals.
      if (this.slots !== undefined && this.slots < this.#max) user.lower(Math.max(this.slots, 1) * 2);
      this.slots = this.#max;
      isNeeded = wanted > 0 || this.#isUsed;
    }
    this.#renewal = undefined;
    if (!isNeeded) {
      this.slots = undefined;
      // Calls may have come since.
      if (user.wanted > 0) this.#renewal = this.#renew();
      else user.forget();
      return;
    }
    user.admit();
    if (this.#isClosed) return;
    if (this.#isOutgrown) {
      this.#renewal = this.#renew();
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#renewal = this.#renew();
    }, nextMs).unref();
  }
}
