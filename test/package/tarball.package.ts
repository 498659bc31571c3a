import { readFileSync } from 'node:fs';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack } from '../consumers/packed.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

describe('the tarball', () => {
  test('reads as a whole what npm calls a good package: publint has nothing to say, not even suggestions', async () => {
    const { messages } = await publint({ pkgDir: packed.folder, pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, manifest, { color: false }))).toEqual([]);
  });

  test('has the right types for every module resolution, node10 included', async () => {
    const tarball = new Uint8Array(readFileSync(packed.tarball));
    const analysis = await checkPackage(createPackageFromTarballData(tarball));
    if (analysis.types === false) throw new Error('no types found');
    // The ESM-only profile: `require()` gets the module itself on every Node that package.json allows.
    const heeded = analysis.problems.filter(
      (problem) => !('resolutionKind' in problem) || problem.resolutionKind !== 'node16-cjs',
    );
    expect(heeded).toEqual([]);
    expect(Object.keys(analysis.entrypoints)).toHaveLength(Object.keys(manifest.exports).length);
  });
});
