import { describe, expect, test } from 'vitest';
import { serviceMessage } from '../../src/api/api-error.js';
import { queryString } from '../../src/api/call-request.js';
import { defaultHeaders, requestHeaders } from '../../src/api/request-headers.js';
import { threats } from '../support/threats.js';
import { tokenOf } from './fixture.js';

const DEFAULT_HEADERS = defaultHeaders(undefined).parsed;

describe('a query', () => {
  test('repeats lists, leaves undefined out, and sends dates in ISO 8601', () => {
    const query = { a: [1, undefined, 'x y'], b: undefined, c: true, d: new Date(0), e: 'ä&=', f: 10n, 'g[]': 0 };
    expect(queryString(query)).toBe('?a=1&a=x%20y&c=true&d=1970-01-01T00%3A00%3A00.000Z&e=%C3%A4%26%3D&f=10&g%5B%5D=0');
  });

  test('may be URLSearchParams, or nothing', () => {
    expect(queryString(new URLSearchParams({ a: 'b c' }))).toBe('?a=b+c');
    expect(queryString({})).toBe('');
    expect(queryString({ a: [] })).toBe('');
    expect(queryString(undefined)).toBe('');
  });

  test.each([
    { a: null },
    { a: {} },
    { a: Number.NaN },
    { a: Infinity },
    { a: new Date(Number.NaN) },
    { a: '\ud800' },
    { a: [['b']] },
    'a=b',
    new Map([['a', 'b']]),
    null,
  ])('of %o is a TypeError', (query) => {
    // @ts-expect-error what JavaScript may give
    expect(() => queryString(query)).toThrow(TypeError);
  });
});

describe('headers', () => {
  test('are those of the caller, and the defaults that they do not replace', () => {
    const list = requestHeaders(
      { ACCEPT: 'text/csv', 'X-Two': ['1', '2'], 'x-no': undefined, 'x-n': 5 },
      { create: () => '{}', isReplayable: true, contentType: 'application/json' },
      DEFAULT_HEADERS,
    );
    expect(list).toEqual([
      ...['accept', 'text/csv', 'x-two', '1', 'x-two', '2', 'x-n', '5'],
      ...DEFAULT_HEADERS.slice(2),
      'content-type',
      'application/json',
    ]);
  });

  test('may be a Headers object or a Map', () => {
    expect(requestHeaders(new Headers({ 'If-Match': '"1"' }), undefined, [])).toEqual(['if-match', '"1"']);
    expect(requestHeaders(new Map([['If-Match', '"1"']]), undefined, [])).toEqual(['if-match', '"1"']);
  });

  test.each([
    { 'x-a': 'canary\r\nx-b: c' },
    { 'x-a': 'canary\0' },
    { 'x-a': 'canary€' },
    { 'x a': 'canary' },
    { '': 'canary' },
    { 'x-canary\n': 'a' },
    { 'x-a': null },
    { 'x-a': { canary: 1 } },
    [['x-a', 'canary', 'c']],
    'canary',
  ])('%j is a TypeError that does not show it', threats(24), (headers) => {
    // @ts-expect-error what JavaScript may give
    expect(() => requestHeaders(headers, undefined, [])).toThrow(TypeError);
    // @ts-expect-error what JavaScript may give
    expect(() => requestHeaders(headers, undefined, [])).not.toThrow(/canary/);
  });
});

describe('the message of the service', () => {
  test.each<[unknown, string | undefined]>([
    [{ error: { message: 'Project Not Found', code: 404 } }, 'Project Not Found (404)'],
    [
      { errors: [{ error: { key: 'name', errors: [{ code: 'isEmpty', message: 'is required' }] } }] },
      'name: is required (isEmpty)',
    ],
    [
      {
        errors: [
          { error: { key: 'a', errors: [{ message: 'x' }, { message: 'y' }] } },
          { error: { key: 'b', errors: [{ code: 'z' }] } },
        ],
      },
      'a: x; a: y; b:  (z)',
    ],
    [{ error: 'invalid_token' }, 'invalid_token'],
    [{ error: 'invalid_scope', error_description: 'Too wide.' }, 'invalid_scope: Too wide'],
    [
      { title: 'Out of credit', detail: 'Your balance is 30', type: 'about:blank' },
      'Out of credit: Your balance is 30',
    ],
    [{ message: 'Bad credentials', documentation_url: 'https://docs.example.com' }, 'Bad credentials'],
    [{ error: { message: 'inner' }, message: 'outer' }, 'inner'],
    [{ message: { nested: 1 } }, undefined],
    [{ errors: 'x' }, undefined],
    [{ errors: [null, 1, { error: null }] }, undefined],
    ['text', undefined],
    [null, undefined],
    [undefined, undefined],
  ])('of %j is %j', (data, message) => {
    expect(serviceMessage(data, tokenOf('first'))).toBe(message);
  });

  test('is one line, of bounded length, without control characters', () => {
    const message = serviceMessage({ error: { message: `a\r\nb\0c\u202ed\u2028e ${'long '.repeat(1000)}` } }, 'token');
    expect(message).toMatch(/^a b c d e long/);
    expect(message?.length).toBeLessThanOrEqual(300);
  });

  test('has no access token in it, nor a part of one', threats(24), () => {
    const token = 'eyJhbGciOi.eyJzdWIi.c2lnbmF0dXJl';
    const whole = [token, `Bearer ${token}`, Buffer.from(token).toString('base64')];
    for (const echoed of [...whole, 'eyJzdWIi', 'c2lnbmF0dXJl']) {
      expect(serviceMessage({ error: { message: `Invalid: ${echoed}` } }, token)).not.toMatch(/eyJ|c2ln|ZXlK/);
    }
  });
});
