/**
 * Requests at once before anything is known of the endpoint. Slow answers alone do not lower the limit below it: the endpoint may just
 * be slower than it was, or this process busy.
 */
const FIRST = 16;

/** Most requests at once. The connections of the pool beyond it stay free for an API of the same origin. */
const MAX = 192;

/** Answers that take this many times as long as the quickest ones mean that requests wait at the endpoint. */
const SLOW = 2.5;
/** The same of answers that come near the time limit. */
const SLOW_NEAR_LIMIT = 1.25;

/**
 * How many requests may be under way at an endpoint at once, judging by its answers: more while they are as quick as the first
 * ones, fewer as they slow down or are refused.
 *
 * Answers are looked at in rounds, each of requests that were sent since the limit last changed; their median counts. A round
 * that is quick adds the square root of the limit, and doubles it up to the first slow one. A slow or refused one halves it
 * (additive increase, multiplicative decrease, as in RFC 5681, 3.1). So an endpoint that works on 50
 * at once sees 60 to 125 of them, and is never idle. Several processes come to shares of that, as all see the same times.
 */
export class RequestLimit {
  /** Requests that may be under way. */
  value: number = FIRST;
  /** Counts the changes of the limit: an answer counts for the limit under which its request was sent. */
  round = 0;
  readonly #maxMs: number;
  /** Median of the quickest round. */
  #quickestMs = Infinity;
  /** Until the first slow or refused answers. */
  #isDoubling = true;
  /** Times of the answers of this round, in milliseconds. */
  #times: number[] = [];

  /** @param timeoutMs Time limit of one request: answers that take a quarter of it may not become much slower */
  constructor(timeoutMs: number) {
    this.#maxMs = timeoutMs / 4;
  }

  /**
   * Records an answer.
   *
   * @param round In which its request was sent
   * @param ms How long it took
   * @param isFull Whether requests wait for their turn: without them, more than at first would change nothing
   */
  answered(round: number, ms: number, isFull: boolean): void {
    if (round !== this.round || this.#times.push(ms) < this.value / 2) return;
    const median = this.#times.sort((a, b) => a - b)[this.#times.length >> 1] ?? ms;
    this.#times = [];
    this.#quickestMs = Math.min(this.#quickestMs, median);
    if (median <= this.#quickestMs * (median > this.#maxMs ? SLOW_NEAR_LIMIT : SLOW)) {
      if (isFull || this.value < FIRST)
        this.#change(this.value + (this.#isDoubling ? this.value : Math.sqrt(this.value)));
    } else if (this.value > FIRST) {
      this.#isDoubling = false;
      this.#change(Math.max(FIRST, this.value / 2));
    } else {
      // So few requests do not make it slow.
      this.#quickestMs = median;
      this.#isDoubling = true;
    }
  }

  /** Records that the endpoint has refused a request as one too many. Counts once a round. */
  refused(round: number): void {
    this.#lower(round, 1);
  }

  /** Records that a request got no answer. Fewer at once would not help during an outage. Counts once a round. */
  unanswered(round: number): void {
    this.#lower(round, FIRST);
  }

  #lower(round: number, least: number): void {
    if (round !== this.round || this.value <= least) return;
    this.#isDoubling = false;
    this.#change(Math.max(least, this.value / 2));
  }

  #change(value: number): void {
    this.value = Math.max(1, Math.min(MAX, value));
    this.round++;
    this.#times = [];
  }
}
