import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { interval, median, ratio } from '../lib/statistics.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, '');
const CONTESTANTS = [
  { name: 'passport-oauth2', specifier: 'passport-oauth2' },
  { name: 'passport-oauth2, once more', specifier: 'passport-oauth2' },
  { name: 'passport-oauth-app', specifier: `${root}/dist/index.js` },
  ...['express-openid-connect', 'undici', 'axios'].map((name) => ({ name, specifier: name })),
  { name: 'official SDK', specifier: '@crowdin/crowdin-api-client' },
];

/** The main entry imported in a fresh process: what comes on top of Node itself. */
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
  const rows = CONTESTANTS.map(({ name }, index) => ({
    name,
    ms: interval(of(index, 'ms'), median),
    cpuMs: interval(of(index, 'cpuMs'), median),
    cpuRatio: ratio(of(index, 'cpuMs'), of(0, 'cpuMs')),
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
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: `${root}/bench`, encoding: 'utf8' });
  if (stdout === '') throw new Error(`${specifier} could not be imported\n${stderr}`);
  return JSON.parse(stdout);
}
