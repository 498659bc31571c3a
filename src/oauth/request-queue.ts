import { ServiceUnavailableError } from '../errors.js';
import type { HttpResponse } from '../http/message.js';
import { RequestLimit } from './request-limit.js';

/** How long the request of a page waits for a slot, in milliseconds: less than proxies wait for a page. */
const MAX_QUEUED_MS = 30_000;

/** When to retry after that, in seconds. */
const RETRY_AFTER_S = 5;

/** How long an unused slot is kept, in milliseconds: the grant's lock may be held by a process that died. */
const UNUSED_MS = 1_000;

/** After so long without a request, in milliseconds, the limit starts afresh. */
const IDLE_MS = 30_000;

/** The requests to one endpoint. They wait for a slot in the order of arrival: first those of pages, then background ones. */
export class RequestQueue {
  limit: RequestLimit;
  readonly #timeoutMs: number;
  readonly #pages = new Set<Turn>();
  readonly #others = new Set<Turn>();
  #running = 0;
  /** When a request ended last, by `performance.now()`. */
  #endedAt = Number.NEGATIVE_INFINITY;

  /** @param timeoutMs Time limit of one request. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.limit = new RequestLimit(timeoutMs);
  }

  /** True if requests wait for a slot. */
  get isFull(): boolean {
    return this.#pages.size + this.#others.size > 0;
  }

  /** Takes a slot if one is free. */
  tryBegin(): boolean {
    if (this.#running === 0 && performance.now() - this.#endedAt > IDLE_MS)
      this.limit = new RequestLimit(this.#timeoutMs);
    if (this.#running >= Math.floor(this.limit.value)) return false;
    this.#running++;
    return true;
  }

  /** Takes a slot even if none is free. */
  begin(): void {
    this.#running++;
  }

  /** Frees a slot, and gives the free ones to those that wait. */
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

  /** Lets a turn wait behind the others of its kind. */
  add(turn: Turn, isAwaited: boolean): void {
    this.remove(turn);
    (isAwaited ? this.#pages : this.#others).add(turn);
  }

  remove(turn: Turn): void {
    this.#pages.delete(turn);
    this.#others.delete(turn);
  }
}

/**
 * The slot of one request, or of several that follow each other.
 *
 * It is taken before the lock of a grant, so that no lock grows old in the queue, and kept until the request is answered; if
 * it is not used within a second, it is free again until the request is sent.
 */
export class Turn {
  readonly #queue: RequestQueue;
  #isAwaited: boolean;
  #hasSlot = false;
  #timer: NodeJS.Timeout | undefined;
  /** Set while it waits. */
  #settle: ((error?: unknown) => void) | undefined;

  /** @param isAwaited True if a page waits for the request. */
  constructor(queue: RequestQueue, isAwaited: boolean) {
    this.#queue = queue;
    this.#isAwaited = isAwaited;
  }

  /** Waits for a slot. @throws ServiceUnavailableError after 30 seconds, if a page waits; the signal's reason */
  async wait(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.#queue.isFull || !this.#queue.tryBegin()) {
      const abort = () => this.#leave(signal?.reason);
      signal?.addEventListener('abort', abort);
      await new Promise<void>((resolve, reject) => {
        this.#settle = (error) => (error === undefined ? resolve() : reject(error));
        this.#join();
      }).finally(() => signal?.removeEventListener('abort', abort));
    }
    this.#hasSlot = true;
    this.#timer = setTimeout(() => this.end(), UNUSED_MS).unref();
  }

  /** Moves it to the requests of pages: a page waits for it now. */
  prioritize(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    if (this.#settle) this.#join();
  }

  /** Makes the wait fail, if it still waits. */
  giveUp(error: () => unknown): void {
    if (this.#settle) this.#leave(error());
  }

  /** Ends the wait. The queue has taken the slot. */
  proceed(): void {
    this.#leave();
  }

  /** Sends a request, and adjusts the limit to its answer. */
  async send(request: () => Promise<HttpResponse>): Promise<HttpResponse> {
    clearTimeout(this.#timer);
    if (!this.#hasSlot) this.#queue.begin();
    this.#hasSlot = true;
    const { limit } = this.#queue;
    const { round } = limit;
    const sentAt = performance.now();
    try {
      const response = await request();
      const { status } = response;
      if (status === 429 || status === 503) limit.lower(round, 1);
      // Another 5xx may be the fault of one grant.
      else if (status < 500) limit.answered(round, performance.now() - sentAt, this.#queue.isFull);
      return response;
    } catch (error) {
      limit.lower(round);
      throw error;
    } finally {
      this.end();
    }
  }

  /** Frees the slot. Another request may still be sent. */
  end(): void {
    clearTimeout(this.#timer);
    if (!this.#hasSlot) return;
    this.#hasSlot = false;
    this.#queue.end();
  }

  #join(): void {
    this.#queue.add(this, this.#isAwaited);
    if (!this.#isAwaited) return;
    const message = `Refresh not sent: queued for ${MAX_QUEUED_MS / 1000} s, because the token endpoint is busy. The grant is kept.`;
    const timeout = () => this.#leave(new ServiceUnavailableError(message, { retryAfter: RETRY_AFTER_S }));
    this.#timer = setTimeout(timeout, MAX_QUEUED_MS);
  }

  /** Ends the wait, and leaves the queue at once: a turn that gave up must get no slot. */
  #leave(error?: unknown): void {
    clearTimeout(this.#timer);
    this.#queue.remove(this);
    this.#settle?.(error);
    this.#settle = undefined;
  }
}
