/** The slots of an account that this process may use. */
export interface Share {
  readonly slots: number;
  /** False while this process or others still hold slots that are due to others. */
  readonly isSettled: boolean;
}

/** Shares the slots of accounts between processes. */
export interface PermitSharing {
  /** True if there is a store to share over. */
  readonly isAvailable: boolean;
  /**
   * Renews the share of this process, or takes one.
   *
   * @param wanted Calls that run or wait
   * @param running Calls that run, or may begin before the answer: their slots cannot be given back yet
   * @throws if the store fails
   */
  renew(account: string, wanted: number, running: number): Promise<Share>;
  /** Gives the share of this process back. @throws if the store fails */
  giveBack(account: string): Promise<void>;
}

/** Options of an {@link AccountShare}. */
interface AccountShareOptions {
  readonly account: string;
  readonly sharing: PermitSharing;
  /** Used while the store fails. */
  readonly max: number;
  /** Returns the calls that run, and those that run or wait. */
  readonly demand: () => { readonly running: number; readonly wanted: number };
  readonly onRenewed: () => void;
  /** Called when the store fails, with the slots of the last share. */
  readonly onFailed: (slots: number) => void;
  readonly onIdle: () => void;
}

/** Time between two renewals of a share that is in use, in milliseconds. */
const RENEWAL_MS = 500;

/** The same while slots have yet to change hands. */
const UNSETTLED_RENEWAL_MS = 50;

/** Keeps this process's share of one account's slots while it is used. */
export class AccountShare {
  /** `undefined` before the store has answered. */
  slots: number | undefined;
  readonly #options: AccountShareOptions;
  #timer: NodeJS.Timeout | undefined;
  #renewal: Promise<void> | undefined;
  /** True if it was used since the last renewal. */
  #isUsed = false;
  #isClosed = false;

  constructor(options: AccountShareOptions) {
    this.#options = options;
  }

  /** True if it is neither held nor being renewed. */
  get isIdle(): boolean {
    return this.#timer === undefined && this.#renewal === undefined;
  }

  /** Asks for a share if there is none. */
  use(): void {
    this.#isUsed = true;
    if (this.slots === undefined) this.#renewal ??= this.#renew();
  }

  /** Gives it back. @throws if the store fails */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#renewal;
    await this.#options.sharing.giveBack(this.#options.account);
  }

  /** Renews the share, or gives it back if it is not used. Never rejects: without the store, refusals alone set the limit. */
  async #renew(): Promise<void> {
    const { account, sharing, max, demand, onRenewed, onFailed, onIdle } = this.#options;
    const { running, wanted } = demand();
    let isGivenBack = wanted === 0 && !this.#isUsed;
    let nextMs = RENEWAL_MS;
    try {
      if (isGivenBack) {
        // Calls that come from now on wait for the next share.
        this.slots = undefined;
        await sharing.giveBack(account);
      } else {
        this.#isUsed = false;
        const share = await sharing.renew(account, Math.max(wanted, 1), Math.max(running, this.slots ?? 0));
        this.slots = share.slots;
        if (!share.isSettled) nextMs = UNSETTLED_RENEWAL_MS;
      }
    } catch {
      if (this.slots !== undefined && this.slots < max) onFailed(this.slots);
      this.slots = max;
      isGivenBack = wanted === 0 && !this.#isUsed;
    }
    this.#renewal = undefined;
    if (isGivenBack) {
      this.slots = undefined;
      // Calls may have come since.
      if (demand().wanted > 0) this.#renewal = this.#renew();
      else onIdle();
      return;
    }
    onRenewed();
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#renewal = this.#renew();
    }, nextMs).unref();
  }
}
