import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const source = fileURLToPath(new URL('../../src/', import.meta.url));

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replaceAll('\\', '/'));

const imports = new Map(files.map((file) => [file, importsOf(file)]));

/** Paths of the files of this package that a file imports, types and re-exports included. */
function importsOf(file: string): readonly string[] {
  const text = readFileSync(join(source, file), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].map(([, target = '']) =>
    relative(source, join(source, dirname(file), target))
      .replaceAll('\\', '/')
      .replace(/\.js$/, '.ts'),
  );
}

/** A way from a file back to itself, if there is one. */
function cycleFrom(start: string): readonly string[] | undefined {
  const queue: (readonly string[])[] = [[start]];
  const seen = new Set<string>();
  for (let path = queue.shift(); path; path = queue.shift()) {
    for (const next of imports.get(path.at(-1) ?? '') ?? []) {
      if (next === start) return [...path, next];
      if (seen.has(next)) continue;
      seen.add(next);
      queue.push([...path, next]);
    }
  }
  return undefined;
}

const folder = (file: string) => (file.includes('/') ? dirname(file).split('/')[0] : '');

/** Which folders of src each folder may import from, itself aside. Files at the top belong to everyone below the strategy. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  service: [],
  api: ['service'],
  grants: ['api', 'service'],
  login: ['grants', 'api', 'service'],
  requests: ['login', 'grants', 'api', 'service'],
  middleware: ['login', 'api'],
  emulator: [],
};

/** Files at the top of src that stand above the folders, with those of the middleware: nothing else in a folder may import them. */
const TOP = new Set([
  'index.ts',
  'providers.ts',
  'strategy.ts',
  'late-engine.ts',
  'late-client.ts',
  'engine.ts',
  'authentication.ts',
  'application.ts',
]);

describe('the layers of src', () => {
  it('has no import cycles, types included', () => {
    expect(files.map(cycleFrom).filter((cycle) => cycle !== undefined)).toEqual([]);
  });

  it.each(Object.entries(BELOW))('lets %s import from the layers below it only: %j', (layer, below) => {
    const wrong = files
      .filter((file) => folder(file) === layer)
      .flatMap((file) => (imports.get(file) ?? []).map((target) => [file, target] as const))
      .filter(
        ([, target]) => folder(target) !== '' && folder(target) !== layer && !below.includes(folder(target) ?? ''),
      );
    expect(wrong).toEqual([]);
  });

  it.each(['service', 'api', 'grants', 'login', 'requests'])('keeps %s free of the strategy above it', (layer) => {
    const wrong = files
      .filter((file) => folder(file) === layer)
      .flatMap((file) => (imports.get(file) ?? []).filter((target) => TOP.has(target)));
    expect(wrong).toEqual([]);
  });

  it('keeps the emulator apart: it is an independent witness of service.md', () => {
    const wrong = files
      .filter((file) => folder(file) === 'emulator')
      .flatMap((file) => (imports.get(file) ?? []).filter((target) => folder(target) !== 'emulator'));
    expect(wrong).toEqual([]);
  });
});

describe('the files of src', () => {
  const text = (file: string) => readFileSync(join(source, file), 'utf8');
  const code = (file: string) => text(file).replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, '');

  it('are at most 250 lines long', () => {
    expect(files.filter((file) => text(file).split('\n').length > 251)).toEqual([]);
  });

  it('document every export', () => {
    const bare = files.flatMap((file) => {
      const lines = text(file).split('\n');
      return lines.flatMap((line, index) => {
        const declares =
          /^export (?:declare )?(?:abstract )?(?:async )?(?:class|function|interface|type|const) \w/.test(line);
        const before = lines[index - 1]?.trimEnd() ?? '';
        const documented = before.endsWith('*/') || /^\/\/ biome-ignore/.test(before) || isOverload(lines, index);
        return declares && !documented ? [`${file}:${index + 1}: ${line}`] : [];
      });
    });
    expect(bare).toEqual([]);
  });

  it('are named in kebab-case', () => {
    expect(files.filter((file) => !/^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*\.ts$/.test(file))).toEqual(
      [],
    );
  });

  it('leave nothing unfinished, and do not look away from types', () => {
    const odd = /\b(?:TODO|FIXME|XXX)\b|@ts-ignore|@ts-expect-error|\bas any\b|: any\b/;
    expect(files.filter((file) => odd.test(code(file)))).toEqual([]);
  });
});

/** Whether the line continues the overloads of a function that is documented above. */
function isOverload(lines: readonly string[], index: number): boolean {
  const name = /^export (?:async )?function (\w+)/.exec(lines[index] ?? '')?.[1];
  return (
    name !== undefined &&
    lines.slice(0, index).some((line) => new RegExp(`^export (?:async )?function ${name}\\b`).test(line))
  );
}
