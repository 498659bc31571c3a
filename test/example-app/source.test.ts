import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };

const root = fileURLToPath(new URL('../../example-app/', import.meta.url));
const files = ['src', 'minimal', 'public'].flatMap((folder) =>
  readdirSync(`${root}${folder}`, { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|js|css)$/.test(file))
    .map((file) => `${folder}/${file}`),
);
const text = (file: string) => readFileSync(root + file, 'utf8');
const imports = (file: string) => [...text(file).matchAll(/from '([^']+)'/g)].map(([, source = '']) => source);

describe('the source of the example', () => {
  it('takes the package by its public entry points only', () => {
    const entries = new Set(Object.keys(manifest.exports).map((path) => path.replace('.', manifest.name)));
    const used = files.flatMap(imports).filter((source) => source.startsWith(manifest.name));
    expect(used.length).toBeGreaterThan(10);
    expect(used.filter((source) => !entries.has(source))).toEqual([]);
    expect(files.flatMap(imports).filter((source) => /\.\.\/(src|dist)\//.test(source))).toEqual([]);
  });

  it('has no import cycle', () => {
    const targets = (file: string) =>
      imports(file)
        .filter((source) => source.startsWith('.'))
        .map((source) => new URL(source, `file:///${file}`).pathname.slice(1).replace(/\.js$/, '.ts'));
    const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
      targets(from).some((next) => {
        if (next === to) return true;
        if (seen.has(next) || !files.includes(next)) return false;
        seen.add(next);
        return reaches(next, to, seen);
      });
    const sources = files.filter((file) => file.startsWith('src/'));
    expect(sources.filter((file) => reaches(file, file))).toEqual([]);
  });
});
