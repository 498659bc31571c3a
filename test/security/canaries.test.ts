import { channel } from 'node:diagnostics_channel';
import { setImmediate as turn } from 'node:timers/promises';
import { ApiError } from 'passport-oauth-app';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Canaries } from './canaries.js';

const SECRET = 'canary-4f1c2b3a';

let canaries: Canaries;
beforeEach(() => {
  // What is shown here on purpose is for nobody's terminal.
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  canaries = new Canaries();
  canaries.hide('the canary', SECRET);
});
afterEach(() => {
  canaries.stop();
  vi.restoreAllMocks();
});

const hidden = (key: string) =>
  Object.defineProperty(new Error('x'), key, { value: { deep: [SECRET] }, enumerable: false });

test.each([
  ['console', () => console.warn('a warning', { deep: { deeper: SECRET } })],
  ['stderr', () => void process.stderr.write(SECRET)],
  ['warning', () => process.emitWarning(`of ${SECRET}`, 'CanaryWarning')],
  ['passport-oauth-app:api', () => channel('passport-oauth-app:api').publish({ path: `/${SECRET}` })],
  ['error', () => canaries.note('error', new Error('x', { cause: new Error('y', { cause: new Error(SECRET) }) }))],
  ['error', () => canaries.note('error', hidden('request'))],
  ['error', () => canaries.note('error', Object.assign(new Error('x'), { [Symbol('socket')]: SECRET }))],
  ['session store', () => canaries.note('session store', [['key', { nested: { token: SECRET } }]])],
])('a secret is found where it is shown: %s', async (where, leak) => {
  leak();
  await turn();
  expect(canaries.findings()).toContain(`${where} shows the canary`);
});

test('a part of a token is found as well', () => {
  canaries.hide('a token', `eyJhbGciOiJub25lIn0.${SECRET}-payload.${SECRET}-signature`);
  canaries.note('answer', `the signature is ${SECRET}-signature`);
  expect(canaries.findings()).toContain('answer shows a token');
});

test('what an ApiError is documented to hold of the answer is no finding, and its message is', () => {
  const details = { status: 400, data: { sent: SECRET }, headers: { x: SECRET }, method: 'GET', path: '/' };
  canaries.note('error', new ApiError('no', details));
  expect(canaries.findings()).toEqual([]);
  canaries.note('error', new ApiError(SECRET, details));
  expect(canaries.findings().length).toBeGreaterThan(0);
});
