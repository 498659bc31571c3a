import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const source = fileURLToPath(new URL('../../src/', import.meta.url));

const files = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.replaceAll('\\', '/'));

describe('the files of src', () => {
  const text = (file: string) => readFileSync(join(source, file), 'utf8');
  const code = (file: string) => text(file).replaceAll(/^\s*(?:\/\*\*|\*|\/\/).*$/gm, '');

  test('document every export', () => {
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

  test('are named in kebab-case', () => {
    const kebab = /^(?:[a-z0-9]+(?:-[a-z0-9]+)*\/)*[a-z0-9]+(?:-[a-z0-9]+)*(?:\.d)?\.ts$/;
    expect(files.filter((file) => !kebab.test(file))).toEqual([]);
  });

  test('leave nothing unfinished, and do not look away from types', () => {
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
