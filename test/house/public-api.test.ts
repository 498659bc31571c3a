import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { surfaceOf } from '../consumers/declarations.js';
import { repository } from '../consumers/packed.js';

const folder = mkdtempSync(join(tmpdir(), 'passport-oauth-app-declarations-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Declarations of the sources as they are now, whatever is in `dist`. */
function emitDeclarations(): void {
  const compiler = join(repository, 'node_modules/typescript/bin/tsc');
  const options = ['-p', repository, '--emitDeclarationOnly', '--declarationMap', 'false', '--outDir', folder];
  execFileSync(process.execPath, [compiler, ...options], { stdio: 'inherit' });
}

function describeSurface([key, target]: readonly [string, { readonly types: string }]): string {
  const { exported, named, global } = surfaceOf(join(folder, target.types.replace('./dist/', '')));
  const name = key.replace('.', manifest.name);
  const parts = [
    `==== ${name} exports ${[...exported.keys()].join(', ')}`,
    ...[...exported].map(([alias, text]) =>
      new RegExp(`^.*\\b${alias}\\b`).test(text) ? text : `as ${alias}: ${text}`,
    ),
    ...(global.length > 0 ? [`---- ${name} adds to the global scope`, ...global] : []),
    ...(named.size > 0 ? [`---- ${name} does not export, but names`, ...named.values()] : []),
  ];
  return parts.join('\n\n');
}

describe('the public API', () => {
  it('changes only together with its snapshot: run vitest with --update, and tell CHANGELOG.md', async () => {
    emitDeclarations();
    const { './package.json': _manifest, ...entryPoints } = manifest.exports;
    const surface = Object.entries(entryPoints).map(describeSurface).join('\n\n\n');
    await expect(`${surface}\n`).toMatchFileSnapshot('public-api.txt');
  });
});
