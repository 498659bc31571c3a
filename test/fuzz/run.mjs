// Runs all properties with a million cases in all, or FUZZ_RUNS, and tells the count and the time. FUZZ_SEED begins elsewhere.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const directory = mkdtempSync(join(tmpdir(), 'fuzz-'));
const SECURITY_FIGURES = join(directory, 'figures.jsonl');
const env = { ...process.env, FUZZ_RUNS: process.env.FUZZ_RUNS ?? '1000000', SECURITY_FIGURES };
const since = performance.now();
const vitest = join('node_modules', 'vitest', 'vitest.mjs');
const { status } = spawnSync(process.execPath, [vitest, 'run', 'test/fuzz', '--testTimeout=3600000'], {
  env,
  stdio: 'inherit',
});
const seconds = Math.round((performance.now() - since) / 1000);
const properties = readFileSync(SECURITY_FIGURES, { encoding: 'utf8', flag: 'a+' })
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line))
  .filter(({ kind }) => kind === 'fuzz');
rmSync(directory, { recursive: true });
for (const { what, cases } of properties) console.log(`${cases.toLocaleString('en').padStart(10)}  ${what}`);
const sum = properties.reduce((total, { cases }) => total + cases, 0);
console.log(
  `${sum.toLocaleString('en').padStart(10)}  cases in ${seconds} s, ${status === 0 ? 'without a finding' : 'with findings: see above'}`,
);
process.exitCode = status ?? 1;
