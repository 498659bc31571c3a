import { readFile, writeFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { Figures } from './trial.js';

const PAGE = new URL('../../docs/figures/chaos.md', import.meta.url);
const [BEGIN, END] = ['<!-- Written by npm run chaos -->', '<!-- Until here -->'];
const HEAD = [
  ...['store', 'harm', 'requests', 'not answered with 200', 'logins lost', 'logins lost for a reason with a name'],
  ...['token requests / rotations needed', 'slowest request'],
];

/** Returns a row of the table in docs/figures/chaos.md. */
export function rowOf(store: string, harm: string, figures: Figures): string {
  const { requests, unavailable, loginsLost, lostByName, tokenRequests, rotationsNeeded, slowestMs } = figures;
  const named = Object.entries(lostByName).flatMap(([name, count]) => (count > 0 ? [`${count} \`${name}\``] : []));
  const slowest = `${(slowestMs / 1000).toFixed(1)} s`;
  return line([
    store,
    harm,
    requests,
    unavailable,
    loginsLost,
    named.join(', ') || 0,
    `${tokenRequests} / ${rotationsNeeded}`,
    slowest,
  ]);
}

/** Writes the table between the two marks of docs/figures/chaos.md. Rows of trials that were not made stay. */
export async function writeTable(rows: readonly string[]): Promise<void> {
  const text = await readFile(PAGE, 'utf8');
  const [before = '', rest = ''] = text.split(BEGIN);
  const [table = '', after = ''] = rest.split(END);
  const trialOf = (row: string): string => row.split('|').slice(1, 3).join('|');
  const former = table.split('\n').filter((row) => row.startsWith('| ') && !row.startsWith('| store |'));
  const all = new Map([...former, ...rows].map((row) => [trialOf(row), row]));
  const measured = `Measured with \`npm run chaos\` on Node ${process.versions.node}, ${cpus().length} cores.`;
  const rule = `|---|---|${'---:|'.repeat(HEAD.length - 2)}`;
  const lines = [line(HEAD), rule, ...all.values()].join('\n');
  await writeFile(PAGE, `${before}${BEGIN}\n${measured}\n\n${lines}\n${END}${after}`);
}

function line(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}
