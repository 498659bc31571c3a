import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compile, MANNERS } from '../consumers/compilation.js';
import { type Packed, pack } from '../consumers/packed.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

const installed = '../test/interop/node_modules/@types';
/** The types of Express 4 with all that they import, each of the version that goes with it. */
const packages = [
  `@types/express=${installed}/express4`,
  `@types/mime=${installed}/mime`,
  ...['express-serve-static-core', 'send', 'serve-static'].map(
    (name) => `@types/${name}=${installed}/express4/node_modules/@types/${name}`,
  ),
  ...['body-parser', 'connect', 'express-session', 'http-errors', 'passport', 'qs', 'range-parser'].map(
    (name) => `@types/${name}`,
  ),
  'undici-types',
];

// The compiler of this repository knows node10 no more.
const manners = (Object.keys(MANNERS) as (keyof typeof MANNERS)[]).filter((manner) => manner !== 'node10');

describe.each(manners)('a strict TypeScript project with %s', (manner) => {
  test('builds an Express 4 application with no cast', async () => {
    // Linked packages shall find their neighbours in the project, not in the repository, where Express 5 is.
    const options = { preserveSymlinks: true };
    const names = ['application.ts'];
    const outcome = await compile(packed, { names, manner, packages, options });
    expect(outcome).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});
