import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../docs/figures/security.md', import.meta.url));

/** What stands in docs/figures/security.md between `<!-- name -->` and `<!-- /name -->`. */
export function readMarked(name: string): string {
  const page = readFileSync(PAGE, 'utf8');
  const [start, end] = bounds(page, name);
  return page.slice(start, end);
}

/** Puts a text there. */
export function writeMarked(name: string, text: string): void {
  const page = readFileSync(PAGE, 'utf8');
  const [start, end] = bounds(page, name);
  writeFileSync(PAGE, `${page.slice(0, start)}${text}${page.slice(end)}`);
}

function bounds(page: string, name: string): [number, number] {
  const open = `<!-- ${name} -->\n`;
  const start = page.indexOf(open) + open.length;
  const end = page.indexOf(`\n<!-- /${name} -->`);
  if (start < open.length || end < start) throw new Error(`docs/figures/security.md has no part ${name}`);
  return [start, end];
}
