import { NotAuthorizedError } from '../errors.js';
import { Backoffs } from './backoff.js';

/** Largest number of background refreshes that run at once. */
const MAX_RUNNING = 32;

/** Largest number of grants that wait for their turn. Beyond it, a later request of the grant asks again. */
const MAX_WAITING = 100_000;

/** Pause of each of the 32 places between two refreshes, in milliseconds. Shorter if the last grant would wait for over a minute. */
const SPACING_MS = 100;
const MAX_WAIT_MS = 60_000;

/** Starts the refresh of a grant. Returns `undefined` if it is no longer due, or none may start any more. */
type Start = (id: string) => Promise<unknown> | undefined;

/**
 * Runs refreshes that no request waits for.
 *
 * A single one starts at once. When many grants become due together, 32 run at a time, and the others follow in the
 * order in which they came, spaced out, so that the token endpoint is not flooded.
 */
export class BackgroundRefreshes {
  readonly #start: Start;
  readonly #clock: () => number;
  /** Grants whose last background refresh failed. */
  readonly #backoffs = new Backoffs();
  readonly #waiting = new Set<string>();
  #running = 0;

  /** @param clock Epoch milliseconds. */
  constructor(start: Start, clock: () => number) {
    this.#start = start;
    this.#clock = clock;
  }

  /** Requests a refresh of the grant, now or when its turn comes. Does nothing if it waits already, or has just failed. */
  request(id: string): void {
    if (this.#waiting.has(id) || this.#backoffs.remainingMs(id, this.#clock()) > 0) return;
    if (this.#running < MAX_RUNNING) this.#run(id);
    else if (this.#waiting.size < MAX_WAITING) this.#waiting.add(id);
  }

  /** Forgets a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    this.#waiting.delete(id);
    this.#backoffs.delete(id);
  }

  #run(id: string): void {
    const refresh = this.#start(id);
    if (refresh === undefined) return;
    this.#running += 1;
    refresh
      .then(
        () => void this.#backoffs.delete(id),
        // The failure is published as an event, and the token is still valid: only the next try has to wait.
        (error: unknown) => {
          if (!(error instanceof NotAuthorizedError)) this.#backoffs.fail(id, this.#clock());
        },
      )
      .then(() => {
        if (this.#waiting.size === 0) this.#running -= 1;
        else
          setTimeout(
            () => this.#runNext(),
            Math.min(SPACING_MS, (MAX_WAIT_MS * MAX_RUNNING) / this.#waiting.size),
          ).unref();
      });
  }

  #runNext(): void {
    this.#running -= 1;
    for (const id of this.#waiting) {
      if (this.#running >= MAX_RUNNING) return;
      this.#waiting.delete(id);
      this.#run(id);
    }
  }
}
