import type { Deadlines, Expiring } from '../http/deadlines.js';

/** A signal for one call: aborted with the caller's own signal, or at the call's deadline. */
export class CallLimit implements Expiring {
  expiresAt: number = Infinity;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  readonly signal: AbortSignal;
  /** True if the deadline, and not the caller, ended the call. */
  expired = false;
  readonly #controller = new AbortController();
  readonly #deadlines: Deadlines;
  readonly #outer: AbortSignal | undefined;

  /** @param timeoutMs For the whole call; `Infinity` for no limit */
  constructor(deadlines: Deadlines, timeoutMs: number, outer: AbortSignal | undefined) {
    this.signal = this.#controller.signal;
    this.#deadlines = deadlines;
    this.#outer = outer;
    if (timeoutMs !== Infinity) deadlines.add(this, timeoutMs);
    if (outer?.aborted) this.handleEvent();
    else outer?.addEventListener('abort', this);
  }

  get remainingMs(): number {
    return this.expiresAt - performance.now();
  }

  /** Passes on that the caller's signal was aborted. */
  handleEvent(): void {
    this.end();
    this.#controller.abort(this.#outer?.reason);
  }

  expire(): void {
    this.expired = true;
    this.abort();
  }

  /** Ends the call from within, as the caller's signal would. */
  abort(): void {
    this.end();
    this.#controller.abort();
  }

  /** Releases the clock and the caller's signal. To be called when the call is over. */
  end(): void {
    this.#deadlines.remove(this);
    this.#outer?.removeEventListener('abort', this);
  }
}
