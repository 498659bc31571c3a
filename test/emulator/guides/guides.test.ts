import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test.each(['testing', 'emulator'])(
  'docs/%s.md shows the files of the folder of its name, which run as tests',
  (name) => {
    const folder = new URL(`./${name}/`, import.meta.url);
    const guide = readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
    const inComment = [...guide.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
    const above = [...guide.matchAll(/^`([\w.-]+)`\n\n```\w+\n([\s\S]*?)^```/gm)];
    const shown = [...inComment, ...above].map(([, file, code]) => [file, code]);
    const files = readdirSync(folder).filter((file) => file !== '__pycache__');
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(files.map((file) => [file, readFileSync(new URL(file, folder), 'utf8')])),
    );
  },
);
