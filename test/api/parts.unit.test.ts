import { describe, expect, test } from 'vitest';
import { serviceMessage } from '../../src/api/api-error.js';
import { defaultHeaders, requestHeaders } from '../../src/api/request-headers.js';
import { queryString } from '../../src/api/request-target.js';
import { parseBody } from '../../src/api/response.js';
import { DEFAULT_RETRY, type FailedTry, retryDelay } from '../../src/api/retry-policy.js';
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
    ...['Authorization', 'AUTHORIZATION', 'host', 'Host', 'Connection', 'Transfer-Encoding', 'Content-Length'],
    ...['Upgrade', 'Expect', 'TE', 'Proxy-Authorization', 'Keep-Alive'],
  ])('%s is a TypeError', threats(26), (name) => {
    expect(() => requestHeaders({ [name]: 'canary-value' }, undefined, [])).toThrow(TypeError);
    expect(() => requestHeaders({ [name]: 'canary-value' }, undefined, [])).not.toThrow(/canary/);
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

describe('a second try', () => {
  const failed = (more: Partial<FailedTry>): FailedTry => ({
    method: 'GET',
    isReplayable: true,
    failures: 1,
    waitedMs: 0,
    remainingMs: Infinity,
    failure: { status: 503, retryAfterMs: undefined },
    ...more,
  });
  const status = (code: number, retryAfterMs?: number) => ({ failure: { status: code, retryAfterMs } });
  const fault = (kind: 'connect' | 'reset' | 'timeout' | 'too-large' | 'closed', sent: boolean) => ({
    failure: { kind, sent },
  });

  test.each<[string, Partial<FailedTry>, number | undefined]>([
    ['GET after 503', {}, 250],
    ['GET after 503, for the third time', { failures: 2 }, 500],
    ['GET after three tries', { failures: 3 }, undefined],
    ['GET after 429', status(429), 250],
    ['GET after 502', status(502), 250],
    ['GET after 504', status(504), 250],
    ['GET after 500', status(500), undefined],
    ['GET after 404', status(404), undefined],
    ['GET after 403', status(403), undefined],
    ['PUT after 503', { method: 'PUT' }, 250],
    ['DELETE after 503', { method: 'DELETE' }, 250],
    ['HEAD after 503', { method: 'HEAD' }, 250],
    ['POST after 503', { method: 'POST' }, undefined],
    ['POST after 429', { method: 'POST', ...status(429) }, 250],
    ['PATCH after 503', { method: 'PATCH' }, undefined],
    ['PUT of a stream after 503', { method: 'PUT', isReplayable: false }, undefined],
    ['GET after a reset', fault('reset', true), 250],
    ['POST after a reset', { method: 'POST', ...fault('reset', true) }, undefined],
    ['POST that never left', { method: 'POST', ...fault('connect', false) }, 250],
    ['PATCH that never left', { method: 'PATCH', ...fault('connect', false) }, 250],
    ['stream that never left', { method: 'POST', isReplayable: false, ...fault('connect', false) }, undefined],
    ['GET after a time-out', fault('timeout', true), undefined],
    ['GET with too large an answer', fault('too-large', true), undefined],
    ['GET with a closed client', fault('closed', false), undefined],
    ['GET after Retry-After: 0', status(503, 0), 250],
    ['GET after Retry-After: 3', status(429, 3_000), 3_250],
    ['GET after Retry-After: 11', status(429, 11_000), undefined],
    ['GET that has waited long already', { ...status(429, 9_000), waitedMs: 9_000 }, undefined],
    ['GET with less time left than the wait', { remainingMs: 200 }, undefined],
  ])('%s', (_name, more, delay) => {
    expect(retryDelay(failed(more), DEFAULT_RETRY, 1)).toBe(delay);
  });

  test('waits for any time up to the bound: full jitter', () => {
    expect(retryDelay(failed({}), DEFAULT_RETRY, 0)).toBe(0);
    expect(retryDelay(failed({ failures: 2 }), DEFAULT_RETRY, 0.5)).toBe(250);
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

describe('a body', () => {
  const parse = (body: string, type?: string) =>
    parseBody(Buffer.from(body), type === undefined ? {} : { 'content-type': type });

  test.each<[string, string | undefined, unknown]>([
    ['{"a":1}', 'application/json', { a: 1 }],
    ['{"a":1}', 'application/json; charset=utf-8', { a: 1 }],
    ['{"a":1}', 'Application/Problem+JSON', { a: 1 }],
    ['\ufeff{"a":1}', 'application/json', { a: 1 }],
    ['null', 'application/json', null],
    ['', 'application/json', undefined],
    ['<html>', 'text/html', '<html>'],
    ['a,b', 'text/csv; charset=utf-8', 'a,b'],
    ['{"a":1}', undefined, { a: 1 }],
    ['plain', undefined, 'plain'],
    ['{"a":1}', 'text/plain', '{"a":1}'],
  ])('%j of type %s is %j', (body, type, data) => {
    expect(parse(body, type)).toEqual({ data });
  });

  test('of another type is bytes', () => {
    const bytes = Buffer.from([0xff, 0x00]);
    expect(parseBody(bytes, { 'content-type': 'application/zip' }).data).toEqual(bytes);
  });

  test('that is not the JSON it claims to be is text, and said to be broken', () => {
    const fault = expect.stringContaining('not valid JSON');
    expect(parse('{"a":', 'application/json')).toEqual({ data: '{"a":', fault });
  });

  test('cannot change a prototype', () => {
    const { data } = parse('{"__proto__":{"polluted":1}}', 'application/json');
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
  });
});
