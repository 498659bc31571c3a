import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readCommandLine } from './lib/command-line.mjs';

/** The command: installs and builds what is needed, plays the scenarios, and says what came out. */
const root = fileURLToPath(new URL('../', import.meta.url));
process.chdir(root);
// A signal ends us by way of `exit`, and that ends what we have started.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const FULL = { starts: 10, rounds: 6, warmUps: 6, share: 1, quick: false, pictures: 'docs/images' };
const QUICK = { starts: 2, rounds: 2, warmUps: 2, share: 0.1, quick: true };

const TARGETS = [
  'middleware',
  'overhead',
  'overhead-redis',
  'api-loop',
  'application',
  'logins',
  'stampede',
  'morning',
  'forward',
  'memory',
  'grants',
  'imports',
  'late-save',
];
const GROWTH = ['growth-grants', 'growth-processes', 'emulator'];
const { wanted, quick, file, measures, writesDocument } = readCommandLine({ targets: TARGETS, growth: GROWTH });

if (measures) prepare();
// After the preparation: these need what it has installed and built.
const { SCENARIOS } = await import('./scenarios/index.mjs');
const { machine } = await import('./lib/machine.mjs');
const { asText } = await import('./report/format.mjs');
const { tablesOf } = await import('./report/tables.mjs');
const { missed, targetsOf } = await import('./report/targets.mjs');
const { writeDocument } = await import('./report/document.mjs');

const kept = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { scenarios: {} };
const since = performance.now();
const results = measures ? await play() : kept;
showTargets();
if (measures) console.log(`\n${Math.round((performance.now() - since) / 1000)} s`);
if (writesDocument) writeDocument(root, results);

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
    const begun = performance.now();
    const result = await SCENARIOS[name](quick ? QUICK : FULL);
    const seconds = Math.round((performance.now() - begun) / 1000);
    scenarios[name] = { date: new Date().toISOString(), seconds, ...result };
    const { starts } = result.rows?.[0] ?? {};
    const counted = starts === undefined ? '' : `, ${starts} starts`;
    console.log(`\n${name}: ${result.title} (${seconds} s${counted})`);
    for (const table of Object.values(tablesOf(name, result))) console.log(`\n${asText(table)}`);
    if (file !== undefined) writeFileSync(file, asJson({ quick, machine: machine(), scenarios }));
  }
  return { quick, machine: machine(), scenarios };
}

/** Of the scenarios that were played now, so that nothing old looks new; all of them where nothing was played. */
function showTargets() {
  const played = Object.entries(results.scenarios).filter(([name]) => !measures || wanted.includes(name));
  const scenarios = Object.fromEntries(played);
  const targets = targetsOf(scenarios);
  const rows = targets.map(({ name, wanted: limit, value, verdict }) => [name, limit, value, verdict]);
  if (rows.length > 0) console.log(`\n${asText([['target', 'wanted', 'measured (95 %)', ''], ...rows])}`);
  for (const { name, wanted: limit, value, reason = 'npm run bench:profile shows where the time goes.' } of missed(
    targets,
  ))
    console.log(`\nmissed: ${name}\nWanted ${limit}, measured ${value}. ${reason}`);
}

/** One line for each scenario, so that a change shows what was played anew. */
function asJson({ scenarios, ...others }) {
  const lines = Object.entries(scenarios).map(([name, result]) => `${JSON.stringify(name)}: ${JSON.stringify(result)}`);
  return `{"scenarios": {\n${lines.join(',\n')}\n},\n${JSON.stringify(others).slice(1)}\n`;
}
