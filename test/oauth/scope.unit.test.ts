import { expect, test } from 'vitest';
import { grantedScope, scopeNames } from '../../src/oauth/scope.js';

test('names of scopes are separated by white space or commas, and each counts once', () => {
  expect(scopeNames(' read,  write\n read,')).toEqual(['read', 'write']);
  expect(scopeNames(' , ')).toEqual([]);
});

const longest = 'a'.repeat(8_192);

test.for([
  ['read write', ['read', 'write']],
  [
    ['read write', 'admin'],
    ['read', 'write', 'admin'],
  ],
  ['', undefined],
  [[], undefined],
  [longest, [longest]],
  ["!#[]~'", ["!#[]~'"]],
  [`${longest}a`, undefined],
  [undefined, undefined],
  [['read', 7], undefined],
  [{ join: 1 }, undefined],
  // One name that RFC 6749 does not allow makes all of them doubtful.
  ['read "write"', undefined],
  ['read\\', undefined],
  ['é read', undefined],
] as const)('a response with the scope %j grants %j', ([value, names]) => {
  expect(grantedScope(value)).toEqual(names);
});
