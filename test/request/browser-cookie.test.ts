import type { IncomingMessage } from 'node:http';
import { expect, test } from 'vitest';
import { readCookie } from '../../src/request/browser-cookie.js';
import { threats } from '../support/threats.js';

// As Node hands a header over: Latin-1, in which a byte of 0xA0 is a space to `trim`, and not to browsers.
test.for([
  ['of several with one name the first', 'a=1; __Host-x=first; __Host-x=second', 'first'],
  ['with spaces and tabs around it dropped', 'a=1;\t __Host-x \t=\t first \t; b=2', 'first'],
  ['with its quotes', '__Host-x="first"', '"first"'],
  ['decoded', '__Host-x=%66irst%25', 'first%'],
  ['as it was sent where it cannot be decoded', '__Host-x=%zz%e4', '%zz%e4'],
  ['after pairs without a name or a value', 'y; =z;; __Host-x=first', 'first'],
  ['with the equals signs in it', '__Host-x==fi=rst=', '=fi=rst='],
  ['not from a name that only begins like it', '__Host-xy=other', undefined],
  ['not from a name with another space before it', '\u00a0__Host-x=planted', undefined],
  ['not from a name with another space behind it', '__Host-x\u00a0=planted', undefined],
  ['not from a value', 'a=b __Host-x=planted', undefined],
  ['not from an inherited property', '__proto__=__Host-x; constructor=1', undefined],
] as const)('reads a cookie %s', threats(71), ([, cookie, value]) => {
  expect(readCookie({ headers: { cookie } } as IncomingMessage, '__Host-x')).toBe(value);
});

test('reads a cookie behind 8 KB of spaces, signs and empty pairs', () => {
  for (const filling of [' ', ';', '=', '\t;', '; =', '%']) {
    const cookie = `${filling.repeat(8_000 / filling.length)}; __Host-x=first`;
    expect(readCookie({ headers: { cookie } } as IncomingMessage, '__Host-x')).toBe('first');
  }
});
