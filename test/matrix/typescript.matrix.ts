import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONNECT, compile, EXPRESS_5 } from '../consumers/compilation.js';
import { type Installation, install } from './installation.js';

let installation: Installation;
beforeAll(async () => {
  installation = await install(['typescript']);
});
afterAll(() => installation?.remove());

const names = ['entry-points.ts', 'wrong-use.ts', 'application.ts', 'connect-application.ts'];
const packages = [...new Set([...EXPRESS_5, ...CONNECT])];

describe('an older compiler', () => {
  // The repository's own compiler does all three: see test/consumers. `require()` of ES modules is known since 5.8.
  it.each([
    ['5.5', 'nodenext, ESM'],
    ['5.9', 'nodenext, CommonJS'],
    ['6.0', 'bundler resolution'],
  ] as const)('finds nothing wrong with the declarations: TypeScript %s, %s', async (version, manner) => {
    const compiler = installation.compiler(version);
    const outcome = await compile(installation.packed, { names, manner, packages, compiler });
    expect(outcome).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });
});
