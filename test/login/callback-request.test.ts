import fc from 'fast-check';
import { expect, test } from 'vitest';
import { hasCallbackParameters, readCallbackQuery } from '../../src/login/callback-request.js';

const malformed = { kind: 'malformed' };

test('reads code and state, in any order, among parameters of other kinds', () => {
  const expected = { kind: 'code', code: 'c d', state: 's' };
  expect(readCallbackQuery('/callback?code=c+d&state=s')).toEqual(expected);
  expect(readCallbackQuery('/callback?x=1&state=s&iss=https%3A%2F%2Fa&code=c%20d&session_state=y')).toEqual(expected);
});

test('reads an error and state, and nothing of descriptions', () => {
  expect(readCallbackQuery('/callback?error=e&state=s&error_description=%FF&error_uri=[')).toEqual({
    kind: 'error',
    error: 'e',
    state: 's',
  });
});

test('takes the query alone, and all of it', () => {
  expect(readCallbackQuery('/callback?code=a?b&state=s')).toEqual({ kind: 'code', code: 'a?b', state: 's' });
  expect(readCallbackQuery('/code=a&state=s')).toEqual(malformed);
  expect(readCallbackQuery('')).toEqual(malformed);
});

test.each([
  ['4096 characters of code', `code=${'a'.repeat(4096)}&state=s`, true],
  ['one more', `code=${'a'.repeat(4097)}&state=s`, false],
  ['512 characters of state', `code=c&state=${'a'.repeat(512)}`, true],
  ['one more of state', `code=c&state=${'a'.repeat(513)}`, false],
  ['2048 characters of error', `error=${'a'.repeat(2048)}&state=s`, true],
  ['one more of error', `error=${'a'.repeat(2049)}&state=s`, false],
])('%s: well formed is %s', { meta: { threats: [2] } }, (_what, query, fits) => {
  expect(readCallbackQuery(`/callback?${query}`).kind !== 'malformed').toBe(fits);
});

test('any query is read without an error, and values are visible ASCII', { meta: { threats: [2] } }, () => {
  const part = fc.oneof(
    fc.constantFrom(
      ...['code', 'state', 'error', '=', '&', '[', ']', '__proto__', '%', '%00', '%ED%A0%80', '?', '#', '+', '\0'],
      ...['\r\n'],
    ),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(part), (parts) => {
      const read = readCallbackQuery(`/callback?${parts.join('')}`);
      for (const value of Object.values(read)) expect(value ?? 'x').toMatch(/^[\x20-\x7e]+$/);
      expect(Reflect.get({}, 'polluted')).toBeUndefined();
    }),
  );
});

test.each(['/x?code=', '/x?state=a', '/x?error=a', '/x?code[]=a', '/x?a=b&state[x]=y'])(
  '%s has something of a callback',
  (url) => {
    expect(hasCallbackParameters(url)).toBe(true);
  },
);

test.each(['/x', '/x?', '/x?returnTo=/code', '/code?x=code', '/x?codex=1', '/x?constructor=1'])(
  '%s has nothing of a callback',
  (url) => {
    expect(hasCallbackParameters(url)).toBe(false);
  },
);
