import { ServiceUnavailableError } from '../errors.js';
import type { HttpResponse } from '../http/message.js';

/** How long the request of a page waits for a slot, in milliseconds: less than proxies wait for a page. */
const MAX_QUEUED_MS = 30_000;

/** When to retry after that, in seconds. */
const RETRY_AFTER_S = 5;

/** How long an unused slot is kept, in milliseconds: the grant's lock may be held by a process that died. */
const UNUSED_MS = 1_000;

/** After so long without a request, in milliseconds, the limit starts afresh. */
const IDLE_MS = 30_000;

/** One request, or several that follow each other in one slot. */
export interface Turn {
  /** True if a page waits for the request. */
  isAwaited: boolean;
  /** Ends its wait: it got a slot, or gives up with an error. Set while it waits. */
  leave?: ((outcome: 'slot' | Error) => void) | undefined;
  /** Of its wait, or of its unused slot. */
  timer?: NodeJS.Timeout;
}

/**
 * The requests to one endpoint. They wait for a slot in the order of arrival: first those of pages, then background ones.
 *
 * A slot is taken before the lock of a grant, so that no lock grows old in the queue, and kept until the request is answered; if
 * it is not used within a second, it is free again until the request is sent.
 */
export class RequestQueue {
  limit: RequestLimit;
  readonly waiting: Set<Turn> = new Set();
  readonly #running = new Set<Turn>();
  readonly #timeoutMs: number;
  /** When a request ended last, by `performance.now()`. */
  #endedAt = Number.NEGATIVE_INFINITY;

  /** @param timeoutMs Time limit of one request. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.limit = new RequestLimit(timeoutMs);
  }

  /** Waits for a slot. @throws ServiceUnavailableError after 30 seconds, if a page waits; the signal's reason */
  async wait(turn: Turn, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (this.waiting.size > 0 || !this.#tryBegin(turn)) {
      const abort = () => turn.leave?.(signal?.reason);
      signal?.addEventListener('abort', abort);
      await new Promise<void>((resolve, reject) => {
        turn.leave = (outcome) => {
          clearTimeout(turn.timer);
          // At once: a turn that gave up must get no slot.
          this.waiting.delete(turn);
          turn.leave = undefined;
          if (outcome === 'slot') resolve();
          else reject(outcome);
        };
        this.#join(turn);
      }).finally(() => signal?.removeEventListener('abort', abort));
    }
    turn.timer = setTimeout(() => this.end(turn), UNUSED_MS).unref();
  }

  /** Moves a turn to the requests of pages: a page waits for it now. */
  prioritize(turn: Turn): void {
    if (turn.isAwaited) return;
    turn.isAwaited = true;
    if (turn.leave) this.#join(turn);
  }

  /** Sends a request, and adjusts the limit to its answer. */
  async send(turn: Turn, request: () => Promise<HttpResponse>): Promise<HttpResponse> {
    clearTimeout(turn.timer);
    // Even if none is free: its slot went unused for too long.
    this.#running.add(turn);
    const { limit } = this;
    const { round } = limit;
    const sentAt = performance.now();
    try {
      const response = await request();
      const { status } = response;
      if (status === 429 || status === 503) limit.lower(round, 1);
      // Another 5xx may be the fault of one grant.
      else if (status < 500) limit.answered(round, performance.now() - sentAt, this.waiting.size > 0);
      return response;
    } catch (error) {
      limit.lower(round);
      throw error;
    } finally {
      this.end(turn);
    }
  }

  /** Frees the slot of a turn, and gives the free ones to those that wait. Another request of the turn may still be sent. */
  end(turn: Turn): void {
    clearTimeout(turn.timer);
    if (!this.#running.delete(turn)) return;
    this.#endedAt = performance.now();
    for (const isAwaited of [true, false]) {
      for (const next of this.waiting) {
        if (next.isAwaited !== isAwaited) continue;
        if (!this.#tryBegin(next)) return;
        next.leave?.('slot');
      }
    }
  }

  #tryBegin(turn: Turn): boolean {
    const { size } = this.#running;
    if (size === 0 && performance.now() - this.#endedAt > IDLE_MS) this.limit = new RequestLimit(this.#timeoutMs);
    if (size >= Math.floor(this.limit.value)) return false;
    this.#running.add(turn);
    return true;
  }

  /** Lets a turn wait behind the others of its kind. */
  #join(turn: Turn): void {
    this.waiting.delete(turn);
    this.waiting.add(turn);
    if (!turn.isAwaited) return;
    const message = `Refresh not sent: queued for ${MAX_QUEUED_MS / 1000} s, because the token endpoint is busy. The grant is kept.`;
    const timeout = () => turn.leave?.(new ServiceUnavailableError(message, { retryAfter: RETRY_AFTER_S }));
    turn.timer = setTimeout(timeout, MAX_QUEUED_MS);
  }
}

/**
 * Maximum number of requests at once before anything is known about the endpoint. Slow answers alone do not lower the limit
 * below it: the endpoint may just have slowed down, or this process may be busy.
 */
const FIRST = 16;

/** The pool's other connections stay free for an API of the same origin. */
const MAX = 192;

/** Answers that take this many times as long as the fastest ones mean that requests queue at the endpoint. */
const SLOW = 2.5;

/** The same for answers that come near the time limit. */
const SLOW_NEAR_LIMIT = 1.25;

/**
 * How many requests may run at an endpoint at once, judging by its answers.
 *
 * A round is the requests that were sent since the limit last changed, and its median counts. A fast round adds the square
 * root of the limit, and doubles it until the first slow one; a slow or refused round halves it (additive increase,
 * multiplicative decrease, as in RFC 5681, 3.1). So an endpoint that works on 50 at once sees 60 to 125 of them, and is
 * never idle. Several processes settle on shares of that, since all see the same times.
 */
class RequestLimit {
  /** Requests that may run at once. */
  value: number = FIRST;
  /** Number of the round. An answer counts for the round in which its request was sent. */
  round = 0;
  readonly #nearLimitMs: number;
  #fastestMedianMs = Infinity;
  #isDoubling = true;
  /** How long the answers of this round took, in milliseconds. */
  #times: number[] = [];

  /** @param timeoutMs Time limit of one request. */
  constructor(timeoutMs: number) {
    this.#nearLimitMs = timeoutMs / 4;
  }

  /**
   * Records an answer.
   *
   * @param round In which its request was sent.
   * @param ms How long it took.
   * @param isFull Whether requests wait for a slot: without them, a higher limit would change nothing.
   */
  answered(round: number, ms: number, isFull: boolean): void {
    if (round !== this.round || this.#times.push(ms) < this.value / 2) return;
    const median = this.#times.sort((a, b) => a - b)[this.#times.length >> 1] ?? ms;
    this.#times = [];
    this.#fastestMedianMs = Math.min(this.#fastestMedianMs, median);
    const factor = median > this.#nearLimitMs ? SLOW_NEAR_LIMIT : SLOW;
    if (median <= this.#fastestMedianMs * factor) {
      if (isFull || this.value < FIRST)
        this.#change(this.value + (this.#isDoubling ? this.value : Math.sqrt(this.value)));
    } else if (this.value > FIRST) this.lower(round);
    else {
      // So few requests do not slow it down.
      this.#fastestMedianMs = median;
      this.#isDoubling = true;
    }
  }

  /**
   * Halves the limit, once a round: after a slow round, or a request without an answer.
   *
   * @param least Below {@link FIRST} for a refusal only: during an outage, fewer requests would not help.
   */
  lower(round: number, least: number = FIRST): void {
    if (round !== this.round || this.value <= least) return;
    this.#isDoubling = false;
    this.#change(Math.max(least, this.value / 2));
  }

  #change(value: number): void {
    this.value = Math.min(MAX, value);
    this.round++;
    this.#times = [];
  }
}
