import { readFile, writeFile } from 'node:fs/promises';
import type { Combination } from './combinations.js';

const document = new URL('../../docs/figures/compatibility.md', import.meta.url);
const begin = '<!-- Written by npm run test:matrix -->';
const end = '<!-- Until here -->';

/** Writes the combinations, and whether they work, between the two marks of docs/figures/compatibility.md. */
export async function writeTable(
  combinations: readonly Combination[],
  isWorking: (combination: Combination) => boolean,
): Promise<void> {
  const rows = combinations.map((one) => {
    const { node, framework, passport, session, modules } = one;
    return row([node, framework, passport, session, modules, isWorking(one) ? 'works' : 'fails']);
  });
  const head = [
    row(['runtime', 'framework', 'Passport', 'session', 'loaded by', 'outcome']),
    '|---|---|---|---|---|---|',
  ];
  const text = await readFile(document, 'utf8');
  const [before = '', rest = ''] = text.split(begin);
  const [, after = ''] = rest.split(end);
  await writeFile(document, `${before}${begin}\n\n${[...head, ...rows].join('\n')}\n\n${end}${after}`);
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
