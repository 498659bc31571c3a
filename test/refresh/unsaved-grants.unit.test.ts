import { setImmediate as turn } from 'node:timers/promises';
import { expect, vi } from 'vitest';
import { stopTime } from '../support/stop-time.js';
import { LIFETIME_S, test } from './fixture.js';

test('a pair that cannot be saved is tried again with backoff, until it is saved or a newer one takes its place', async ({
  expired: { store, clock, use, sent },
}) => {
  stopTime();
  /** Lets seconds pass, and returns at which tenths of a second a save was tried. */
  const triedIn = async (seconds: number): Promise<number[]> => {
    const tried: number[] = [];
    for (let tenth = 1; tenth <= 10 * seconds; tenth++) {
      store.calls.length = 0;
      vi.advanceTimersByTime(100);
      await turn();
      if (store.calls.includes('update')) tried.push(tenth);
    }
    return tried;
  };
  store.fail('update', 'set');
  expect(await use()).toBe('access-1');
  const backoff = [1, 3, 7, 15, 31, 63, 113];
  expect(await triedIn(12)).toEqual(backoff);
  // The lock is released meanwhile.
  await triedIn(30);
  clock.advance(LIFETIME_S);
  expect(await use()).toBe('access-2');
  expect(sent()).toEqual(['refresh-old', 'refresh-1']);
  // The tries for the first pair have ended.
  expect(await triedIn(12)).toEqual(backoff);
  store.recover();
  expect(await triedIn(30)).toHaveLength(1);
});
