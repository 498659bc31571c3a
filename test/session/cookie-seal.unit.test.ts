import { expect, test } from 'vitest';
import { Secret } from '../../src/redaction.js';
import { CookieSeal } from '../../src/session/cookies.js';

const sealOf = (purpose: string, first: string, ...others: string[]) =>
  new CookieSeal(purpose, [new Secret(first), ...others.map((each) => new Secret(each))]);
const seal = sealOf('a', 'one');

test.for(['', 'text', '\u00e4\u{1f600}', 'a'.repeat(1_000)])('a sealed %j is opened in its context', (text) => {
  const sealed = seal.seal('context', text);
  expect(sealed).toMatch(/^[\w-]+$/);
  expect(sealed).toHaveLength(CookieSeal.lengthOf(text));
  expect(seal.open('context', sealed)).toBe(text);
  expect(seal.seal('context', text)).not.toBe(sealed);
});

test('the first secret seals, and all open', () => {
  const [both, next] = [sealOf('a', 'two', 'one'), sealOf('a', 'two')];
  expect(both.open('context', seal.seal('context', 'text'))).toBe('text');
  const sealed = both.seal('context', 'text');
  expect([next.open('context', sealed), seal.open('context', sealed)]).toEqual(['text', undefined]);
});

test.for<[what: string, value: (sealed: string) => string | undefined]>([
  ['for another context', (sealed) => seal.open('other', sealed)],
  ['for another purpose', (sealed) => sealOf('b', 'one').open('context', sealed)],
  ['with another secret', (sealed) => sealOf('a', 'two', 'three').open('context', sealed)],
  [
    'and changed',
    (sealed) =>
      seal.open(
        'context',
        sealed.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
      ),
  ],
  ['and cut', (sealed) => seal.open('context', sealed.slice(0, 36))],
  ['not at all', () => seal.open('context', '')],
])('what was sealed %s is not opened', ([, open]) => expect(open(seal.seal('context', 'text'))).toBeUndefined());
