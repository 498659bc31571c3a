import { describe, expect, test } from 'vitest';
import { decodeHeaders } from '../../src/http/exchange.js';
import { headerValue, retryAfterMs } from '../../src/http/message.js';

const now = Date.parse('2026-01-02T03:04:05Z');

describe('Retry-After', () => {
  test.each([
    ['7', 7000],
    [' 7 ', 7000],
    ['0', 0],
    ['31536000', 31_536_000_000],
    ['Fri, 02 Jan 2026 03:04:15 GMT', 10_000],
    ['Friday, 02-Jan-26 03:04:15 GMT', 10_000],
    ['Fri Jan  2 03:04:15 2026', 10_000],
    ['Fri, 02 Jan 2026 03:04:00 GMT', 0],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ])('of %j is %d ms', (value, ms) => {
    expect(retryAfterMs({ 'retry-after': value }, now)).toBe(ms);
  });

  test.each([
    ...[undefined, '', ' ', '-5', '1.5', '1e3', '0x10', 'soon', '7 seconds'],
    '9'.repeat(16),
    '2026-01-02',
    'Monday',
    'Fri, 99 Jan 2026',
    '<b>7</b>',
  ])('of %j is ignored', (value) => {
    expect(retryAfterMs({ 'retry-after': value }, now)).toBeUndefined();
  });
});

test('a single-valued header that occurs twice counts by its first value', () => {
  expect(retryAfterMs({ 'retry-after': ['7', '9'] }, now)).toBe(7000);
  expect(retryAfterMs({ 'retry-after': [] }, now)).toBeUndefined();
  expect(headerValue({ location: ['/a', '/b'] }, 'location')).toBe('/a');
});

describe('raw headers', () => {
  const raw = ['Link', 'é', 'LINK', 'b', 'link', 'c', '__proto__', 'x', 'Name without a value'];

  test.each([
    ['text', raw],
    ['bytes', raw.map((each) => Buffer.from(each, 'latin1'))],
  ])('as %s become values of their own, whatever they are called', (_form, given) => {
    expect(Object.entries(decodeHeaders(given))).toEqual([
      ['link', ['é', 'b', 'c']],
      ['__proto__', 'x'],
    ]);
    expect(decodeHeaders(given, new Set([9]))).toEqual(JSON.parse('{"__proto__":"x"}'));
  });
});
