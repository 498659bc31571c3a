import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { KeyedQueue } from '../../src/stores/keyed-queue.js';
import { heldEntries } from '../support/private-state.js';

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
  for (let index = 0; index < 100; index++) void queue.run(`${index % 10}`, turn);
  expect(await heldEntries(queue, [])).toEqual({ '#tails': 10 });
  await queue.drain();
  await turn();
  expect(await heldEntries(queue, [])).toEqual({});
});
