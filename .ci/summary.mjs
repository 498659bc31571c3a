// Prints what the steps of .ci/run took and what came of their tests: `node .ci/summary.mjs FOLDER`. Its last line is the count.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const folder = process.argv[2];
const written = join(folder, 'steps');
const steps = (existsSync(written) ? readFileSync(written, 'utf8') : '')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => {
    const [seconds, status, report, name] = line.split('\t');
    return { seconds: Number(seconds), status: Number(status), name, ...outcomeOf(report) };
  });

/** What the tests of a step came to. A step that has none counts by its exit code. */
function outcomeOf(report) {
  if (report === '') return { passed: 0, problems: [], files: [] };
  const path = join(folder, report);
  if (!existsSync(path)) return { passed: 0, problems: ['wrote no report'], files: [] };
  const { passed, failed, skipped, retried, errors, files } = JSON.parse(readFileSync(path, 'utf8'));
  const problems = [
    ...failed.map((title) => `failed: ${title}`),
    ...skipped.map((title) => `skipped, which none may be: ${title}`),
    ...retried.map((title) => `retried, which none may be: ${title}`),
    ...errors.map((message) => `error: ${message}`),
    ...(passed === 0 && failed.length === 0 ? ['ran no test'] : []),
  ];
  return { passed, problems, files };
}

const inSeconds = (seconds, name) => `${seconds.toFixed(0).padStart(6)} s  ${name}`;
const slowest = steps.flatMap(({ files }) => files).sort((one, other) => other.seconds - one.seconds);
const problems = steps.flatMap(({ name, status, problems }) =>
  (problems.length === 0 && status !== 0 ? [`ended with ${status}`] : problems).map((problem) => `${name}: ${problem}`),
);
if (steps.length === 0) problems.push('no step has run');
const passed = steps.reduce((sum, step) => sum + step.passed, 0);

console.log('\n== seconds of each step');
for (const { name, seconds } of steps) console.log(inSeconds(seconds, name));
console.log('\n== the ten slowest test files');
for (const { file, seconds } of slowest.slice(0, 10)) console.log(inSeconds(seconds, file));
if (problems.length > 0) console.log(`\n== problems\n${problems.join('\n')}`);
console.log(`\n${passed} passed, ${problems.length} failed`);
process.exitCode = problems.length === 0 ? 0 : 1;
