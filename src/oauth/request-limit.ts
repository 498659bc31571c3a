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
export class RequestLimit {
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
