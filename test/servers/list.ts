import { readFile, writeFile } from 'node:fs/promises';
import type { AuthorizationServer } from './authorization-server.js';
import type { Observation } from './observation.js';

const PAGE = new URL('../../docs/figures/servers.md', import.meta.url);
const [BEGIN, END] = ['<!-- Written by npm run test:servers -->', '<!-- Until here -->'];

/** Returns the line of a server that has passed all points, for the list in docs/figures/servers.md. */
export function lineOf({ name, version, options, lostAnswer }: AuthorizationServer, seen: Observation): string {
  const date = new Date().toISOString().slice(0, 10);
  const tokens = `${seen.accessToken} access token. Refresh token: ${seen.refreshToken}. Lost answer: login ${lostAnswer}.`;
  return `- **${name}** ${version ?? ''} (${date}): ${optionsText(options)}. ${tokens[0]?.toUpperCase()}${tokens.slice(1)}`;
}

/** Writes points and list between the two marks of docs/figures/servers.md. Lines of servers that were not tried stay. @param servers Names of all servers, in order. */
export async function writeList(
  points: readonly string[],
  servers: readonly string[],
  lines: readonly string[],
): Promise<void> {
  const text = await readFile(PAGE, 'utf8');
  const [before = '', rest = ''] = text.split(BEGIN);
  const [written = '', after = ''] = rest.split(END);
  const nameOf = (line: string): string => /^- \*\*(.+?)\*\*/.exec(line)?.[1] ?? '';
  const former = written.split('\n').filter((line) => line.startsWith('- '));
  const all = new Map([...former, ...lines].map((line) => [nameOf(line), line]));
  const list = points.map((point, index) => `${index + 1}. ${point}`).join('\n');
  const sorted = servers.flatMap((name) => all.get(name) ?? []).join('\n');
  await writeFile(PAGE, `${before}${BEGIN}\n\n${list}\n\n${sorted}\n\n${END}${after}`);
}

/** The options as an application writes them, without those that are a default. */
function optionsText(options: AuthorizationServer['options']): string {
  return Object.entries(options)
    .filter(([, value]) => value !== '/oauth/token')
    .map(([name, value]) => `\`${name}: ${typeof value === 'function' ? String(value) : JSON.stringify(value)}\``)
    .join(', ')
    .replaceAll('"', "'");
}
