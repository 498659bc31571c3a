import { expect, test } from 'vitest';
import { NUMBERS, readTable, testsOfThreats, threatsTable, writeTable } from './threats.js';

test('every line of the threat model has a test', () => {
  expect(NUMBERS.slice(0, 68)).toEqual(Array.from({ length: 68 }, (_, index) => index + 1));
  const without = [...testsOfThreats()].filter(([, files]) => files.length === 0).map(([number]) => number);
  expect(without).toEqual([]);
});

test('the table of docs/figures/security.md names the tests that there are (npm run security:table writes it)', () => {
  if (process.env.UPDATE_SECURITY_TABLE) writeTable();
  expect(readTable()).toBe(threatsTable());
});
