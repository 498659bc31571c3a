/** A clock that stands still until a test moves it; application and service can share it. */
export class TestClock {
  #now = Date.UTC(2030, 0, 1);

  /** Epoch milliseconds. To be handed over as it is. */
  readonly now = (): number => this.#now;

  /** Moves on by so many seconds, to the millisecond, or back by as many if they are negative. */
  advance(seconds: number): void {
    this.#now += Math.round(seconds * 1000);
  }

  reset(): void {
    this.#now = new TestClock().now();
  }
}
