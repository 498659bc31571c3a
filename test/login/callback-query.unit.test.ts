import { expect, test } from 'vitest';
import { readCallbackQuery } from '../../src/login/callback-query.js';
import { threats } from '../support/threats.js';

const malformed = { kind: 'malformed' };

test('takes the query alone, and all of it', () => {
  expect(readCallbackQuery('/callback?code=a?b&state=s')).toEqual({ kind: 'code', code: 'a?b', state: 's' });
  expect(readCallbackQuery('/?/code=a&state=s')).toEqual(malformed);
});

test.each([
  ['4096 characters of code', `code=${'a'.repeat(4096)}&state=s`, true],
  ['one more', `code=${'a'.repeat(4097)}&state=s`, false],
  ['512 characters of state', `code=c&state=${'a'.repeat(512)}`, true],
  ['one more of state', `code=c&state=${'a'.repeat(513)}`, false],
  ['2048 characters of error', `error=${'a'.repeat(2048)}&state=s`, true],
  ['one more of error', `error=${'a'.repeat(2049)}&state=s`, false],
])('%s: well formed is %s', threats(2), (_what, query, fits) => {
  expect(readCallbackQuery(`/callback?${query}`)?.kind !== 'malformed').toBe(fits);
});

test.each([
  ...['/x?code=', '/x?state=a', '/x?error=a', '/x?code[]=a', '/x?a=b&state[x]=y'].map((url) => [url, true] as const),
  ...['/x', '/x?', '/x?returnTo=/code', '/code?x=code', '/x?codex=1', '/x?constructor=1'].map(
    (url) => [url, false] as const,
  ),
])('%s has something of a callback: %s', (url, expected) =>
  expect(readCallbackQuery(url) !== undefined).toBe(expected),
);

test('an error of other characters than ASCII is one that nobody has registered', () => {
  const expected = { kind: 'error', error: 'unregistered error', state: 's' };
  expect(readCallbackQuery('/callback?error=refus%C3%A9&state=s')).toEqual(expected);
});
