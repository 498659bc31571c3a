import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { installedSize } from '../lib/installed-size.mjs';
import { interval, median, ratio } from '../lib/statistics.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const bench = fileURLToPath(new URL('../', import.meta.url));

const CONTESTANTS = [
  { name: 'passport-oauth2', specifier: 'passport-oauth2', folder: `${root}node_modules/passport-oauth2` },
  { name: 'passport-oauth2, once more', specifier: 'passport-oauth2' },
  { name: 'passport-oauth-app', specifier: `${root}dist/index.js`, folder: root.slice(0, -1), isPublished },
  {
    name: 'express-openid-connect',
    specifier: 'express-openid-connect',
    folder: `${bench}node_modules/express-openid-connect`,
  },
  { name: 'undici', specifier: 'undici' },
  { name: 'axios', specifier: 'axios', folder: `${bench}node_modules/axios` },
  {
    name: 'official SDK',
    specifier: '@crowdin/crowdin-api-client',
    folder: `${bench}node_modules/@crowdin/crowdin-api-client`,
  },
];

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
  const rows = CONTESTANTS.map(({ name, folder, isPublished: filter }, index) => ({
    name,
    ms: interval(of(index, 'ms'), median),
    cpuMs: interval(of(index, 'cpuMs'), median),
    cpuRatio: ratio(of(index, 'cpuMs'), of(0, 'cpuMs')),
    ...(folder === undefined ? {} : { installed: installedSize(folder, filter) }),
  }));
  return { title: 'Import of the main entry in a fresh process', rows, parts: partsOf(Math.ceil(times / 2)) };
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
  return runOnce(['--input-type=module', '-e', SCRIPT, specifier]);
}

const ENTRY = `${root}dist/index.js`;
const BASELINE = 'passport-oauth2';

/**
 * What the import of the package is made of, and beside it that of passport-oauth2: modules of Node, packages, its own code. Each
 * step has only that to do which those before it have not done.
 */
function partsOf(times) {
  const baseline = { specifier: BASELINE, ...task('loaded', BASELINE) };
  const own = { specifier: ENTRY, ...task('loaded', ENTRY) };
  const { dependencies } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'));
  const { resolve } = createRequire(ENTRY);
  const packages = Object.keys(dependencies)
    .map((name) => ({ name, path: resolve(name) }))
    .filter(({ path }) => own.files.includes(path))
    // First in both: the first package of CommonJS has Node's loader for it made ready.
    .sort((one, other) => Number(other.name === BASELINE) - Number(one.name === BASELINE));
  const builtins = ({ builtins: names }) => ({
    name: 'modules of Node',
    modules: names.map((name) => `node:${name}`),
  });
  const steps = {
    [BASELINE]: [builtins(baseline), { name: BASELINE, modules: [resolve(BASELINE)] }],
    'passport-oauth-app': [
      builtins(own),
      ...packages.map(({ name, path }) => ({ name, modules: [path] })),
      { name: 'own code', modules: [ENTRY] },
    ],
  };
  const medians = (samples) =>
    Object.fromEntries(Object.keys(samples[0]).map((name) => [name, median(samples.map((sample) => sample[name]))]));
  const sampled = (one) => medians(Array.from({ length: times }, one));
  return {
    steps: Object.fromEntries(
      Object.entries(steps).map(([name, list]) => [name, sampled(() => task('steps', name, list))]),
    ),
    compile: sampled(() => task('compile', ENTRY)),
  };
}

/** @param {string} name of a task of alone/import-steps.mjs */
function task(name, entry, given) {
  const flags = ['--experimental-vm-modules', '--no-warnings'];
  return runOnce([...flags, 'alone/import-steps.mjs', name, entry, ...(given ? [JSON.stringify(given)] : [])]);
}

function runOnce(args) {
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: bench, encoding: 'utf8' });
  if (stdout === '') throw new Error(`${args.at(-1)} could not be imported\n${stderr}`);
  return JSON.parse(stdout);
}

/** What `files` of package.json names, and what npm adds to it. */
function isPublished(file) {
  return /^dist\//.test(file) || /^docs\/[^/]+\.md$/.test(file) || /^(?:package\.json|[A-Z]+(?:\.md)?)$/.test(file);
}
