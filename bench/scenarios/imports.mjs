import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { interval, median, ratio } from '../lib/statistics.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const bench = `${root}/bench`;

const CONTESTANTS = [
  { name: 'passport-oauth2', specifier: 'passport-oauth2', folder: `${root}/node_modules/passport-oauth2` },
  { name: 'passport-oauth2, once more', specifier: 'passport-oauth2' },
  { name: 'passport-oauth-app', specifier: `${root}/dist/index.js`, folder: root },
  ...['express-openid-connect', 'undici', 'axios', '@crowdin/crowdin-api-client'].map((specifier) => ({
    name: specifier.replace(/^@.*/, 'official SDK'),
    specifier,
    folder: specifier === 'undici' ? undefined : `${bench}/node_modules/${specifier}`,
  })),
];

/** What `files` of our package.json names, and what npm adds to it. */
const PUBLISHED = /^dist\/|^docs\/[^/]+\.md$|^(?:package\.json|[A-Z]+(?:\.md)?)$/;

/** The main entry imported in a fresh process: what comes on top of Node itself. And what is installed for it. */
export function imports({ quick }) {
  const times = quick ? 9 : 21;
  const samples = CONTESTANTS.map(() => []);
  for (let time = 0; time <= times; time += 1) {
    for (const [index, { specifier }] of CONTESTANTS.entries()) {
      const sample = importOnce(specifier);
      // The first one filled the file cache.
      if (time > 0) samples[index].push(sample);
    }
  }
  const of = (index, figure) => samples[index].map((sample) => sample[figure]);
  const rows = CONTESTANTS.map(({ name, folder }, index) => ({
    name,
    ms: interval(of(index, 'ms'), median),
    cpuMs: interval(of(index, 'cpuMs'), median),
    cpuRatio: ratio(of(index, 'cpuMs'), of(0, 'cpuMs')),
    ...(folder === undefined ? {} : { installed: installedSize(folder) }),
  }));
  return { title: 'Import of the main entry in a fresh process', rows };
}

const SCRIPT = `
const cpu = process.cpuUsage();
const start = performance.now();
await import(process.argv[1]);
const ms = performance.now() - start;
const { user, system } = process.cpuUsage(cpu);
process.stdout.write(JSON.stringify({ ms, cpuMs: (user + system) / 1000 }));
process.exit();
`;

function importOnce(specifier) {
  const args = ['--input-type=module', '-e', SCRIPT, specifier];
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: bench, encoding: 'utf8' });
  if (stdout === '') throw new Error(`${specifier} could not be imported\n${stderr}`);
  return JSON.parse(stdout);
}

/** What a package and all that it depends on take on disk. Peers are not counted: the application has them anyway. */
function installedSize(folder, seen = new Map()) {
  seen.set(folder, sizeOf(folder, folder));
  const { dependencies = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  for (const name of Object.keys(dependencies)) {
    const dependency = find(name, folder);
    if (!seen.has(dependency)) installedSize(dependency, seen);
  }
  return { packages: seen.size, bytes: [...seen.values()].reduce((sum, size) => sum + size, 0) };
}

/** As Node looks for it: in the nearest `node_modules` upwards. */
function find(name, from) {
  const candidate = join(from, 'node_modules', name);
  if (existsSync(candidate)) return candidate;
  if (dirname(from) === from) throw new Error(`${name} is not installed`);
  return find(name, dirname(from));
}

function sizeOf(folder, top) {
  let bytes = 0;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.name === 'node_modules') continue;
    if (entry.isDirectory()) bytes += sizeOf(path, top);
    else if (top !== root || PUBLISHED.test(relative(root, path))) bytes += lstatSync(path).size;
  }
  return bytes;
}
