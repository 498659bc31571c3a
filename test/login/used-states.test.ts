import { expect, it } from 'vitest';
import { UsedStates } from '../../src/login/used-states.js';

it('THREATS 5: lets a state be used once', () => {
  const states = new UsedStates();
  expect(states.use('a', 100, 0)).toBe(true);
  expect(states.use('a', 100, 99)).toBe(false);
  expect(states.use('b', 100, 99)).toBe(true);
});

it('forgets states that could not be used any more', () => {
  const states = new UsedStates();
  for (let count = 0; count < 1000; count++) states.use(`state-${count}`, 100 + count, 0);
  expect(states.size).toBe(1000);
  states.use('another', 5000, 600);
  expect(states.size).toBe(500);
  states.use('one more', 6000, 4000);
  expect(states.size).toBe(2);
});

it('THREATS 13: stays bounded under a flood', () => {
  const states = new UsedStates();
  for (let count = 0; count < 120_000; count++) states.use(`state-${count}`, 1e9, 0);
  expect(states.size).toBeLessThanOrEqual(50_000);
  expect(states.use('state-119999', 1e9, 0)).toBe(false);
});
