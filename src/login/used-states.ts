/** Most states that are remembered at once; beyond it the oldest is forgotten. About 200 bytes each. */
const MAX_STATES = 50_000;

/** Remembers which states were used, for as long as they could be used again. */
export class UsedStates {
  /** State to the end of its time, in epoch milliseconds. In the order of use, which is nearly that of the ends. */
  readonly #used = new Map<string, number>();

  get size(): number {
    return this.#used.size;
  }

  /** Uses a state; false if it was used before. @param now Epoch milliseconds. */
  use(state: string, expiresAt: number, now: number): boolean {
    this.#forgetEnded(now);
    if (this.#used.has(state)) return false;
    this.#used.set(state, expiresAt);
    return true;
  }

  #forgetEnded(now: number): void {
    for (const [state, expiresAt] of this.#used) {
      if (expiresAt > now && this.#used.size < MAX_STATES) return;
      this.#used.delete(state);
    }
  }
}
