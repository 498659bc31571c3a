import { beforeEach, expect, test, vi } from 'vitest';
import { NotAuthorizedError, ServiceUnavailableError } from '../../src/errors.js';
import { BackgroundRefreshes } from '../../src/refresh/background-refreshes.js';
import { stopTime } from '../support/stop-time.js';

/** How many refreshes run at once. */
const PLACES = 32;

let now: number;
let started: string[];
let settled: { readonly succeed: () => void; readonly fail: (error: Error) => void }[];
let isDue: (id: string) => boolean;
let refreshes: BackgroundRefreshes;

beforeEach(() => {
  now = 0;
  started = [];
  settled = [];
  isDue = () => true;
  refreshes = new BackgroundRefreshes(
    (id) => {
      started.push(id);
      if (!isDue(id)) return undefined;
      return new Promise<void>((resolve, reject) => void settled.push({ succeed: resolve, fail: reject }));
    },
    () => now,
  );
});

/** Asks for the refreshes of so many grants. */
const request = (count: number, name: string) => {
  for (let index = 0; index < count; index += 1) refreshes.request(`${name} ${index}`);
};

/** Ends refreshes that run. */
async function succeed(count = 1): Promise<void> {
  for (const each of settled.splice(0, count)) each.succeed();
  await vi.advanceTimersByTimeAsync(0);
}

test('one grant is refreshed at once; a place is free again when it ends', async () => {
  stopTime();
  for (let index = 0; index < 2 * PLACES; index += 1) {
    refreshes.request(`${index}`);
    await succeed();
  }
  expect(started).toHaveLength(2 * PLACES);
});

test('many grants are refreshed in the order in which they came, a tenth of a second after a place is free', async () => {
  stopTime();
  request(PLACES, 'first');
  request(3, 'later');
  request(3, 'later');
  expect(started).toHaveLength(PLACES);
  await succeed(2);
  await vi.advanceTimersByTimeAsync(99);
  refreshes.request('too early');
  expect(started).toHaveLength(PLACES);
  await vi.advanceTimersByTimeAsync(1);
  expect(started.slice(PLACES)).toEqual(['later 0', 'later 1']);
  await succeed(PLACES);
  await vi.advanceTimersByTimeAsync(100);
  expect(started.slice(PLACES)).toEqual(['later 0', 'later 1', 'later 2', 'too early']);
  // All places are free again.
  await succeed(PLACES);
  request(PLACES + 1, 'last');
  expect(started).toHaveLength(PLACES + 4 + PLACES);
});

test('a place that is free goes to the next grant that is still due', async () => {
  stopTime();
  request(PLACES, 'first');
  request(3, 'later');
  isDue = (id) => id === 'later 2';
  await succeed();
  await vi.advanceTimersByTimeAsync(100);
  expect(started.slice(PLACES)).toEqual(['later 0', 'later 1', 'later 2']);
  refreshes.request('none is free');
  expect(started).toHaveLength(PLACES + 3);
});

test('what is not due takes no place', () => {
  isDue = () => false;
  request(PLACES, 'not due');
  isDue = () => true;
  request(PLACES + 1, 'due');
  expect(started).toHaveLength(PLACES + PLACES);
});

test('grants that wait are asked for once more only when it is their turn', async () => {
  stopTime();
  request(PLACES, 'first');
  request(2, 'later');
  isDue = (id) => {
    if (id === 'later 0') refreshes.request('later 1');
    return true;
  };
  await succeed();
  await vi.advanceTimersByTimeAsync(100);
  expect(started.slice(PLACES)).toEqual(['later 0']);
});

test.for([
  [19_200, 100],
  [38_400, 50],
] as const)('%i grants that wait follow after %i ms, so that the last waits for a minute', async ([count, ms]) => {
  stopTime();
  request(PLACES, 'first');
  request(count, 'later');
  await succeed();
  await vi.advanceTimersByTimeAsync(ms - 1);
  expect(started).toHaveLength(PLACES);
  await vi.advanceTimersByTimeAsync(1);
  expect(started).toHaveLength(PLACES + 1);
});

test('no more than 100,000 grants wait', async () => {
  stopTime();
  request(PLACES, 'first');
  request(100_000, 'later');
  refreshes.request('one too many');
  isDue = () => false;
  await succeed();
  await vi.advanceTimersByTimeAsync(100);
  expect(started).toHaveLength(PLACES + 100_000);
  expect(started).not.toContain('one too many');
});

test('a grant that a login or a logout has forgotten waits no more', async () => {
  stopTime();
  request(PLACES, 'first');
  request(2, 'later');
  refreshes.forget('later 0');
  await succeed();
  await vi.advanceTimersByTimeAsync(100);
  expect(started.slice(PLACES)).toEqual(['later 1']);
});

test.for<[what: string, error: Error, pauses: boolean]>([
  ['has failed is left alone for a second, then two', new ServiceUnavailableError('down'), true],
  ['has ended is asked for again', new NotAuthorizedError('ended'), false],
])('a grant whose refresh %s', async ([, error, pauses]) => {
  stopTime();
  const fail = async () => {
    refreshes.request('id');
    settled.shift()?.fail(error);
    await vi.advanceTimersByTimeAsync(0);
  };
  await fail();
  await fail();
  expect(started).toHaveLength(pauses ? 1 : 2);
  now += 1_000;
  await fail();
  now += 1_999;
  await fail();
  expect(started).toHaveLength(pauses ? 2 : 4);
  now += 1;
  refreshes.request('id');
  await succeed();
  now += 1;
  await fail();
  now += 1_000;
  refreshes.request('id');
  expect(started).toHaveLength(pauses ? 5 : 7);
});

test('a grant that has failed is asked for again after a login', async () => {
  stopTime();
  refreshes.request('id');
  settled.shift()?.fail(new ServiceUnavailableError('down'));
  await vi.advanceTimersByTimeAsync(0);
  refreshes.forget('id');
  refreshes.request('id');
  expect(started).toHaveLength(2);
});
