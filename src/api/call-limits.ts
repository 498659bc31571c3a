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

/** Gives a place back; only the first call counts. */
export type Release = () => void;

/** Thrown to the calls that wait if no place of their account becomes free for too long. */
export class NoPlace extends Error {}

/** Limits how many requests of each account run at once; the others wait in the order of their arrival. */
export class ConcurrencyLimiter {
  readonly max: number;
  readonly #deadlines: Deadlines;
  readonly #patienceMs: number;
  readonly #queues = new Map<string, AccountQueue>();

  /**
   * @param max Maximum of requests at once for each account; a positive integer
   * @param patienceMs How long each call waits without any place becoming free
   */
  constructor(max: number, deadlines: Deadlines, patienceMs: number) {
    this.max = max;
    this.#deadlines = deadlines;
    this.#patienceMs = patienceMs;
  }

  /**
   * Takes a place: at once if there is one, otherwise as soon as one becomes free.
   *
   * @throws the signal's reason if that is aborted before; NoPlace if no place becomes free while it waits for too long
   */
  acquire(account: string, signal: AbortSignal | undefined): Release | Promise<Release> {
    let queue = this.#queues.get(account);
    if (queue === undefined) {
      queue = new AccountQueue(this.#deadlines, this.#patienceMs);
      this.#queues.set(account, queue);
    }
    if (queue.running >= this.max) return queue.wait(signal).then(() => this.#release(account));
    queue.running++;
    return this.#release(account);
  }

  #release(account: string): Release {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      if (this.#queues.get(account)?.release()) this.#queues.delete(account);
    };
  }
}

/** A call that waits for a place. */
interface Waiting {
  /** On the monotonic clock. */
  readonly since: number;
  proceed(error?: NoPlace): void;
}

/** The requests of one account: how many run, and which wait. */
class AccountQueue implements Expiring {
  running = 0;
  /** When a place became free last, on the monotonic clock. */
  #movedAt = -Infinity;
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  readonly #deadlines: Deadlines;
  readonly #patienceMs: number;
  /** A Set keeps the order of arrival, and one that gives up leaves it at once. */
  readonly #waiting = new Set<Waiting>();

  constructor(deadlines: Deadlines, patienceMs: number) {
    this.#deadlines = deadlines;
    this.#patienceMs = patienceMs;
  }

  wait(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.delete(waiting);
        if (this.#waiting.size === 0) this.#deadlines.remove(this);
        signal?.removeEventListener('abort', giveUp);
      };
      const waiting: Waiting = {
        since: performance.now(),
        proceed: (error) => {
          leave();
          if (error === undefined) resolve();
          else reject(error);
        },
      };
      const giveUp = () => {
        leave();
        reject(signal?.reason);
      };
      if (signal?.aborted) return giveUp();
      if (this.#waiting.size === 0) this.#deadlines.add(this, this.#patienceMs);
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', giveUp);
    });
  }

  /** Hands a place to the call that waits longest. Returns true if nothing runs any more. */
  release(): boolean {
    const [next] = this.#waiting;
    if (next === undefined) return --this.running === 0;
    this.#movedAt = performance.now();
    if (this.#waiting.size > 1) this.#deadlines.extend(this, this.#patienceMs);
    next.proceed();
    return false;
  }

  /** Ends the calls that have waited for too long. Those that came later have their own time. */
  expire(now: number): void {
    for (const waiting of this.#waiting) {
      const leftMs = Math.max(waiting.since, this.#movedAt) + this.#patienceMs - now;
      if (leftMs > 0) {
        this.#deadlines.add(this, leftMs);
        return;
      }
      waiting.proceed(new NoPlace());
    }
  }
}

/**
 * Returns the result of a promise, or rejects with the signal's reason as soon as that is aborted. The work behind the
 * promise goes on.
 *
 * @throws the signal's reason
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    else signal.addEventListener('abort', giveUp);
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

/**
 * Resolves after `ms` milliseconds.
 *
 * @throws the signal's reason, as soon as it is aborted
 */
export function wait(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', giveUp);
      resolve();
    }, ms);
    if (signal?.aborted) giveUp();
    else signal?.addEventListener('abort', giveUp, { once: true });
  });
}
