import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

test.each(['testing', 'emulator'])(
  'docs/%s.md shows the files of the folder of its name, which run as tests, or names them',
  (name) => {
    const folder = new URL(`./${name}/`, import.meta.url);
    const guide = readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
    const inComment = [...guide.matchAll(/```ts\n\/\/ (\S+)\n([\s\S]*?)```/g)];
    const above = [...guide.matchAll(/^`([\w.-]+)`\n\n```\w+\n([\s\S]*?)^```/gm)];
    const shown = [...inComment, ...above].map(([, file, code]) => [file, code]);
    const files = readdirSync(folder).filter((file) => file !== '__pycache__');
    const named = files.filter((file) => guide.includes(`(\`${file}\``) || guide.includes(`, \`${file}\``));
    expect([...shown.map(([file]) => file), ...named].sort()).toEqual(files.sort());
    expect(Object.fromEntries(shown)).toEqual(
      Object.fromEntries(shown.map(([file = '']) => [file, readFileSync(new URL(file, folder), 'utf8')])),
    );
  },
);
