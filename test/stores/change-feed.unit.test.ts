import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { type ChangeListener, changeMessage, updateMessage, watchOver } from '../../src/stores/change-feed.js';
import { gate } from '../refresh/fixture.js';
import { stopTime } from '../support/stop-time.js';
import { timersOf } from './fixture.js';

const forever = (): Promise<never> => new Promise(() => undefined);
const down = (): Promise<never> => Promise.reject(new Error('no connection'));
const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);

/** Each attempt to open a connection, and when. */
let opened: (ChangeListener & { readonly at: number })[];
/** What is told. */
let told: [id: string, version?: number | undefined][];
/** Opens a connection, and gives a sign of life. */
let open: () => Promise<unknown>;
let answer: () => Promise<unknown>;
let stop: () => void;

beforeEach(async () => {
  stopTime();
  const start = performance.now();
  [opened, told, open, answer] = [[], [], async () => undefined, vi.fn(async () => undefined)];
  const watch = watchOver(async (listener) => {
    opened.push({ ...listener, at: performance.now() - start });
    await open();
    return () => answer();
  });
  stop = watch((...change) => void told.push(change));
  onTestFinished(() => stop());
});

const times = () => opened.map(({ at }) => at);

test('a message tells of an id, with the version if that was set; a refresh needs none', () => {
  const grant = { version: 2, expiresAt: 0, sealed: '' };
  expect([changeMessage('id'), changeMessage('id', 0)]).toEqual(['id', 'id 0']);
  expect([updateMessage('id', grant, 2), updateMessage('id', grant, 1)]).toEqual(['id', undefined]);
});

test('a watcher hears that anything may have changed once the connection is open, then of each change', async () => {
  await pass(0);
  for (const message of ['id', 'id 7', '', ' probe', 'a%2B 0']) opened[0]?.tell(message);
  expect(told).toEqual([[''], ['id', undefined], ['id', 7], ['a%2B', 0]]);
});

test('a watcher that is stopped hears nothing any more, and its connection is closed', async () => {
  await pass(0);
  expect(opened[0]?.signal.aborted).toBe(false);
  stop();
  expect(opened[0]?.signal).toMatchObject({ aborted: true, reason: { message: 'The connection has ended' } });
  opened[0]?.tell('id');
  await pass(60_000);
  expect([told, times()]).toEqual([[['']], [0]]);
  expect(vi.getTimerCount()).toBe(0);
});

test('a watcher that is stopped while its connection opens, or is to open again, opens none', async () => {
  await pass(0);
  const opening = gate();
  open = () => opening.opened;
  opened[0]?.lose();
  await pass(50);
  stop();
  expect(opened[1]?.signal.aborted).toBe(true);
  opening.open();
  await pass(60_000);
  expect([told, times()]).toEqual([[['']], [0, 50]]);
});

test('a pause before the connection is opened again ends when the watcher is stopped', async () => {
  await pass(0);
  opened[0]?.lose();
  await pass(0);
  expect(vi.getTimerCount()).toBe(1);
  stop();
  await pass(0);
  expect(vi.getTimerCount()).toBe(0);
});

test('a connection that ends is opened again, after pauses that grow up to five seconds', async () => {
  await pass(0);
  open = down;
  opened[0]?.lose();
  await pass(16_350);
  const failed = [0, 50, 150, 350, 750, 1_550, 3_150, 6_350, 11_350, 16_350];
  expect(times()).toEqual(failed);
  expect(told).toEqual([['']]);
  expect(opened.every(({ signal }) => signal.aborted)).toBe(true);
  open = async () => undefined;
  await pass(5_000);
  expect(told).toEqual([[''], ['']]);
  opened.at(-1)?.lose();
  await pass(50);
  expect(times()).toEqual([...failed, 21_350, 21_400]);
});

test('a connection that does not open within five seconds is given up', async () => {
  await pass(0);
  open = forever;
  opened[0]?.lose();
  await pass(50 + 4_999);
  expect(opened[1]?.signal.aborted).toBe(false);
  await pass(1);
  expect(opened[1]?.signal.aborted).toBe(true);
  await pass(100);
  expect(times()).toEqual([0, 50, 5_150]);
});

test.for([
  ['is refused', down, 10_000],
  ['does not come within five seconds', forever, 15_000],
] as const)('a connection is opened again whose sign of life, each ten seconds, %s', async ([, fault, ms]) => {
  await pass(9_999);
  expect(answer).not.toHaveBeenCalled();
  await pass(1);
  expect(answer).toHaveBeenCalledTimes(1);
  await pass(10_000);
  expect(answer).toHaveBeenCalledTimes(2);
  answer = fault;
  await pass(ms - 1);
  expect(opened[0]?.signal.aborted).toBe(false);
  await pass(1);
  expect(opened[0]?.signal.aborted).toBe(true);
  await pass(50);
  expect(times()).toEqual([0, 20_000 + ms + 50]);
  expect(told).toEqual([[''], ['']]);
});

test('a watcher keeps no process alive, but for the time in which its connection opens', async () => {
  await pass(0);
  const timers = await timersOf(async () => {
    opened[0]?.lose();
    await pass(50);
  });
  expect(timers).toEqual([
    { ms: 50, isKeeping: false },
    { ms: 5_000, isKeeping: true },
    { ms: 10_000, isKeeping: false },
  ]);
});
