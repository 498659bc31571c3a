// Builds the site: the reference from the sources, the diagrams, llms.txt, then the pages. A dead link fails it. `npm run docs:build` runs it.
//
// `node build.mjs serve` serves the pages instead, as they are at this moment.
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build, createServer } from 'vitepress';
import { sidebar } from './.vitepress/config.mjs';
import { drawDiagrams } from './diagrams.mjs';
import { writeLlmsText } from './llms.mjs';
import { writeReference } from './reference.mjs';
import { checkSearch } from './search.mjs';

const here = import.meta.dirname;
const pages = join(here, '.pages');

// Vite resolves what a page imports from where the page lies, so all pages are collected below this folder.
rmSync(pages, { recursive: true, force: true });
cpSync(join(here, 'pages'), pages, { recursive: true });
for (const name of ['docs', 'README.md', 'CHANGELOG.md', 'CODE_OF_CONDUCT.md', 'CONTRIBUTING.md', 'SECURITY.md']) {
  cpSync(join(here, '..', name), join(pages, name), { recursive: true });
}
// Files to copy are served as they are, and the first page shows README's picture.
// Not those of docs/stores: a folder of that name would hide the page of that name.
cpSync(join(pages, 'docs/examples'), join(pages, 'public/docs/examples'), { recursive: true });
cpSync(join(pages, 'docs/images/burst.png'), join(pages, 'public/burst.png'));
await writeReference(join(pages, 'reference'));
await drawDiagrams(pages, join(pages, 'public/diagrams'));

if (process.argv[2] === 'serve') {
  const server = await createServer(here);
  await server.listen();
  server.printUrls();
} else {
  await build(here);
  writeLlmsText(pages, sidebar, join(here, 'dist'));
  await checkSearch(join(here, 'dist'));
}
