import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

/** The command: installs and builds what is needed, plays the scenarios, and says what came out. */
const root = fileURLToPath(new URL('../', import.meta.url));
process.chdir(root);
// A signal ends us by way of `exit`, and that ends what we have started.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const USAGE = `npm run bench -- [options]

  --growth      the scenarios of growth instead of the targets (npm run bench:growth)
  --only NAME   one scenario; may be given several times
  --quick       few and short rounds: shows what is broken, not how fast anything is
  --json FILE   keeps the results there; those of other scenarios in the file stay (default: bench/results.json, not with --quick)
  --document    measures nothing; writes docs/performance.md anew from the file
`;
const FULL = { starts: 10, rounds: 6, warmUps: 6, share: 1, quick: false };
const QUICK = { starts: 2, rounds: 2, warmUps: 2, share: 0.1, quick: true };

const options = readOptions();
const { quick = false, document = false } = options;
if (!document) {
  if (!existsSync('bench/node_modules')) run('npm', ['ci', '--prefix', 'bench', '--no-audit', '--no-fund']);
  run('npm', ['run', '--silent', 'build']);
}
// After the preparation: these need what it has installed and built.
const { GROWTH, TARGETS } = await import('./scenarios/index.mjs');
const { machine } = await import('./lib/machine.mjs');
const { asText } = await import('./report/format.mjs');
const { tablesOf } = await import('./report/tables.mjs');
const { targetsOf } = await import('./report/targets.mjs');
const { writeDocument } = await import('./report/document.mjs');

const scenarios = { ...TARGETS, ...GROWTH };
const wanted = options.only ?? Object.keys(options.growth ? GROWTH : TARGETS);
const unknown = wanted.find((name) => !Object.hasOwn(scenarios, name));
if (unknown !== undefined) end(`There is no ${unknown}. Scenarios: ${Object.keys(scenarios).join(', ')}`);
const file = options.json ?? (quick ? undefined : 'bench/results.json');
const kept = file !== undefined && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { scenarios: {} };
const results = document ? kept : await play();
showTargets();
if (!quick) writeDocument(root, results);

function readOptions() {
  const flag = { type: 'boolean' };
  const only = { type: 'string', multiple: true };
  try {
    const known = { growth: flag, only, quick: flag, json: { type: 'string' }, document: flag, help: flag };
    const { values } = parseArgs({ options: known });
    return values.help ? end(USAGE, 0) : values;
  } catch (error) {
    return end(`${error.message}\n\n${USAGE}`);
  }
}

function end(text, code = 2) {
  console.error(text);
  process.exit(code);
}

function run(command, args) {
  execFileSync(command, args, { stdio: 'inherit' });
}

async function play() {
  const played = { ...kept.scenarios };
  for (const name of wanted) {
    const begun = performance.now();
    const result = await scenarios[name](quick ? QUICK : FULL);
    const seconds = Math.round((performance.now() - begun) / 1000);
    played[name] = { date: new Date().toISOString(), seconds, ...result };
    console.log(`\n${name}: ${result.title} (${seconds} s)`);
    for (const table of Object.values(tablesOf(name, result))) console.log(`\n${asText(table)}`);
    if (file !== undefined) writeFileSync(file, asJson({ quick, machine: machine(), scenarios: played }));
  }
  return { quick, machine: machine(), scenarios: played };
}

/** Of the scenarios that were played now, so that nothing old looks new; all of them where nothing was played. */
function showTargets() {
  const shown = Object.entries(results.scenarios).filter(([name]) => document || wanted.includes(name));
  const targets = targetsOf(Object.fromEntries(shown));
  const rows = targets.map(({ name, wanted: limit, value, verdict }) => [name, limit, value, verdict]);
  if (rows.length > 0) console.log(`\n${asText([['target', 'wanted', 'measured (95 %)', ''], ...rows])}`);
  for (const { name, reason = 'npm run bench:profile shows where the time goes.' } of targets.filter(
    ({ verdict }) => verdict === 'missed',
  ))
    console.log(`\nmissed: ${name}. ${reason}`);
}

/** One line for each scenario, so that a change shows what was played anew. */
function asJson({ scenarios: played, ...others }) {
  const lines = Object.entries(played).map(([name, result]) => `${JSON.stringify(name)}: ${JSON.stringify(result)}`);
  return `{"scenarios": {\n${lines.join(',\n')}\n},\n${JSON.stringify(others).slice(1)}\n`;
}
