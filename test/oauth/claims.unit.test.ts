import { describe, expect, test } from 'vitest';
import { readClaims, subjectOf } from '../../src/oauth/claims.js';
import { threats } from '../support/threats.js';

const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const jwt = (payload: unknown) => `${part({ alg: 'none' })}.${part(payload)}.`;

describe('claims are read from', () => {
  test('a JWT with any signature', async () => {
    expect(readClaims(`${part({ alg: 'none' })}.${part({ sub: '1', domain: 'acme' })}.`)).toEqual({
      sub: '1',
      domain: 'acme',
    });
    expect(readClaims(`${part({ alg: 'HS256' })}.${part({ sub: '1' })}.nonsense`)).toEqual({ sub: '1' });
  });

  test.each([
    ['an opaque token', 'opaque'],
    ['an empty text', ''],
    ['four parts', `${jwt({ sub: '1' })}.`],
    ['a line before it', `a.${jwt({ sub: '1' })}`],
    ['no payload', 'a..b'],
    ['two parts', `${part({ alg: 'none' })}.${part({ sub: '1' })}`],
    ['five parts', `${part({ alg: 'dir' })}..${part('iv')}.${part('text')}.${part('tag')}`],
    ['four dots alone', '....'],
    ['bad base64', `${part({ alg: 'none' })}.%%%.x`],
    ['base64url that lacks a character', `${jwt({ sub: '1' }).slice(0, -1)}A.x`],
    ['wrong padding', `${jwt({ sub: '12' }).slice(0, -1)}==.x`],
    ['no JSON', jwt('{"sub":')],
    ['broken UTF-8', `${part({ alg: 'none' })}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.x`],
    ['null', jwt('null')],
    ['a list', jwt([{ sub: '1' }])],
    ['a text', jwt('"sub"')],
    ['a number', jwt('7')],
    ['1 MB of claims', jwt({ sub: '1', padding: 'x'.repeat(1_000_000) })],
    ['dots as long as a token may be', '.'.repeat(16_384)],
    [
      'deep nesting, which could not be written into a session',
      jwt(`{"sub":"1","n":${'['.repeat(6000)}${']'.repeat(6000)}}`),
    ],
    ['deep nesting of objects', jwt(`${'{"a":'.repeat(2500)}1${'}'.repeat(2500)}`)],
  ])('nothing of %s', threats(28), (_what, token) => {
    expect(readClaims(token)).toEqual({});
  });

  test('a token of 16 KiB, and one with an empty header', () => {
    const ofLength = (length: number) => `.${part(`{"sub":"1"${' '.repeat(length)}}`)}.`;
    const longest = ofLength(12_275);
    expect([longest.length, readClaims(longest)]).toEqual([16_384, { sub: '1' }]);
    expect(readClaims(`x${longest}`)).toEqual({});
  });

  test('padded base64url, and standard base64', threats(115), () => {
    const standard = Buffer.from('{"sub":"???>"}').toString('base64');
    expect(standard).toContain('/');
    expect(readClaims(`.${standard}.`)).toEqual({ sub: '???>' });
    expect(readClaims(`.${part({ sub: '1' })}=.`)).toEqual({ sub: '1' });
    expect(readClaims(`.${part({ sub: '123' })}==.`)).toEqual({ sub: '123' });
  });

  test('claims in each other', () => {
    expect(readClaims(jwt({ sub: '1', n: [[[{ a: [1] }]]] }))).toEqual({ sub: '1', n: [[[{ a: [1] }]]] });
  });

  test('no prototype, and into no prototype', () => {
    const claims = readClaims(jwt('{"__proto__":{"admin":true},"sub":"1"}'));
    expect(claims.admin).toBeUndefined();
    expect(Reflect.get({}, 'admin')).toBeUndefined();
    expect(claims.sub).toBe('1');
    expect(Object.isFrozen(claims)).toBe(true);
  });
});

test.each([
  [{ sub: '1' }, '1'],
  [{ sub: 7 }, '7'],
  [{ sub: '' }, undefined],
  [{ sub: 1.5 }, undefined],
  [{ sub: 1e300 }, undefined],
  [{ sub: {} }, undefined],
  [{ sub: null }, undefined],
  [{ sub: [7] }, undefined],
  [{}, undefined],
])('the subject of %j is %j', (claims, subject) => {
  expect(subjectOf(claims)).toBe(subject);
});
