import { type IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import {
  cookieAttributes,
  cookieLines,
  cookieToken,
  endCookie,
  MAX_COOKIE_HEADER,
  MAX_RESPONSE_HEADERS,
  readCookie,
  SET_COOKIE_LENGTH,
  setCookie,
} from '../../src/session/browser-cookie.js';
import { threats } from '../support/threats.js';
import { overTls, requestOf } from './fixture.js';

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

test.for([
  ['oauth-app_1', 'oauth-app_1'],
  ['__Host-a', '%5fHost-a'],
  ['a__b', 'a__b'],
  ['a.b c;d', 'a%2eb%20c%3bd'],
] as const)('the strategy %j has %s in the names of its cookies', ([name, token]) => {
  expect(cookieToken(name)).toBe(token);
});

const none = { sameSite: 'none' };
test.for<[what: string, added: object, isSecure: boolean, attributes: string]>([
  ['over http', {}, false, 'Lax'],
  ['over https', {}, true, 'Lax; Secure'],
  ['beside a partitioned session', { session: { cookie: { partitioned: true } } }, true, 'Lax; Secure'],
  ['for frames', { session: { cookie: none } }, false, 'None; Secure'],
  [
    'for frames, beside a session that is partitioned',
    { session: { cookie: { ...none, partitioned: true } } },
    true,
    'None; Secure; Partitioned',
  ],
  [
    'for frames, beside one that is half so',
    { session: { cookie: { ...none, partitioned: 1 } } },
    true,
    'None; Secure',
  ],
])('a cookie %s has its attributes', ([, added, isSecure, attributes]) => {
  expect(cookieAttributes(requestOf({}, added), isSecure)).toBe(`; Path=/; HttpOnly; SameSite=${attributes}`);
});

/** Sets a cookie, and returns whether it was set and the lines of the response. */
function set(name: string, value: string, { cookie = '', lines = [] as string[], used = 0, added = {} } = {}) {
  const req = requestOf(cookie ? { cookie } : {}, added);
  const res = new ServerResponse(req);
  for (const line of lines) res.appendHeader('Set-Cookie', line);
  const isSet = setCookie(req, res, name, value, 60, used);
  return [isSet, cookieLines(res).slice(lines.length)];
}

const ENDED = [false, ['a=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']];
const setTo = (value: string) => [true, [`a=${value}; Max-Age=60; Path=/; HttpOnly; SameSite=Lax`]];

test('a cookie is set with what its value needs escaped, and ended', () => {
  expect(set('a', '/b?c=%d;e,"f"&g')).toEqual(setTo('/b?c%3D%25d%3Be%2C%22f%22&g'));
  expect(set('a', 'b', { added: overTls() })[1]).toEqual([expect.stringMatching(/; SameSite=Lax; Secure$/)]);
  const res = new ServerResponse(requestOf());
  endCookie(requestOf(), res, 'a');
  expect(cookieLines(res)).toEqual(['a=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']);
});

const LONGEST = MAX_RESPONSE_HEADERS - SET_COOKIE_LENGTH - 'a='.length;
const ROOM = MAX_COOKIE_HEADER - 'a=b'.length;
const text = (length: number) => 'x'.repeat(length);
test.for<[what: string, length: number, options: object, isSet: boolean]>([
  ['as long as a response has room', LONGEST, {}, true],
  ['one longer', LONGEST + 1, {}, false],
  ['as long as other headers of the response leave room', LONGEST - 100, { used: 100 }, true],
  ['one longer than they leave room', LONGEST - 99, { used: 100 }, false],
  ['as long as the browser has room', 1, { cookie: text(ROOM) }, true],
  ['one longer than the browser has room', 1, { cookie: text(ROOM + 1) }, false],
  ['in place of one that is as long', 1, { cookie: `a=b; ${text(ROOM - 4)}` }, true],
  ['in place of one that is not as long', 2, { cookie: `a=b; ${text(ROOM - 4)}` }, false],
  ['beside another of the response', 1, { cookie: text(ROOM - 7), lines: ['c=def; Path=/'] }, true],
  [
    'beside another of the response that leaves no room',
    1,
    { cookie: text(ROOM - 6), lines: ['c=def; Path=/'] },
    false,
  ],
  ['beside two of them', 1, { cookie: text(ROOM - 14), lines: ['c=def; Path=/', 'd=efg'] }, true],
  ['beside two of them that leave no room', 1, { cookie: text(ROOM - 13), lines: ['c=def; Path=/', 'd=efg'] }, false],
  ['beside one that takes all other room', 1, { lines: [`c=${text(ROOM - 4)}`] }, true],
  ['beside one that ends', 1, { cookie: text(ROOM), lines: ['c=; max-age=0; Path=/'] }, true],
  ['beside one that ends by a later attribute', 1, { cookie: text(ROOM), lines: ['c=; Path=/; Max-Age=0'] }, true],
  ['beside one that ends soon', 1, { cookie: text(ROOM), lines: ['c=; Max-Age=01'] }, false],
])('a cookie %s has room or is ended', ([, length, options, isSet]) => {
  expect(set('a', text(length), options)).toEqual(isSet ? setTo(text(length)) : ENDED);
});

test('a response has the lines of its cookies, and a double without the method none', () => {
  const res = new ServerResponse(requestOf());
  expect(cookieLines(res)).toEqual([]);
  res.setHeader('Set-Cookie', 'a=1');
  expect(cookieLines(res)).toEqual(['a=1']);
  res.appendHeader('Set-Cookie', 'b=2');
  expect(cookieLines(res)).toEqual(['a=1', 'b=2']);
  expect(cookieLines({})).toEqual([]);
});
