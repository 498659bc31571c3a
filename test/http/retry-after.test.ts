import { expect, it } from 'vitest';
import { parseRetryAfter } from '../../src/http/retry-after.js';

const now = Date.parse('2026-01-02T03:04:05Z');

it.each([
  ['7', 7000],
  [' 7 ', 7000],
  ['0', 0],
  ['31536000', 31_536_000_000],
  ['Fri, 02 Jan 2026 03:04:15 GMT', 10_000],
  ['Friday, 02-Jan-26 03:04:15 GMT', 10_000],
  ['Fri, 02 Jan 2026 03:04:00 GMT', 0],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
])('THREATS 39: %j is %d ms', (value, ms) => {
  expect(parseRetryAfter(value, now)).toBe(ms);
});

it('counts by its first value where it came more than once', () => {
  expect(parseRetryAfter(['7', '9'], now)).toBe(7000);
  expect(parseRetryAfter([], now)).toBeUndefined();
});

it.each([
  undefined,
  '',
  ' ',
  '-5',
  '1.5',
  '1e3',
  '0x10',
  'soon',
  '7 seconds',
  '9'.repeat(16),
  '2026-01-02',
  'Monday',
  'Fri, 99 Jan 2026',
  '<b>7</b>',
])('THREATS 39: %j says nothing', (value) => {
  expect(parseRetryAfter(value, now)).toBeUndefined();
});
