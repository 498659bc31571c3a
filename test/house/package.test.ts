import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack, repository } from '../consumers/packed.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

const text = (file: string) => readFileSync(join(packed.folder, file), 'utf8');
const ending = (pattern: RegExp) => packed.files.filter((file) => pattern.test(file));

describe('the tarball', () => {
  it('holds the sources, what they compile to, the documents, and nothing else', () => {
    const wanted =
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|docs\/[a-z-]+\.md|src\/[a-z0-9/-]+\.ts|dist\/[a-z0-9/-]+\.(?:js|js\.map|d\.ts|d\.ts\.map))$/;
    expect(packed.files.filter((file) => !wanted.test(file))).toEqual([]);
    expect(packed.files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']));
  });

  it('holds what each source compiles to, and nothing that has no source any more', () => {
    const compiled = ending(/^src\//)
      .map((file) => file.replace(/^src\/(.*)\.ts$/, 'dist/$1'))
      .flatMap((file) => ['.js', '.js.map', '.d.ts', '.d.ts.map'].map((extension) => file + extension));
    expect(ending(/^dist\//)).toEqual(compiled.sort());
  });

  it('leads from each declaration and each line of code to a source that is in it', () => {
    const lost = ending(/\.map$/).flatMap((file) => {
      const { sources } = JSON.parse(text(file)) as { readonly sources: readonly string[] };
      return sources.map((source) => join(dirname(file), source)).filter((source) => !packed.files.includes(source));
    });
    expect(lost).toEqual([]);
  });

  it('holds no key, no password and no address of a private registry', () => {
    const odd = /-----BEGIN [A-Z ]*PRIVATE KEY|_authToken|registry\.[a-z]|npm_[A-Za-z0-9]{36}|AKIA[A-Z0-9]{16}/;
    expect(packed.files.filter((file) => odd.test(text(file)))).toEqual([]);
  });

  it('runs nothing when it is installed', () => {
    const { scripts } = JSON.parse(text('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
    // npm never runs `prepare` for a tarball, but warns of it where the tarball comes from no registry.
    expect(Object.keys(scripts).filter((name) => /^(?:(?:pre|post)?install|prepare)$/.test(name))).toEqual([]);
    expect(packed.files).not.toContain('binding.gyp');
  });

  it('holds every file that package.json names', () => {
    const named = [...JSON.stringify([manifest.exports, manifest.bin]).matchAll(/"\.\/([^"]+\.(?:js|ts|json))"/g)];
    expect(named.map(([, file = '']) => file).filter((file) => !packed.files.includes(file))).toEqual([]);
    expect(text(manifest.bin['passport-oauth-app']).split('\n')[0]).toBe('#!/usr/bin/env node');
  });

  it('reads as a whole what npm calls a good package: publint has nothing to say, not even suggestions', async () => {
    const { messages } = await publint({ pkgDir: packed.folder, pack: false, strict: true });
    expect(messages.map((message) => formatMessage(message, manifest, { color: false }))).toEqual([]);
  });

  it('has the right types for every way of resolution that knows ES modules', async () => {
    const tarball = new Uint8Array(readFileSync(packed.tarball));
    const analysis = await checkPackage(createPackageFromTarballData(tarball));
    if (analysis.types === false) throw new Error('no types found');
    // The ESM-only profile: `require()` gets the module itself on every Node that package.json allows.
    const heeded = analysis.problems.filter(
      (problem) => !('resolutionKind' in problem) || !['node10', 'node16-cjs'].includes(problem.resolutionKind),
    );
    expect(heeded).toEqual([]);
    expect(Object.keys(analysis.entrypoints)).toHaveLength(Object.keys(manifest.exports).length);
  });
});

describe('the main entry point', () => {
  it('loads neither the emulator, nor the stores in Redis and PostgreSQL, nor the checks for stores', () => {
    const loaded = new Set<string>();
    const queue = ['dist/index.js'];
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (loaded.has(file)) continue;
      loaded.add(file);
      const imports = [...text(file).matchAll(/^(?:import|export)\b[^'"]*['"](\.[^'"]+)['"]/gm)];
      queue.push(...imports.map(([, target = '']) => join(dirname(file), target)));
    }
    expect(loaded.size).toBeGreaterThan(20);
    expect([...loaded].filter((file) => /emulator|redis|postgres|conformance/.test(file))).toEqual([]);
  });
});

describe('package.json', () => {
  it('has a reason for each dependency in docs/dependencies.md, and none for others', () => {
    const { dependencies, devDependencies, peerDependencies } = manifest;
    const sections = readFileSync(join(repository, 'docs/dependencies.md'), 'utf8').split(/^## /m).slice(1);
    const listed = sections.map((section) => [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, name]) => name));
    expect(listed).toEqual([dependencies, peerDependencies, devDependencies].map((group) => Object.keys(group)));
  });

  it('names as dependencies the very packages that the sources import', () => {
    const code = ending(/^src\//).map((file) => text(file).replaceAll(/^ *\*.*$/gm, ''));
    const imported = code.flatMap((source) =>
      [...source.matchAll(/(?:\bfrom |\bimport\()'((?:@[\w-]+\/)?[\w-]+)(?:\/[^']*)?'/g)].map(([, name]) => name),
    );
    // The fixtures of the emulator import the test runner that they are for.
    const runners = ['@playwright/test', 'vitest'];
    expect([...new Set(imported)].sort()).toEqual([...Object.keys(manifest.dependencies), ...runners].sort());
  });

  it('allows no Node that a dependency does not', () => {
    const lock = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as Lock;
    const engines = Object.keys(manifest.dependencies).map(
      (name) => lock.packages[`node_modules/${name}`]?.engines?.node,
    );
    expect(manifest.engines.node).toBe('>=20.19');
    expect(engines.filter((range) => range !== undefined && Number(/(\d+)/.exec(range)?.[1]) > 20)).toEqual([]);
  });

  it('is locked without the address of any registry, so that every one can serve it', () => {
    expect(readFileSync(join(repository, 'package-lock.json'), 'utf8')).not.toContain('"resolved"');
  });

  it('is locked for every platform: npm ci refuses a lock file that lacks what it names', () => {
    const { packages } = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8')) as Lock;
    const missing = Object.entries(packages).flatMap(([place, locked]) =>
      Object.keys(locked?.optionalDependencies ?? {}).filter(
        (name) => !(`${place}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
      ),
    );
    expect(missing).toEqual([]);
  });
});

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage | undefined>>;
}

interface LockedPackage {
  readonly engines?: { readonly node?: string };
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}
