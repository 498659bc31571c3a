import { ServiceUnavailableError } from '../errors.js';
import type { HttpResponse } from '../http/message.js';
import { RequestLimit } from './request-limit.js';

/** How long a page waits for the turn of its request, in milliseconds: less than proxies wait for a page. */
const MAX_QUEUED_MS = 30_000;

/** When a page that has waited for so long is to be asked for again, in seconds. */
const RETRY_AFTER_S = 5;

/** For how long a turn counts while nothing is sent, in milliseconds: the lock of its grant may be held by a process that died. */
const UNUSED_MS = 1_000;

/** What was learned of an endpoint is forgotten when nothing was sent for so long, in milliseconds. */
const IDLE_MS = 30_000;

/**
 * The requests to one endpoint: as many are under way as it takes, the others wait for their turn. Those that pages wait for come
 * first, in the order in which they came; then those in the background.
 */
export class RequestQueue {
  /** How many requests may be under way, judging by the answers so far. */
  limit: RequestLimit;
  readonly #timeoutMs: number;
  readonly #pages = new Set<Turn>();
  readonly #others = new Set<Turn>();
  #running = 0;
  /** When a turn ended last, on the monotonic clock. */
  #endedAt = Number.NEGATIVE_INFINITY;

  /** @param timeoutMs Time limit of one request. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.limit = new RequestLimit(timeoutMs);
  }

  /** True if requests wait for their turn. */
  get isFull(): boolean {
    return this.#pages.size + this.#others.size > 0;
  }

  /** Counts one more request if it may be under way now. */
  tryBegin(): boolean {
    if (this.#running === 0 && performance.now() - this.#endedAt > IDLE_MS)
      this.limit = new RequestLimit(this.#timeoutMs);
    if (this.#running >= Math.floor(this.limit.value)) return false;
    this.#running++;
    return true;
  }

  /** Counts one more request, whether or not there is room for it. */
  begin(): void {
    this.#running++;
  }

  /** Counts one request less, and lets those that wait begin. */
  end(): void {
    this.#running--;
    this.#endedAt = performance.now();
    for (const waiting of [this.#pages, this.#others]) {
      for (const turn of waiting) {
        if (!this.tryBegin()) return;
        turn.proceed();
      }
    }
  }

  /** Lets a turn wait behind those of its kind. */
  add(turn: Turn): void {
    this.remove(turn);
    (turn.isAwaited ? this.#pages : this.#others).add(turn);
  }

  remove(turn: Turn): void {
    this.#pages.delete(turn);
    this.#others.delete(turn);
  }
}

/**
 * One request's turn, or that of several which follow each other.
 *
 * It is waited for before the lock of a grant is taken, so that no lock grows old during the wait. It counts from then on, until its
 * request is answered; if it is not used within a second, only while a request is under way.
 */
export class Turn {
  readonly #queue: RequestQueue;
  #isAwaited: boolean;
  #isCounted = false;
  #timer: NodeJS.Timeout | undefined;
  #settle: ((error?: unknown) => void) | undefined;

  /** @param isAwaited True if a page waits for it. */
  constructor(queue: RequestQueue, isAwaited: boolean) {
    this.#queue = queue;
    this.#isAwaited = isAwaited;
  }

  /** True if a page waits for it. */
  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  /**
   * Waits until it has come.
   *
   * @param signal Ends the wait with its reason.
   * @throws ServiceUnavailableError after 30 seconds, if a page waits; the signal's reason
   */
  async wait(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (!this.#queue.isFull && this.#queue.tryBegin()) {
      this.#begun();
      return;
    }
    const giveUp = () => this.#leave(signal?.reason);
    signal?.addEventListener('abort', giveUp);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#settle = (error) => (error === undefined ? resolve() : reject(error));
        this.#join();
      });
    } finally {
      signal?.removeEventListener('abort', giveUp);
    }
  }

  /** Lets it wait among those of pages: a page waits for it now. */
  prioritize(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    if (this.#settle) this.#join();
  }

  /** Ends the wait, if it still waits: the error is thrown. */
  giveUp(error: () => unknown): void {
    if (this.#settle) this.#leave(error());
  }

  /** Ends the wait: it counts from now on. */
  proceed(): void {
    this.#leave();
    this.#begun();
  }

  /** Sends a request, and learns from the answer. It counts until then in any case. */
  async send(request: () => Promise<HttpResponse>): Promise<HttpResponse> {
    clearTimeout(this.#timer);
    if (!this.#isCounted) this.#queue.begin();
    this.#isCounted = true;
    const { limit } = this.#queue;
    const { round } = limit;
    const sentAt = performance.now();
    try {
      const response = await request();
      const { status } = response;
      if (status === 429 || status === 503) limit.refused(round);
      // Another 5xx may be the fault of one grant.
      else if (status < 500) limit.answered(round, performance.now() - sentAt, this.#queue.isFull);
      return response;
    } catch (error) {
      limit.unanswered(round);
      throw error;
    } finally {
      this.end();
    }
  }

  /** Ends it. Another request may still be sent. */
  end(): void {
    clearTimeout(this.#timer);
    if (!this.#isCounted) return;
    this.#isCounted = false;
    this.#queue.end();
  }

  #begun(): void {
    this.#isCounted = true;
    this.#timer = setTimeout(() => this.end(), UNUSED_MS).unref();
  }

  #join(): void {
    this.#queue.add(this);
    if (!this.#isAwaited) return;
    const message = `The token endpoint has more requests than it takes: this one waited ${MAX_QUEUED_MS / 1000} s for its turn, and was not sent. The grant is kept.`;
    const error = () => new ServiceUnavailableError(message, { retryAfter: RETRY_AFTER_S });
    this.#timer = setTimeout(() => this.#leave(error()), MAX_QUEUED_MS);
  }

  /** Ends the wait. At once: whoever has given up gets no turn. */
  #leave(error?: unknown): void {
    clearTimeout(this.#timer);
    this.#queue.remove(this);
    this.#settle?.(error);
    this.#settle = undefined;
  }
}
