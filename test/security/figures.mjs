// Measures what docs/figures/security.md states, and writes it there: a million fuzz cases, the fault matrix, floods of 100,000 requests.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const PAGE = fileURLToPath(new URL('../../docs/figures/security.md', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'figures-'));
const SECURITY_FIGURES = join(directory, 'figures.jsonl');
const env = {
  FUZZ_RUNS: '1000000',
  FLOOD_REQUESTS: '100000',
  ...process.env,
  SECURITY_FIGURES,
  UPDATE_SECURITY_TABLE: '1',
};

function seconds(...paths) {
  const since = performance.now();
  const vitest = join('node_modules', 'vitest', 'vitest.mjs');
  const run = spawnSync(process.execPath, [vitest, 'run', ...paths, '--testTimeout=3600000'], {
    env,
    stdio: 'inherit',
  });
  if (run.status !== 0)
    throw new Error(`${paths.join(', ')}: there are findings, see above; docs/figures/security.md is as it was`);
  return Math.round((performance.now() - since) / 1000);
}

if (process.argv.includes('--table')) {
  seconds('test/security/threats-table.test.ts');
  process.exit();
}

const number = (value) => value.toLocaleString('en');
const fuzzSeconds = seconds('test/fuzz');
const faultSeconds = seconds('test/faults');
seconds('test/security', 'test/perf');
const figures = readFileSync(SECURITY_FIGURES, 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));
rmSync(directory, { recursive: true });

const fuzz = figures.filter(({ kind }) => kind === 'fuzz').sort((one, other) => other.cases - one.cases);
const [faults] = figures.filter(({ kind }) => kind === 'faults');
const floods = figures.filter(({ kind }) => kind === 'flood').sort((one, other) => (one.what < other.what ? -1 : 1));
const cases = fuzz.reduce((total, one) => total + one.cases, 0);

const text = `Measured with \`npm run security:figures\` on Node ${process.versions.node}, ${cpus().length} cores.

**Fuzzing**: ${number(cases)} cases in ${fuzzSeconds} s, no finding left.

| what is fuzzed | cases |
|---|---:|
${fuzz.map(({ what, cases: count }) => `| ${what} | ${number(count)} |`).join('\n')}

**Faults**: ${faults.rows} faults at four moments each, ${faults.cells} cells in ${faultSeconds} s. Over all of them ${number(faults.secrets)} secrets were looked for in
${number(faults.outputs)} outputs (answers, errors, events, console, warnings, stores, inspected objects); none was found.

**Floods**, over HTTP, heap after garbage collection:

| flood of | requests | heap changed by | entries in the session store |
|---|---:|---:|---:|
${floods.map(({ what, requests, growthKiB, stored }) => `| ${what} | ${number(requests)} | ${number(growthKiB)} KiB | ${stored} |`).join('\n')}`;

const page = readFileSync(PAGE, 'utf8');
const [before, rest] = page.split('<!-- figures -->\n');
const after = rest.slice(rest.indexOf('\n<!-- /figures -->'));
writeFileSync(PAGE, `${before}<!-- figures -->\n${text}${after}`);
console.log(`\n${text}`);
