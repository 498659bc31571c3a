import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { repository } from './packed.js';

/** A block of code in a document. */
export interface Snippet {
  /** The document, without its extension. */
  readonly document: string;
  /** Where it begins in the document. */
  readonly line: number;
  /** The heading of the second level that it stands below; empty where there is none. */
  readonly heading: string;
  readonly language: string;
  /** The name that its first line gives it as a comment (`// app.ts`); other snippets of the document import it by that. */
  readonly file: string;
  readonly text: string;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  ts: 'ts',
  typescript: 'ts',
  js: 'js',
  javascript: 'js',
  sh: 'sh',
};

/** README.md, docs/*.md and the generated pages in docs/figures. */
export const documents: readonly string[] = [
  'README.md',
  ...readdirSync(join(repository, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => `docs/${name.split(sep).join('/')}`),
];

/** All blocks of code of a document, in order, then the files of docs/examples that it links to. */
export function snippetsOf(document: string): readonly Snippet[] {
  const text = readFileSync(join(repository, document), 'utf8');
  const examples = [...text.matchAll(/\]\(examples\/([\w-]+(?:\.test)?\.(c?js|ts))\)/g)].map(
    ({ 1: file = '', 2: language = '' }) => {
      const example = readFileSync(join(repository, 'docs/examples', file), 'utf8');
      return { document: nameOf(document), line: 0, heading: '', language, file, text: example };
    },
  );
  const blocks = [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(({ 1: language = '', 2: code = '', index }) => {
    const before = text.slice(0, index);
    const line = before.split('\n').length + 1;
    const heading = [...before.matchAll(/^## (.+)$/gm)].at(-1)?.[1] ?? '';
    const named = /^\/\/ ([\w-]+(?:\.[\w-]+)*\.[cm]?[jt]s)\n/.exec(code)?.[1];
    // Settings have no comment for their name: the sentence before them says it.
    const said = language === 'ini' ? /`(\.env)`/.exec(before.slice(before.lastIndexOf('## ')))?.[1] : undefined;
    const file = named ?? said ?? `line-${line}.${EXTENSIONS[language] ?? 'txt'}`;
    return { document: nameOf(document), line, heading, language, file, text: code };
  });
  return [...blocks, ...examples];
}

function nameOf(document: string): string {
  return document.replace(/^.*\/|\.md$/g, '');
}
