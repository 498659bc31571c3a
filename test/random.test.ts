import { expect, test } from 'vitest';
import { random } from '../src/random.js';

test('random bytes come in the asked number, and no two texts of them are alike', () => {
  // Beyond several fillings of the pool, whose end falls inside of a text.
  const texts = Array.from({ length: 2_000 }, (_, index) => random.bytes(index % 2 === 0 ? 32 : 12).toString('hex'));
  expect(texts.map(({ length }) => length)).toEqual(texts.map((_, index) => (index % 2 === 0 ? 64 : 24)));
  expect(new Set(texts).size).toBe(texts.length);
  expect(texts.filter((text) => /^0+$/.test(text.slice(-16)))).toEqual([]);
});

test('random bytes stay as they are when others follow', () => {
  const first = random.bytes(32);
  const text = first.toString('hex');
  for (let count = 0; count < 500; count++) random.bytes(32);
  expect(first.toString('hex')).toBe(text);
});
