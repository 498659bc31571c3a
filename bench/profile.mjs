import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { figure } from './report/format.mjs';

/**
 * For a maintainer: where the time of one kind of request goes, beside an application without the package.
 *
 *   npm run bench:profile -- request|projects|forward|login [cpu|heap]
 *
 * Prints the functions that take most, and leaves the profiles for a browser's developer tools, or for speedscope.
 */
const KINDS = {
  request: ['/', 'bare'],
  projects: ['/projects', 'floor'],
  forward: ['/api/projects', 'floor'],
  login: [undefined, 'floor'],
};
const REQUESTS = 20_000;
const SHOWN = 25;

const [kind = 'request', what = 'cpu'] = process.argv.slice(2);
if (!Object.hasOwn(KINDS, kind) || !['cpu', 'heap'].includes(what)) {
  console.error('npm run bench:profile -- request|projects|forward|login [cpu|heap]');
  process.exit(2);
}
execFileSync('npm', ['run', '--silent', 'build'], { stdio: 'inherit' });
const { onStage } = await import('./lib/stage.mjs');
const [path, other] = KINDS[kind];
for (const app of ['ours', other]) await onStage((stage) => profile(stage, app), { pinned: true });

async function profile(stage, app) {
  const folder = mkdtempSync(join(tmpdir(), `bench-${kind}-${app}-`));
  const interval = what === 'cpu' ? ['--cpu-prof-interval', '200'] : [];
  const server = await stage.app({ app }, [`--${what}-prof`, `--${what}-prof-dir=${folder}`, ...interval]);
  const { port } = server.ready;
  const headers = (await stage.load.ask('logIns', { port, users: 20 })).map((Cookie) => ({ Cookie }));
  if (path === undefined) await stage.load.ask('runLogIns', { port, requests: REQUESTS / 4, connections: 8 });
  else await stage.load.ask('run', { ports: [port], path, headers, requests: REQUESTS, connections: 32 });
  // It writes the profile at its end.
  await server.ask('end').catch(() => {});
  const [file] = readdirSync(folder);
  console.log(`\n${app}: ${join(folder, file)}\n${most(JSON.parse(readFileSync(join(folder, file), 'utf8')))}`);
}

/** The functions that take most by themselves: microseconds for the CPU, bytes for the heap. */
function most({ nodes, samples, timeDeltas, head }) {
  const own = new Map();
  const add = ({ functionName, url }, amount) => {
    const name = `${functionName || '(anonymous)'} ${url.split('/').slice(-3).join('/')}`;
    own.set(name, (own.get(name) ?? 0) + amount);
  };
  const walk = ({ callFrame, selfSize, children }) => {
    add(callFrame, selfSize);
    for (const child of children) walk(child);
  };
  if (head !== undefined) walk(head);
  const frames = new Map(nodes?.map(({ id, callFrame }) => [id, callFrame]));
  for (const [index, id] of (samples ?? []).entries()) add(frames.get(id), timeDeltas[index]);
  const sorted = [...own].filter(([name]) => !name.startsWith('(idle)')).sort(([, a], [, b]) => b - a);
  const all = sorted.reduce((sum, [, amount]) => sum + amount, 0);
  const line = ([name, amount]) => `${figure((amount / all) * 100).padStart(6)} %  ${name}`;
  return sorted.slice(0, SHOWN).map(line).join('\n');
}
