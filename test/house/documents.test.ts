import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { READERS } from '../../src/options.js';
import { repository } from '../consumers/packed.js';
import { documents } from '../consumers/snippets.js';

const read = (file: string) => readFileSync(join(repository, file), 'utf8');
const written = [...documents, 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];

/** A document without code, comments and front matter. */
function textOf(document: string): string {
  return read(document)
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/<!--[\s\S]*?-->/g, '');
}

/** Cells of all tables of a document. */
function cellsOf(document: string): readonly string[] {
  const rows = textOf(document)
    .split('\n')
    .filter((line) => /^\s*\|.*\|\s*$/.test(line));
  // A bar inside of code belongs to the cell.
  return rows.flatMap((row) => row.replaceAll(/`[^`]*`/g, (code) => code.replaceAll('|', ' ')).split('|'));
}

/** Numbers of words of the sentences outside of tables. A heading or a point of a list begins a new one. */
function sentenceLengths(document: string): readonly number[] {
  const blocks = textOf(document)
    .replaceAll(/^\s*\|.*$/gm, '')
    .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/)
    .filter((block) => !/^\s*#/.test(block));
  const sentences = blocks.flatMap((block) => block.replaceAll(/\s+/g, ' ').split(/(?<=[.!?][)*_"]*) /));
  return sentences.map((sentence) => sentence.match(/[A-Za-z0-9`]\S*/g)?.length ?? 0).filter((words) => words > 1);
}

/** Anchors of the headings of a document, as GitHub and the site make them. */
function anchorsOf(document: string): readonly string[] {
  const headings = [...textOf(document).matchAll(/^#{2,} (.+)$/gm)].map(([, heading = '']) => heading);
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  );
}

function median(numbers: readonly number[]): number {
  return [...numbers].sort((one, other) => one - other)[numbers.length >> 1] ?? 0;
}

describe('the documents', () => {
  test.each(written)('are in short sentences, fewer than 16 words in the median: %s', (document) => {
    expect(median(sentenceLengths(document))).toBeLessThan(16);
  });

  test.each(written)('have no cell of a table with more than 200 characters: %s', (document) => {
    expect(cellsOf(document).filter((cell) => cell.trim().length > 200)).toEqual([]);
  });

  test.each(documents)('show no async handler, whose rejection ends the process under Express 4: %s', (document) => {
    expect(read(document).match(/async \(_?req\b/g)).toBeNull();
  });

  test('are all reached from README.md in two steps', () => {
    const linksOf = (document: string) =>
      [...read(document).matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, target = '']) =>
        join(dirname(document), target),
      );
    const near = linksOf('README.md');
    const far = near.filter((file) => file.endsWith('.md')).flatMap(linksOf);
    expect(documents.filter((document) => ![...near, ...far, 'README.md'].includes(document))).toEqual([]);
  });

  test('link to headings that there are', () => {
    const dead = written.flatMap((document) =>
      [...textOf(document).matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)]
        .filter(([, target = '', anchor = '']) => {
          const page = target === '' ? document : join(dirname(document), target);
          return page.endsWith('.md') && !anchorsOf(page).includes(anchor);
        })
        .map(([link]) => `${document}: ${link}`),
    );
    expect(dead).toEqual([]);
  });

  test('are all in the menu of the site', () => {
    const menu = [...read('site/.vitepress/config.mjs').matchAll(/page\('[^']+', '([\w/-]+)'\)/g)];
    const pages = documents.filter((document) => document.startsWith('docs/'));
    expect(menu.map(([, name]) => `docs/${name}.md`).sort()).toEqual(pages.sort());
  });

  test.each(documents)('have no semicolon in a sequence diagram, where Mermaid ends a statement: %s', (document) => {
    const diagrams = [...read(document).matchAll(/^```mermaid\n(sequenceDiagram[\s\S]*?)^```$/gm)];
    expect(diagrams.filter(([, text = '']) => text.includes(';'))).toEqual([]);
  });

  test('begin with README.md, in at most 900 words', () => {
    expect(read('README.md').trim().split(/\s+/).length).toBeLessThanOrEqual(900);
  });

  test('show on the first page of the site what README.md installs and runs', () => {
    const shown = [...read('site/pages/index.md').matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);
    expect(shown).toHaveLength(2);
    for (const code of shown) expect(read('README.md')).toContain(code.trim());
  });

  test('name the two commands of a clone in README.md', () => {
    expect(read('README.md')).toContain('`npm ci && npm start`');
    expect(read('README.md')).toContain('`npm ci && npm test`');
  });

  test('name the types that a TypeScript project needs', () => {
    for (const document of ['README.md', 'docs/tutorial.md']) {
      const types = /npm install -D [^`]*@types\/node @types\/express @types\/express-session @types\/passport/;
      expect(read(document)).toMatch(types);
    }
  });
});

/** Words that mark a sentence to rewrite: idiomatic English rarely needs them. */
const MARKED =
  /\b(?:of (?:its|their) own|by another word|lies? beside|meets? a token|takes? a provider|ha(?:s|ve) ended|whom|nobody|somebody|tells?|told|meanwhile|any ?more|as well|mend(?:s|ed)?|all else)\b/gi;

function inSource(name: string): string {
  return `src/${name}`;
}

/** The comments and texts of a folder or file of the source. */
function proseIn(name: string): string {
  const files = name.endsWith('.ts')
    ? [name]
    : readdirSync(join(repository, name), { recursive: true, encoding: 'utf8' })
        .filter((file) => file.endsWith('.ts'))
        .map((file) => join(name, file));
  return files
    .flatMap((file) => read(file).match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*|'[^'\n]* [^'\n]*'/g) ?? [])
    .join('\n');
}

describe('English that reads as translated', () => {
  test.each(written)('is not in %s', (document) => {
    const words = textOf(document).replaceAll(/`[^`]*`/g, '');
    expect(words.match(MARKED) ?? []).toEqual([]);
  });

  test.each(readdirSync(join(repository, 'src')).map(inSource))('is not in the comments and messages of %s', (name) => {
    expect(proseIn(name).match(MARKED) ?? []).toEqual([]);
  });
});

describe('docs/options.md', () => {
  const strategy = read('docs/options.md').split('## Middleware')[0] ?? '';
  const sections = new Map(
    strategy
      .split(/^### `/m)
      .slice(1)
      .map((section) => [section.split('`')[0] ?? '', section] as const),
  );

  test('has exactly the options of a strategy', () => {
    const declared = /export interface StrategyOptions[^{]*\{([\s\S]*?)^\}/m.exec(read('src/options.ts'))?.[1] ?? '';
    const options = [...declared.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, name]) => name);
    expect([...sections.keys()].filter((name) => name !== 'verify').sort()).toEqual(options.sort());
  });

  test('begins with a table of the options, made of how they are read', () => {
    const shown = (value: unknown): string => {
      const text = typeof value === 'string' ? `'${value}'` : inspect(value);
      return value === undefined || typeof value === 'function' || /^(?:\[\]|\{\})$/.test(text) ? '–' : `\`${text}\``;
    };
    const rows = Object.entries(READERS).map(([name, reader]) => {
      const fallback = typeof reader === 'function' ? 'required' : shown(reader.fallback);
      return `| [\`${name}\`](#${name.toLowerCase()}) | ${fallback} |`;
    });
    expect(strategy).toContain(['| Option | Default |', '|---|---|', ...rows].join('\n'));
  });

  test('has a default and an example for each option that is not required', () => {
    for (const [name, text] of sections) {
      if (name === 'verify') continue;
      expect(text, name).toMatch(/\brequired\. |\. Default: /);
      expect(text, name).toMatch(/^Example: `|^```ts$/m);
    }
  });
});
