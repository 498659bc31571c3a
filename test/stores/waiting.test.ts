import { randomUUID } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { KeyedQueue, withTimeout } from '../../src/stores/waiting.js';
import { gate } from '../refresh/fixture.js';
import { heldUuids } from '../support/heap.js';

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

describe('a time limit', () => {
  afterEach(() => vi.restoreAllMocks());

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
});
