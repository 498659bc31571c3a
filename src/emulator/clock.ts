/** Time as the service sees it: a source in epoch milliseconds, plus an offset that tests move forward. */
export class Clock {
  readonly #source: () => number;
  #offsetMs = 0;

  /** @param source - Called at each reading. The default looks up `Date.now` each time, so a test may fake `Date`. */
  constructor(source: () => number = () => Date.now()) {
    this.#source = source;
  }

  /** Returns epoch milliseconds. */
  now(): number {
    return this.#source() + this.#offsetMs;
  }

  /** Milliseconds that the time is ahead of its source. */
  get offsetMs(): number {
    return this.#offsetMs;
  }

  /** Returns to the time of the source. */
  reset(offsetMs = 0): void {
    this.#offsetMs = offsetMs;
  }

  /** Moves the time forward by some seconds. */
  advance(seconds: number): void {
    this.#offsetMs += seconds * 1000;
  }
}
