import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CONNECT, compile, EXPRESS_5, MANNERS } from './compilation.js';
import { type Packed, pack } from './packed.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

const CLEAN = { exitCode: 0, stdout: '', stderr: '' };
// The compiler of this repository knows node10 no more: test/matrix has one that does.
const manners = (Object.keys(MANNERS) as (keyof typeof MANNERS)[]).filter((manner) => manner !== 'node10');

describe.each(manners)('a strict TypeScript project with %s', (manner) => {
  test('uses every entry point with the types of Node alone, and wrong use is a type error', async () => {
    expect(await compile(packed, { names: ['entry-points.ts', 'wrong-use.ts'], manner })).toEqual(CLEAN);
  });

  test('builds an Express 5 and a Connect application with no cast', async () => {
    const names = ['application.ts', 'connect-application.ts'];
    const packages = [...new Set([...EXPRESS_5, ...CONNECT])];
    expect(await compile(packed, { names, manner, packages })).toEqual(CLEAN);
  });
});
