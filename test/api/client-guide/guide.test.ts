import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const folder = new URL('./', import.meta.url);

test('docs/api-client.md shows the files of this folder, which compile, and no other code in TypeScript', () => {
  const guide = readFileSync(new URL('../../../docs/api-client.md', folder), 'utf8');
  const shown = [...guide.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)].map(([, name, code]) => [name, code]);
  const files = readdirSync(folder).filter((name) => name !== 'guide.test.ts');
  expect(Object.fromEntries(shown)).toEqual(
    Object.fromEntries(files.map((name) => [name, readFileSync(new URL(name, folder), 'utf8')])),
  );
  expect(guide.match(/```ts/g)).toHaveLength(files.length);
});
