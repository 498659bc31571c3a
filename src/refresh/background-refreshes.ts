import { Backoffs } from './backoff.js';

/** Most refreshes that run at once with nobody waiting for them. */
const MAX_AT_ONCE = 32;

/** Most grants that wait for their turn. Beyond it a later request brings them again. */
const MAX_WAITING = 100_000;

/**
 * How long the grants that have become due in one moment are spread over, and the longest pause between two refreshes
 * of one place, on average, in milliseconds.
 */
const SPREAD_MS = 60_000;
const MAX_PAUSE_MS = 100;

/** Starts the refresh of a grant; `undefined` where it is not due any more. */
type Start = () => Promise<unknown> | undefined;

/**
 * Refreshes ahead of time, with nobody waiting for them.
 *
 * One that comes alone starts at once. Where many become due in one moment, as many as there are places run, and the
 * others follow in random order after random pauses: the token endpoint sees them spread out, and processes that have
 * the same grants do not go through them side by side.
 */
export class BackgroundRefreshes {
  readonly #clock: () => number;
  /** Grants whose last refresh ahead of time failed; by id. */
  readonly #backOffs = new Backoffs();
  readonly #waiting = new Map<string, Start>();
  /** The keys of `#waiting`, for one to be drawn; those that are gone from it among them. */
  #drawn: string[] = [];
  #places = MAX_AT_ONCE;

  /** @param clock Epoch milliseconds. */
  constructor(clock: () => number) {
    this.#clock = clock;
  }

  /** Number of refreshes that run or wait. */
  get size(): number {
    return MAX_AT_ONCE - this.#places + this.#waiting.size;
  }

  /** Has a grant refreshed, now or when its turn comes. Calls for a grant that waits already do nothing. */
  request(id: string, start: Start): void {
    if (this.#waiting.has(id) || this.#backOffs.remainingMs(id, this.#clock()) > 0) return;
    if (this.#places > 0) this.#run(id, start);
    else if (this.#waiting.size < MAX_WAITING) {
      this.#waiting.set(id, start);
      this.#drawn.push(id);
    }
  }

  /** Forgets a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    this.#waiting.delete(id);
    if (this.#drawn.length > 2 * MAX_WAITING) this.#drawn = [...this.#waiting.keys()];
    this.#backOffs.clear(id);
  }

  /** Starts none of those that wait. */
  close(): void {
    this.#waiting.clear();
    this.#drawn = [];
  }

  #run(id: string, start: Start): void {
    const refresh = start();
    if (refresh === undefined) return;
    this.#places -= 1;
    refresh.then(
      () => this.#ended(id, true),
      () => this.#ended(id, false),
    );
  }

  /** A failure is told on the events' channel, and the token is still good: all there is to do is not to try at each request. */
  #ended(id: string, isGood: boolean): void {
    if (isGood) this.#backOffs.clear(id);
    else this.#backOffs.lengthen(id, this.#clock());
    if (this.#waiting.size === 0) this.#places += 1;
    else setTimeout(() => this.#next(), this.#pauseMs()).unref();
  }

  #next(): void {
    this.#places += 1;
    while (this.#places > 0 && this.#drawn.length > 0) {
      const id = this.#draw();
      const start = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (start) this.#run(id, start);
    }
  }

  #draw(): string {
    const last = this.#drawn.length - 1;
    const index = Math.floor(Math.random() * this.#drawn.length);
    const [id, moved] = [this.#drawn[index], this.#drawn[last]] as [string, string];
    this.#drawn[index] = moved;
    this.#drawn.length = last;
    return id;
  }

  #pauseMs(): number {
    const average = Math.min(MAX_PAUSE_MS, (SPREAD_MS * MAX_AT_ONCE) / this.#waiting.size);
    return 2 * average * Math.random();
  }
}
