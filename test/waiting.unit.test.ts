import { randomUUID } from 'node:crypto';
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeyedQueue, pause, withTimeout } from '../src/waiting.js';
import { gate } from './support/gate.js';
import { heldUuids } from './support/heap.js';
import { stopTime } from './support/stop-time.js';

describe('a queue by key', () => {
  test('runs tasks of one key in order and one at a time, and of other keys meanwhile', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    const task = (name: string, turns: number) => async () => {
      log.push(`${name} begins`);
      for (let index = 0; index < turns; index++) await turn();
      log.push(`${name} ends`);
    };
    await Promise.all([queue.run('k', task('a', 5)), queue.run('k', task('b', 1)), queue.run('other', task('c', 2))]);
    expect(log).toEqual(['a begins', 'c begins', 'c ends', 'a ends', 'b begins', 'b ends']);
  });

  test('begins a task within the call if none of its key runs: a logout reaches the store before a later read', () => {
    const log: string[] = [];
    void new KeyedQueue().run('k', async () => log.push('begins'));
    expect(log).toEqual(['begins']);
  });

  test('settles as the task does, and runs the next task after a failure', async () => {
    const queue = new KeyedQueue();
    const failing = queue.run('k', () => Promise.reject(new Error('no')));
    const next = queue.run('k', async () => 'yes');
    await expect(failing).rejects.toThrow('no');
    expect(await next).toBe('yes');
  });

  test('runs a task that another one of its key adds after that one, also if it is added at once', async () => {
    const queue = new KeyedQueue();
    const log: string[] = [];
    let inner: Promise<unknown> = Promise.resolve();
    await queue.run('k', async () => {
      inner = queue.run('k', async () => log.push('inner'));
      await turn();
      log.push('outer');
    });
    await inner;
    expect(log).toEqual(['outer', 'inner']);
  });

  test('forgets a key when no task of it runs or waits', async () => {
    const queue = new KeyedQueue();
    const key = Buffer.from(randomUUID());
    const { opened, open } = gate();
    const isHeld = async () => (await heldUuids()).has(key.toString());
    void queue.run(key.toString(), () => opened);
    void queue.run(key.toString(), turn);
    expect(await isHeld()).toBe(true);
    open();
    await queue.drain();
    await expect.poll(isHeld).toBe(false);
    // The queue itself is still there.
    await queue.drain();
  });
});

const REASON = new Error('closed');

/** Timers and the monotonic clock stand still until the test advances them. */
afterEach(() => {
  vi.restoreAllMocks();
});

describe('a pause', () => {
  test('lasts its time, and leaves no listener on its signal', async () => {
    stopTime();
    const { signal } = new AbortController();
    const ended = vi.fn();
    void pause(50, { signal }).then(ended);
    await vi.advanceTimersByTimeAsync(49);
    expect(ended).not.toHaveBeenCalled();
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    expect(ended).toHaveBeenCalledOnce();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('is ended by its signal, with its reason and without a timer, also where that has aborted before', async () => {
    stopTime();
    const controller = new AbortController();
    const paused = pause(50, { signal: controller.signal });
    controller.abort(REASON);
    await expect(paused).rejects.toBe(REASON);
    await expect(pause(50, { signal: controller.signal })).rejects.toBe(REASON);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('keeps the process alive unless it is told not to', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    const pauses = [pause(1), pause(1, { unref: true })];
    expect(timers.mock.results.map(({ value }) => value.hasRef())).toEqual([true, false]);
    await Promise.all(pauses);
  });
});

describe('a time limit', () => {
  const late = () => new Error('late');

  test('a promise that takes too long is rejected with the error of the time limit', async () => {
    await expect(withTimeout(new Promise(() => {}), 1, late)).rejects.toThrow('late');
  });

  test('after a suspension, an answer that has arrived meanwhile counts', async () => {
    vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(40_000);
    const answer = new Promise((resolve) => setTimeout(() => setImmediate(resolve, 'the answer'), 1));
    await expect(withTimeout(answer, 1, late)).resolves.toBe('the answer');
  });

  test('after a suspension, an answer that has not arrived is waited for no longer', async () => {
    vi.spyOn(performance, 'now').mockReturnValueOnce(0).mockReturnValue(40_000);
    await expect(withTimeout(new Promise(() => {}), 1, late)).rejects.toThrow('late');
  });

  test('expires at its time, up to a tenth of a second late; beyond that, an answer is waited for', async () => {
    stopTime();
    const failed = vi.fn();
    const expire = async (lateMs: number) => {
      failed.mockClear();
      const now = performance.now();
      withTimeout(new Promise(() => {}), 50, late).catch(failed);
      vi.spyOn(performance, 'now').mockReturnValue(now + 50 + lateMs);
      await vi.advanceTimersByTimeAsync(49);
      expect(failed).not.toHaveBeenCalled();
      await vi.advanceTimersByTimeAsync(1);
      vi.restoreAllMocks();
    };
    await expire(100);
    expect(failed).toHaveBeenCalledOnce();
    await expire(101);
    expect(failed).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(20);
    expect(failed).toHaveBeenCalledOnce();
  });

  test('is ended by a signal, with its reason, also where that has aborted before', async () => {
    const controller = new AbortController();
    const waiting = withTimeout(new Promise(() => {}), 60_000, late, controller.signal);
    controller.abort(REASON);
    await expect(waiting).rejects.toBe(REASON);
    await expect(withTimeout(new Promise(() => {}), 60_000, late, controller.signal)).rejects.toBe(REASON);
  });

  test('leaves no timer and no listener once it has settled', async () => {
    stopTime();
    const { signal } = new AbortController();
    const { opened, open } = gate();
    const waiting = withTimeout(opened, 60_000, late, signal);
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort').length]).toEqual([1, 1]);
    open();
    await waiting;
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort').length]).toEqual([0, 0]);
  });
});
