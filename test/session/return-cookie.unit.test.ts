import { ServerResponse } from 'node:http';
import { beforeEach, expect, test } from 'vitest';
import { ReturnCookie, safeReturnTo } from '../../src/session/return-cookie.js';
import { Jar, requestOf, setCookies } from './fixture.js';

const longest = `/${'a'.repeat(2_047)}`;
test.for<[value: unknown, path: string]>([
  ['/a/b?c=d#e', '/a/b?c=d#e'],
  ['/a/../b/./c', '/b/c'],
  ['/\u00e4?\u00e4#\u00e4', '/%C3%A4?%C3%A4#%C3%A4'],
  ['/a?b\\c#d\\e\\f', '/a?b%5Cc#d%5Ce%5Cf'],
  ['/a#b\\c', '/a#b%5Cc'],
  [longest, longest],
  [`${longest}a`, '/'],
  [`/${'a/../'.repeat(500)}b`, '/'],
  [`/${'\u00e4'.repeat(400)}`, '/'],
  ['a', '/'],
  ['//other.example', '/'],
  ['//other.example/a', '/'],
  ['/\\other.example', '/'],
  ['/a\\b', '/'],
  ['/.//other.example', '/'],
  ['/a/..//other.example', '/'],
  ['/a b', '/'],
  ['/a\tb', '/'],
  ['/a?b\nc', '/'],
  ['/a\u007f', '/'],
  ['//[', '/'],
  ['https://other.example', '/'],
  [['/a'], '/'],
  [undefined, '/'],
])('of the page %j a login returns to %s', ([value, path]) => expect(safeReturnTo(value)).toBe(path));

let cookie: ReturnCookie;
beforeEach(() => {
  cookie = new ReturnCookie('return-to');
});

test('the page to return to is kept for ten minutes, and taken once', () => {
  const jar = new Jar();
  const line = jar.visit((req, res) => {
    cookie.remember(req, res, '/a?b=c;d');
    return setCookies(res);
  });
  expect(line).toEqual(['return-to=/a?b%3Dc%3Bd; Max-Age=600; Path=/; HttpOnly; SameSite=Lax']);
  const take = () => jar.visit((req, res) => cookie.take(req, res));
  expect(take()).toBe('/a?b=c;d');
  expect([take(), jar.names]).toEqual([undefined, []]);
  jar.visit((req, res) => cookie.remember(req, res, '//other.example'));
  expect(take()).toBe('/');
});

test('a page that was planted in the cookie is not returned to', () => {
  const req = requestOf({ cookie: 'return-to=//other.example' });
  const res = new ServerResponse(req);
  expect(cookie.take(req, res)).toBe('/');
  expect(setCookies(res)).toEqual(['return-to=; Max-Age=0; Path=/; HttpOnly; SameSite=Lax']);
});

test('a page that does not fit ends the cookie of the one before', () => {
  const remember = (used?: number) => {
    const req = requestOf();
    const res = new ServerResponse(req);
    cookie.remember(req, res, `/${'a'.repeat(2_000)}`, used);
    return setCookies(res)[0]?.slice(0, 12);
  };
  expect([remember(), remember(2_000)]).toEqual(['return-to=/a', 'return-to=; ']);
});

test.for([
  [undefined, 0],
  ['a=1; other-return=2', 0],
  ['return-to=/a', 12],
  ['a=1; return-to=/a', 12],
  ['a=1; return-to=/a; b=2', 12],
  ['return-to', 0],
] as const)('in the header %j it takes %d characters', ([header, length]) => {
  expect(cookie.lengthIn(requestOf(header === undefined ? {} : { cookie: header }))).toBe(length);
});
