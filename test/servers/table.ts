import { readFile, writeFile } from 'node:fs/promises';
import type { AuthorizationServer } from './authorization-server.js';
import type { Observation } from './observation.js';

const PAGE = new URL('../../docs/servers.md', import.meta.url);
const [BEGIN, END] = ['<!-- Written by npm run test:servers -->', '<!-- Until here -->'];
const HEAD = line(['server', 'version', 'options', 'access token', 'refresh token', 'lost answer', 'points', 'date']);

/** Returns a server's row of the table in docs/servers.md. */
export function rowOf(
  { name, version, options, lostAnswer }: AuthorizationServer,
  points: number,
  seen: Observation,
): string {
  const date = new Date().toISOString().slice(0, 10);
  const login = lostAnswer === 'kept' ? 'login kept' : 'login lost';
  return line([
    name,
    version ?? '',
    optionsText(options),
    seen.accessToken,
    seen.refreshToken,
    login,
    `${points}`,
    date,
  ]);
}

/** Writes points and table between the two marks of docs/servers.md. Rows of servers that were not tried stay. @param servers Names of all servers, in order. */
export async function writeTable(
  points: readonly string[],
  servers: readonly string[],
  rows: readonly string[],
): Promise<void> {
  const text = await readFile(PAGE, 'utf8');
  const [before = '', rest = ''] = text.split(BEGIN);
  const [table = '', after = ''] = rest.split(END);
  const nameOf = (row: string): string => row.slice(2).split(' | ')[0] ?? '';
  const former = table.split('\n').filter((row) => row.startsWith('| ') && row !== HEAD);
  const all = new Map([...former, ...rows].map((row) => [nameOf(row), row]));
  const list = points.map((point, index) => `${index + 1}. ${point}`).join('\n');
  const sorted = servers.flatMap((name) => all.get(name) ?? []);
  const lines = [HEAD, HEAD.replaceAll(/[^|]+/g, '---'), ...sorted].join('\n');
  await writeFile(PAGE, `${before}${BEGIN}\n\n${list}\n\n${lines}\n\n${END}${after}`);
}

/** The options as an application writes them, without those that are a default. */
function optionsText(options: AuthorizationServer['options']): string {
  return Object.entries(options)
    .filter(([, value]) => value !== '/oauth/token')
    .map(([name, value]) => `\`${name}: ${typeof value === 'function' ? String(value) : JSON.stringify(value)}\``)
    .join(', ')
    .replaceAll('"', "'");
}

function line(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}
