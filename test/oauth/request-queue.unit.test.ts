import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ServiceUnavailableError } from '../../src/errors.js';
import type { HttpResponse } from '../../src/http/message.js';
import { RequestQueue, type Turn } from '../../src/oauth/request-queue.js';
import { mayLeave } from '../support/may-leave.js';
import { stopTime } from '../support/stop-time.js';

const FIRST = 16;

beforeEach(() => {
  stopTime();
  // Requests that the test does not answer.
  mayLeave(/request-queue/);
});

/** A request that the test answers. */
class Request {
  readonly turn: Turn;
  isSent = false;
  /** How its wait has ended, unless it was sent. */
  error: unknown;
  #answer: (response: HttpResponse) => void = () => {};

  constructor(queue: RequestQueue, isAwaited = true, signal?: AbortSignal) {
    this.turn = { isAwaited };
    queue
      .wait(this.turn, signal)
      .then(() => {
        this.isSent = true;
        return queue.send(this.turn, () => new Promise((resolve) => (this.#answer = resolve)));
      })
      .catch((error) => {
        this.error = error;
      });
  }

  async answer(status = 200): Promise<void> {
    this.#answer({ status, headers: {}, body: Buffer.alloc(0) });
    await settled();
  }
}

async function settled(): Promise<void> {
  for (let times = 0; times < 20; times += 1) await undefined;
}

function requests(queue: RequestQueue, count: number, isAwaited = true): Request[] {
  return Array.from({ length: count }, () => new Request(queue, isAwaited));
}

const sent = (all: readonly Request[]) => all.filter(({ isSent }) => isSent).length;

describe('requests to the token endpoint', () => {
  test('go 16 at first; each answer lets the one that waits longest go', async () => {
    const queue = new RequestQueue(10_000);
    const all = requests(queue, 40);
    await settled();
    expect(sent(all)).toBe(FIRST);
    await all[3]?.answer();
    expect(all.map(({ isSent }) => isSent).lastIndexOf(true)).toBe(FIRST);
    for (const request of all.slice(4, 11)) await request.answer();
    // The eighth answer doubles the limit: nine have gone for eight answers, and sixteen more may.
    expect(sent(all)).toBe(FIRST + 8 + 16);
  });

  test('of pages go before others, and so do others that a page has come to wait for', async () => {
    const queue = new RequestQueue(10_000);
    const first = requests(queue, FIRST);
    const [background, hurried] = requests(queue, 2, false);
    const page = new Request(queue);
    if (hurried) queue.prioritize(hurried.turn);
    await settled();
    const order: unknown[] = [];
    for (const request of first.slice(0, 3)) {
      await request.answer();
      order.push([page, hurried, background].map((one) => one?.isSent));
    }
    expect(order).toEqual([
      [true, false, false],
      [true, true, false],
      [true, true, true],
    ]);
  });

  test('of pages wait 30 seconds at the most, from when the page came, and leave no gap', async () => {
    const queue = new RequestQueue(10_000);
    const first = requests(queue, FIRST);
    const early = new Request(queue);
    const background = new Request(queue, false);
    await settled();
    vi.advanceTimersByTime(10_000);
    const late = new Request(queue);
    await settled();
    vi.advanceTimersByTime(19_999);
    await settled();
    expect(early.error).toBeUndefined();
    vi.advanceTimersByTime(1);
    // Before anything else runs: whoever has given up must not be given a turn.
    const answered = first[0]?.answer();
    await settled();
    expect(early.error).toBeInstanceOf(ServiceUnavailableError);
    expect(early.error).toMatchObject({ status: 503, retryAfter: 5, message: expect.stringContaining('30 s') });
    await answered;
    expect([early.isSent, late.isSent, background.isSent]).toEqual([false, true, false]);
    vi.advanceTimersByTime(600_000);
    await first[1]?.answer();
    expect(background.isSent).toBe(true);
  });

  test('of 2,000 pages at once are all answered, the last within 1.3 of the time that the endpoint itself needs', async () => {
    const queue = new RequestQueue(10_000);
    const since = performance.now();
    const all = requests(queue, 2_000);
    await settled();
    // It works on 50 at once, 400 ms each, in the order in which they come.
    let [answered, most] = [0, 0];
    while (answered < all.length && performance.now() - since < 60_000) {
      const worked = all.slice(answered, answered + 50).filter(({ isSent }) => isSent);
      most = Math.max(most, sent(all) - answered);
      vi.advanceTimersByTime(400);
      for (const request of worked) await request.answer();
      answered += worked.length;
    }
    expect(all.filter(({ error, isSent }) => error !== undefined || !isSent)).toEqual([]);
    expect(performance.now() - since).toBeLessThan((2_000 / 50) * 400 * 1.3);
    // None comes near its time limit of 10 s meanwhile.
    expect(most).toBeLessThan(250);
  });

  test('that are refused, or are not answered, become fewer; a refusal counts for all that went with it', async () => {
    const queue = new RequestQueue(10_000);
    const all = requests(queue, 30);
    await settled();
    for (const request of all.slice(0, FIRST)) await request.answer(429);
    expect(queue.limit.value).toBe(8);
    expect(sent(all)).toBe(FIRST + 8);
  });

  test('stay as many if some are answered with a 500: that may be the fault of their grants', async () => {
    const queue = new RequestQueue(10_000);
    const all = requests(queue, 30);
    await settled();
    for (const request of all.slice(0, 8)) await request.answer(500);
    expect(queue.limit.value).toBe(FIRST);
  });

  test('that get no answer do not lower the number below the first one', async () => {
    const queue = new RequestQueue(10_000);
    for (let times = 0; times < 3; times += 1) {
      const turn = { isAwaited: true };
      await queue.wait(turn);
      await expect(queue.send(turn, () => Promise.reject(new Error('timeout')))).rejects.toThrow('timeout');
    }
    expect(queue.limit.value).toBe(FIRST);
  });

  test('that wait can be given up, those that have begun cannot', async () => {
    const queue = new RequestQueue(10_000);
    const all = requests(queue, FIRST + 1);
    await settled();
    for (const { turn } of all) turn.leave?.(new Error('down'));
    await settled();
    expect(all.map(({ error }) => error).filter((error) => error !== undefined)).toEqual([new Error('down')]);
    expect([all.at(-1)?.error, queue.waiting.size]).toEqual([new Error('down'), 0]);
  });

  test('count from their turn on, not for longer than a second while nothing is sent, and again when they are sent', async () => {
    const queue = new RequestQueue(10_000);
    const turns = Array.from({ length: FIRST }, () => ({ isAwaited: true }));
    for (const turn of turns) await queue.wait(turn);
    const next = new Request(queue);
    vi.advanceTimersByTime(999);
    await settled();
    expect(next.isSent).toBe(false);
    vi.advanceTimersByTime(1);
    await settled();
    expect(next.isSent).toBe(true);
    for (const turn of turns) void queue.send(turn, () => new Promise(() => {}));
    const last = new Request(queue);
    await settled();
    expect(last.isSent).toBe(false);
  });

  test('end their wait with the reason of a signal', async () => {
    const queue = new RequestQueue(10_000);
    requests(queue, FIRST);
    const closing = new AbortController();
    const waiting = new Request(queue, true, closing.signal);
    closing.abort(new Error('closed'));
    await settled();
    expect(waiting.error).toEqual(new Error('closed'));
    expect(queue.waiting.size).toBe(0);
    const late = new Request(queue, true, closing.signal);
    await settled();
    expect(late.error).toEqual(new Error('closed'));
  });

  test('start anew after half a minute without any: an outage of last night does not slow the morning', async () => {
    const queue = new RequestQueue(10_000);
    const refused = new Request(queue);
    await settled();
    await refused.answer(503);
    expect(queue.limit.value).toBe(FIRST / 2);
    vi.advanceTimersByTime(30_001);
    const all = requests(queue, 20);
    await settled();
    expect(sent(all)).toBe(FIRST);
  });

  test('stay as few for half a minute without any, and while one is under way', async () => {
    const queue = new RequestQueue(10_000);
    const refused = new Request(queue);
    await settled();
    await refused.answer(503);
    vi.advanceTimersByTime(30_000);
    const few = requests(queue, 4);
    await settled();
    vi.advanceTimersByTime(30_001);
    const all = [...few, ...requests(queue, 20)];
    await settled();
    expect(sent(all)).toBe(FIRST / 2);
  });
});
