/** The service's idea of the time: a source in epoch milliseconds, and how far it was moved ahead of that. */
export class Clock {
  readonly #source: () => number;
  #offsetMs = 0;

  /** @param source - Read anew each time; unless given, `Date.now` as it is then, so that a faked `Date` counts. */
  constructor(source: () => number = () => Date.now()) {
    this.#source = source;
  }

  /** Epoch milliseconds. */
  now(): number {
    return this.#source() + this.#offsetMs;
  }

  /** Lets so many seconds pass at once. */
  advance(seconds: number): void {
    this.#offsetMs += seconds * 1000;
  }
}
