import type { Deadlines, Expiring } from '../http/deadlines.js';

/** A signal for one call: aborted with the caller's own signal, or when the call's time is over. */
export class CallLimit implements Expiring {
  expiresAt: number = Infinity;
  readonly #controller = new AbortController();
  readonly #deadlines: Deadlines;
  readonly #outer: AbortSignal | undefined;
  #expired = false;

  /** @param timeoutMs For the whole call; `Infinity` for no limit */
  constructor(deadlines: Deadlines, timeoutMs: number, outer: AbortSignal | undefined) {
    this.#deadlines = deadlines;
    this.#outer = outer;
    if (timeoutMs !== Infinity) deadlines.add(this, timeoutMs);
    if (outer?.aborted) this.handleEvent();
    else outer?.addEventListener('abort', this);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Whether it was the time, and not the caller, that ended the call. */
  get expired(): boolean {
    return this.#expired;
  }

  /** Milliseconds left. */
  get remainingMs(): number {
    return this.expiresAt - performance.now();
  }

  /** The caller's signal was aborted. */
  handleEvent(): void {
    this.end();
    this.#controller.abort(this.#outer?.reason);
  }

  expire(): void {
    this.#expired = true;
    this.end();
    this.#controller.abort();
  }

  /** Ends the call from within, as the caller's signal would. */
  abort(): void {
    this.end();
    this.#controller.abort();
  }

  /** Lets go of the clock and of the caller's signal. To be called when the call is over. */
  end(): void {
    this.#deadlines.remove(this);
    this.#outer?.removeEventListener('abort', this);
  }
}
