import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readCommandLine } from './lib/command-line.mjs';

/** The command: installs and builds what is needed, plays the scenarios, and says what came out. */
const root = fileURLToPath(new URL('../', import.meta.url));
process.chdir(root);
// A signal ends us by way of `exit`, and that ends what we have started.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const FULL = { rounds: 11, share: 1, quick: false };
const QUICK = { rounds: 3, share: 0.3, quick: true };

const NAMES = [
  'overhead',
  'overhead-redis',
  'api-loop',
  'application',
  'logins',
  'imports',
  'stampede',
  'late-save',
  'grants',
  'processes',
  'expiries',
  'soak',
  'emulator',
];
const { wanted, quick, file, measures, isComplete } = readCommandLine(NAMES);

if (measures) prepare();
// After the preparation: these need what it has installed and built.
const { SCENARIOS } = await import('./scenarios/index.mjs');
const { machine } = await import('./lib/machine.mjs');
const { asText } = await import('./report/format.mjs');
const { tableOf } = await import('./report/tables.mjs');
const { targetsOf } = await import('./report/targets.mjs');
const { writeDocument } = await import('./report/document.mjs');

const kept = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { scenarios: {} };
const results = measures ? await play() : kept;
showTargets();
if (!measures || isComplete) writeDocument(root, results);

function prepare() {
  if (!existsSync('bench/node_modules')) run('npm', ['ci', '--prefix', 'bench', '--no-audit', '--no-fund']);
  run('npm', ['run', '--silent', 'build']);
}

function run(command, args) {
  execFileSync(command, args, { stdio: 'inherit' });
}

async function play() {
  const scenarios = { ...kept.scenarios };
  for (const name of wanted) {
    const since = performance.now();
    const result = await SCENARIOS[name](quick ? QUICK : FULL);
    const seconds = Math.round((performance.now() - since) / 1000);
    scenarios[name] = { date: new Date().toISOString(), seconds, ...result };
    console.log(`\n${name}: ${result.title} (${seconds} s)\n\n${asText(tableOf(name, result))}`);
    if (file !== undefined)
      writeFileSync(file, `${JSON.stringify({ quick, machine: machine(), scenarios }, undefined, 2)}\n`);
  }
  return { quick, machine: machine(), scenarios };
}

function showTargets() {
  const rows = targetsOf(results.scenarios).map(({ name, wanted: target, value, isMet }) => [
    name,
    target,
    value,
    isMet ? 'met' : 'missed',
  ]);
  if (rows.length > 0) console.log(`\n${asText([['target', 'wanted', 'got', ''], ...rows])}`);
}
