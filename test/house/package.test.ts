import { readFileSync, statSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withAbsoluteLinks, withLinksToUnpublished } from '../../.github/release/prepare.mjs';
import manifest from '../../package.json' with { type: 'json' };
import { type Packed, pack, repository } from '../consumers/packed.js';
import { documents } from '../consumers/snippets.js';

let packed: Packed;
beforeAll(async () => {
  packed = await pack();
});
afterAll(() => packed?.remove());

const repositoryText = (...path: string[]) => readFileSync(join(repository, ...path), 'utf8');
const { packages }: Lock = JSON.parse(repositoryText('package-lock.json'));
const text = (file: string) => readFileSync(join(packed.folder, file), 'utf8');
const ending = (pattern: RegExp) => packed.files.filter((file) => pattern.test(file));

describe('the tarball', () => {
  test('holds bundles, declarations, source maps and documents, in fewer than 150 files', () => {
    const wanted =
      /^(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md|docs\/(?:[a-z-]+\.md|telemetry\.js|(?:examples|stores)\/[a-z-]+(?:\.test)?\.(?:c?js|ts))|dist\/[a-z0-9/-]+\.(?:js|js\.map|d\.ts)|dist\/chunks\/required\.cjs)$/;
    expect(packed.files.filter((file) => !wanted.test(file))).toEqual([]);
    expect(packed.files).toEqual(expect.arrayContaining(['package.json', 'README.md', 'LICENSE', 'CHANGELOG.md']));
    expect(packed.files.length).toBeLessThan(150);
  });

  // Pictures are `<img>`: they stay in the repository, whose pages show them.
  test('has no link in its documents to a file that it lacks, once the release has prepared them', () => {
    const prepared = (document: string) =>
      document === 'README.md'
        ? withAbsoluteLinks(text(document), 'someone/project', 'v1.2.3')
        : withLinksToUnpublished(text(document), manifest, 'someone/project', 'v1.2.3');
    // The links of README.md lead to files of the repository: readme.test.ts looks for each.
    const dead = ending(/\.md$/).flatMap((document) =>
      [...prepared(document).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)]
        .map(([, target = '']) => join(dirname(document), target))
        .filter((target) => !packed.files.includes(target))
        .map((target) => `${document}: ${target}`),
    );
    expect(dead).toEqual([]);
  });

  test('leaves the pages of evidence out, which the menu of the site has under one entry', () => {
    const config = repositoryText('site/.vitepress/config.mjs');
    const [, evidence = ''] = /text: 'Evidence',([\s\S]*?)^ {2}\}/m.exec(config) ?? [];
    const pages = [...evidence.matchAll(/page\('[^']+', '([\w/-]+)'\)/g)].map(([, name]) => `docs/${name}.md`);
    const published = ['docs/security.md', 'docs/servers.md'];
    expect(pages.filter((page) => packed.files.includes(page))).toEqual(published);
    const unpublished = documents.filter((document) => !packed.files.includes(document));
    expect(pages.filter((page) => !published.includes(page)).sort()).toEqual(unpublished.sort());
  });

  test('unpacks to 1.3 MB at most, in lines to read, with source maps that name files of src and leave their text out', () => {
    const bytes = packed.files.map((file) => statSync(join(packed.folder, file)).size);
    expect(bytes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(1_300_000);
    // Node prints the line that threw an uncaught error.
    expect(ending(/\.js$/).filter((file) => /.{9999}/.test(text(file)))).toEqual([]);
    for (const map of ending(/\.map$/)) {
      const { sources, sourcesContent } = JSON.parse(text(map)) as SourceMapFile;
      for (const source of sources) expect(join(dirname(map), source)).toMatch(/^src\/(?!emulator|cli|conformance)/);
      expect(sourcesContent).toBeUndefined();
    }
  });

  test('has no hover text that cites a document which users do not have', () => {
    const cited = ending(/\.d\.ts$/).flatMap((file) =>
      [...text(file).matchAll(/[\w/-]+\.md\b/g)].map(([document]) => document),
    );
    expect(cited.filter((document) => !packed.files.includes(document))).toEqual([]);
  });

  test('holds no key, no password and no address of a private registry', () => {
    const odd = /-----BEGIN [A-Z ]*PRIVATE KEY|_authToken|registry\.[a-z]|npm_[A-Za-z0-9]{36}|AKIA[A-Z0-9]{16}/;
    expect(packed.files.filter((file) => odd.test(text(file)))).toEqual([]);
  });

  test('runs nothing when it is installed', () => {
    const { scripts } = JSON.parse(text('package.json')) as { readonly scripts: Readonly<Record<string, string>> };
    // npm never runs `prepare` for a tarball, but warns of it where the tarball comes from no registry.
    expect(Object.keys(scripts).filter((name) => /^(?:(?:pre|post)?install|prepare)$/.test(name))).toEqual([]);
    expect(packed.files).not.toContain('binding.gyp');
  });

  test('holds every file that package.json names', () => {
    const named = [...JSON.stringify([manifest.exports, manifest.bin]).matchAll(/"\.\/([^"]+\.(?:js|ts|json))"/g)];
    expect(named.map(([, file = '']) => file).filter((file) => !packed.files.includes(file))).toEqual([]);
    expect(text(manifest.bin['passport-oauth-app']).split('\n')[0]).toBe('#!/usr/bin/env node');
  });
});

describe('the main entry point', () => {
  const namesOf = (map: string) => (JSON.parse(text(map)) as SourceMapFile).sources.join('\n');

  test('loads no file of the emulator, of a database, of jobs or connected accounts, or of the checks for stores', () => {
    const loaded = new Set<string>();
    const queue = ['dist/index.js'];
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (loaded.has(file)) continue;
      loaded.add(file);
      const imports = [...text(file).matchAll(/^(?:import|export)\b[^'"]*['"](\.[^'"]+)['"]/gm)];
      queue.push(...imports.map(([, target = '']) => join(dirname(file), target)));
    }
    const maps = [...loaded].map((file) => `${file}.map`).filter((map) => packed.files.includes(map));
    const sources = maps.map(namesOf).join('\n');
    expect(sources).toMatch(/src\/strategy\/strategy\.ts/);
    expect(sources).not.toMatch(/src\/(?:emulator|redis|postgres|mysql|sqlite|sql|jobs|accounts|conformance)\//);
  });

  test('uses import.meta in the commands alone: Jest and old bundlers compile the rest to CommonJS', () => {
    const users = ending(/\.js$/).filter((file) => text(file).includes('import.meta'));
    expect(users).toEqual(['dist/chunks/emulator-command.js', 'dist/chunks/init.js']);
  });

  test('imports undici, jose and node:zlib at the place that uses them, when it first does', () => {
    const heavy = /^(?:import|export)\b[^'"]*['"](?:undici|jose|node:zlib)\b/m;
    expect(ending(/^dist\/(?:index|chunks\/main)\.js$/).filter((file) => heavy.test(text(file)))).toEqual([]);
    expect(text('dist/chunks/required.cjs')).not.toMatch(/undici|jose|zlib/);
  });

  test('loads no ES module of Node or of a package: all of them come with one CommonJS file', () => {
    const imports = text('dist/chunks/main.js').match(/^(?:import|export)\b.*\bfrom\b.*$/gm);
    expect(imports).toEqual(['import required from "./required.cjs";']);
  });

  test('is ASCII, which V8 holds and parses as one byte for each character', () => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII
    expect(text('dist/chunks/main.js')).toMatch(/^[\x00-\x7f]*$/);
  });

  test('keeps the names of its functions, and has a source map that leads to their lines', () => {
    const map = new SourceMap(JSON.parse(text('dist/chunks/main.js.map')));
    const functions = [...text('dist/chunks/main.js').matchAll(/^(?:async )?function\*? (\w+)/gm)];
    expect(functions.length).toBeGreaterThan(100);
    const lost = functions.filter(({ index, input, 1: name = '' }) => {
      const entry = map.findEntry(input.slice(0, index).split('\n').length - 1, 0);
      if (!('originalSource' in entry)) return true;
      const source = repositoryText('dist/chunks', entry.originalSource).split('\n');
      // The bundler numbers functions of one name.
      const declared = [`function ${name.replace(/\$\d+$/, '')}`, `function* ${name}`];
      return !declared.some((words) => source[entry.originalLine]?.includes(words));
    });
    expect(lost.map(([declaration]) => declaration)).toEqual([]);
  });
});

describe('package.json', () => {
  test('has a reason for each dependency in the documents, and none for others, as have those beside it', () => {
    const { dependencies, devDependencies, peerDependencies } = manifest;
    const beside = ['test/interop', 'test/package', 'bench', 'bench/peers', 'site'].map((folder) => {
      const its: Partial<typeof manifest> = JSON.parse(repositoryText(folder, 'package.json'));
      return { ...its.dependencies, ...its.devDependencies };
    });
    const pages = ['docs/dependencies.md', 'docs/figures/dependencies.md'];
    const sections = pages.flatMap((page) => repositoryText(page).split(/^## /m).slice(1));
    const listed = sections.map((section) => [...section.matchAll(/^- `([^`]+)`/gm)].map(([, name]) => name));
    expect(listed).toEqual(
      [dependencies, peerDependencies, devDependencies, ...beside].map((group) => Object.keys(group)),
    );
  });

  test('names as dependencies the very packages that the sources import', () => {
    const code = ending(/^dist\/.*\.c?js$/).map((file) => text(file).replaceAll(/^ *\*.*$/gm, ''));
    const imported = code.flatMap((bundle) =>
      [...bundle.matchAll(/(?:\bfrom ?|\bimport\(|\brequire\()["']((?:@[\w-]+\/)?[\w-]+)(?:\/[^"']*)?["']/g)].map(
        ([, name]) => name,
      ),
    );
    // Fixtures for a test runner import the runner, which is an optional peer.
    const runners = ['@playwright/test', 'vitest'];
    expect([...new Set(imported)].sort()).toEqual([...Object.keys(manifest.dependencies), ...runners].sort());
    expect(Object.keys(manifest.peerDependenciesMeta)).toEqual(expect.arrayContaining(runners));
  });

  test('allows no Node that a dependency does not', () => {
    const engines = Object.keys(manifest.dependencies).map((name) => packages[`node_modules/${name}`]?.engines?.node);
    expect(manifest.engines.node).toBe('>=20.19');
    expect(engines.filter((range) => range !== undefined && Number(/(\d+)/.exec(range)?.[1]) > 20)).toEqual([]);
  });

  test('asks for at most 30 development dependencies, which are at most 250 packages with all that they bring', () => {
    expect(Object.keys(manifest.devDependencies).length).toBeLessThanOrEqual(30);
    const here = { os: 'linux', cpu: 'x64', libc: 'glibc' } as const;
    const onLinux = Object.entries(packages).filter(
      ([place, locked]) =>
        place !== '' && (['os', 'cpu', 'libc'] as const).every((key) => locked?.[key]?.includes(here[key]) ?? true),
    );
    expect(onLinux.length).toBeLessThanOrEqual(250);
  });

  test('asks for no package that is deprecated, or that Node 20.19 cannot take: npm ci prints no warning', () => {
    const takes = (range: string) =>
      range.split('||').some((part) => {
        const [, sign, major = '0', minor = '0'] = /(\^|>=)? *(\d+)(?:\.(\d+))?/.exec(part) ?? [];
        const [oldest, least] = [Number(major), Number(minor)];
        return sign === '>=' ? oldest < 20 || (oldest === 20 && least <= 19) : oldest === 20 && least <= 19;
      });
    const odd = Object.entries(packages).filter(
      ([, locked]) => locked?.deprecated !== undefined || !takes(locked?.engines?.node ?? '>=0'),
    );
    expect(odd.map(([place]) => place)).toEqual([]);
  });

  test('is locked without the address of any registry, so that every one can serve it', () => {
    for (const folder of ['', 'test/interop', 'test/package', 'bench', 'bench/peers', 'site']) {
      expect(repositoryText(folder, 'package-lock.json')).not.toContain('"resolved"');
    }
  });

  test('is locked for every platform: npm ci refuses a lock file that lacks what it names', () => {
    const missing = Object.entries(packages).flatMap(([place, locked]) =>
      Object.keys(locked?.optionalDependencies ?? {}).filter(
        (name) => !(`${place}/node_modules/${name}` in packages) && !(`node_modules/${name}` in packages),
      ),
    );
    expect(missing).toEqual([]);
  });
});

interface SourceMapFile {
  readonly sources: readonly string[];
  readonly sourcesContent?: unknown;
}

type LockedPackage = Partial<Record<'os' | 'cpu' | 'libc', readonly string[]>> & {
  readonly engines?: { readonly node?: string };
  readonly deprecated?: string;
  readonly optionalDependencies?: object;
};

interface Lock {
  readonly packages: Readonly<Record<string, LockedPackage | undefined>>;
}
