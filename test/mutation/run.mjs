// The command `npm run mutate`: see docs/security.md.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const USAGE = `npm run mutate -- [options] [folder or file of src ...]
  --tests PATH   a folder or file of tests to run; may be repeated (default: those of the folders; for what they leave, whole flows)
  --part K/N     only every N-th stretch between two empty lines, from the K-th on
  --jobs N       processes (default: 1)
  --list         prints each mutant that no test finds
  --report FILE  writes the report as JSON`;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: 'string', multiple: true },
    part: { type: 'string' },
    jobs: { type: 'string' },
    list: { type: 'boolean' },
    report: { type: 'string' },
    help: { type: 'boolean' },
  },
});

const root = fileURLToPath(new URL('../..', import.meta.url));
const here = fileURLToPath(new URL('.', import.meta.url));
const FOLDERS = ['refresh', 'grants', 'stores', 'login', 'session', 'oauth', 'api', 'http', 'middleware'].map(
  (name) => `src/${name}`,
);

/** Options and whole flows: they find what a folder's own tests leave, and take most of the time. The quickest is first. */
const FLOWS = ['test/options.test.ts', 'test/refresh', 'test/flow', 'test/embedded'];

if (values.help) console.log(USAGE);
else main();

function main() {
  if (!existsSync(join(here, 'node_modules')))
    execFileSync('npm', ['ci', '--prefix', here, '--no-fund', '--no-audit'], { stdio: 'inherit' });
  const targets = positionals.length > 0 ? positionals : FOLDERS;
  const files = targets.flatMap(filesOf);
  const mutate = values.part ? partOf(files, values.part) : files;
  const directory = mkdtempSync(join(tmpdir(), 'mutation-'));
  try {
    const { files: found } = play(mutate, values.tests ?? ownTestsOf(targets), directory);
    const left = Object.entries(found).flatMap(([file, { mutants }]) => survivorsOf(mutants).map(rangeIn(file)));
    if (values.tests === undefined && left.length > 0) {
      console.log(
        `${summary(found)}\nThese are the folders' own tests. Now whole flows, for the ${left.length} that are left:`,
      );
      const { files: foundByFlows } = play(left, FLOWS, directory);
      for (const [file, { mutants }] of Object.entries(found)) addResults(mutants, foundByFlows[file]?.mutants ?? []);
    }
    if (values.report) writeFileSync(values.report, JSON.stringify({ files: found }));
    console.log(`${summary(found)}\n${shareOf(files)}`);
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** Changes the code in these places, one after the other, and returns which of the changes the tests notice. */
function play(mutate, tests, directory) {
  const [config, report] = ['stryker.config.json', 'report.json'].map((name) => join(directory, name));
  writeFileSync(config, JSON.stringify(optionsOf(mutate, directory, report)));
  const args = [join(here, 'node_modules/@stryker-mutator/core/bin/stryker.js'), 'run', config];
  const env = { ...process.env, MUTATION_TESTS: JSON.stringify(tests) };
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit', env });
  if (status !== 0) process.exit(status ?? 1);
  return JSON.parse(readFileSync(report, 'utf8'));
}

function survivorsOf(mutants) {
  return mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage');
}

function rangeIn(file) {
  return ({ location: { start, end } }) => `${file}:${start.line}:${start.column - 1}-${end.line}:${end.column - 1}`;
}

/** Gives what has survived the status that it has got in a later run. */
function addResults(mutants, later) {
  const keyOf = ({ location, replacement }) => JSON.stringify([location, replacement]);
  const statuses = new Map(later.map((mutant) => [keyOf(mutant), mutant.status]));
  for (const mutant of survivorsOf(mutants)) mutant.status = statuses.get(keyOf(mutant)) ?? mutant.status;
}

/** Says how much of the source the percentages are about. */
function shareOf(files) {
  const linesOf = (names) =>
    names.reduce(
      (sum, name) => sum + readFileSync(join(root, name.replace(/:.*/, '')), 'utf8').split('\n').length - 1,
      0,
    );
  const [some, all] = [linesOf([...new Set(files)]), linesOf(filesOf('src'))];
  const part = values.part === undefined ? '' : `, of which part ${values.part} was changed`;
  return `These files have ${some} of the ${all} lines of src (${((100 * some) / all).toFixed(0)} %)${part}.`;
}

/** A target is a folder, a file, or a stretch of one: `src/oauth/scope.ts:3-9`. */
function filesOf(target) {
  if (/\.ts(:|$)/.test(target)) return [target];
  const names = readdirSync(join(root, target), { recursive: true });
  return names
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => `${target}/${name}`);
}

/** Returns `file:from-to` for each chosen stretch. What is changed lies within one: seldom is a function longer. */
function partOf(files, part) {
  const [chosen, parts] = part.split('/').map(Number);
  const stretches = files.flatMap((file) => {
    const lines = readFileSync(join(root, file), 'utf8').split('\n');
    const empty = lines.flatMap((line, index) => (line === '' ? [index + 1] : []));
    return empty.map((end, index) => `${file}:${(empty[index - 1] ?? 0) + 1}-${end}`);
  });
  return stretches.filter((_, index) => index % parts === chosen - 1);
}

function optionsOf(mutate, directory, report) {
  return {
    mutate,
    plugins: [join(here, 'node_modules/@stryker-mutator/vitest-runner/dist/src/index.js'), join(here, 'mutators.mjs')],
    // TypeScript 7 has no interface for programs; nothing here needs its settings rewritten.
    tsconfigFile: 'test/mutation/none.json',
    testRunner: 'vitest',
    vitest: { configFile: 'test/mutation/vitest.config.ts', related: false },
    coverageAnalysis: 'perTest',
    ignoreStatic: true,
    concurrency: Number(values.jobs ?? 1),
    tempDirName: join(directory, 'sandbox'),
    ignorePatterns: ['/bench', '/site', '/example-app', '/.github', '/test/mutation/node_modules', '/dist'],
    reporters: ['progress-append-only', 'json'],
    jsonReporter: { fileName: report },
    disableTypeChecks: false,
    timeoutMS: 6_000,
    // Whole flows take minutes on a busy machine.
    dryRunTimeoutMinutes: 30,
    allowEmpty: false,
    fileLogLevel: 'off',
    checkers: [],
  };
}

/** Returns a file's own tests, or those of its folder: they have its name below `test`. */
function ownTestsOf(targets) {
  const own = targets.flatMap((target) => {
    const [, folder, file = ''] = target.split(/[/\\]/);
    const names = ['.test.ts', '.unit.test.ts'].map((ending) => file.replace(/\.ts.*$/, ending));
    const files = readdirSync(join(root, 'test')).flatMap((each) => names.map((name) => `test/${each}/${name}`));
    const found = file === '' ? [] : files.filter((path) => existsSync(join(root, path)));
    return found.length > 0 ? found : [`test/${folder}`].filter((path) => existsSync(join(root, path)));
  });
  return own.length > 0 ? [...new Set(own)] : FLOWS;
}

function summary(files) {
  const folders = new Map();
  const survivors = [];
  for (const [file, { source, mutants }] of Object.entries(files)) {
    const folder = file.split('/').slice(0, 2).join('/');
    const counts = folders.get(folder) ?? { found: 0, survived: 0, ignored: 0 };
    folders.set(folder, counts);
    const lines = source.split('\n');
    for (const { status, location, replacement = '', mutatorName } of mutants) {
      if (['Killed', 'Timeout'].includes(status)) counts.found += 1;
      else if (['Survived', 'NoCoverage'].includes(status)) {
        counts.survived += 1;
        const line = lines[location.start.line - 1]?.trim();
        survivors.push(
          `${file}:${location.start.line}:${location.start.column} ${status} ${mutatorName}: ${line} → ${replacement.replaceAll(/\s+/g, ' ')}`,
        );
      } else counts.ignored += 1;
    }
  }
  const rows = [...folders].map(([folder, { found, survived, ignored }]) => {
    const share = ((100 * found) / Math.max(1, found + survived)).toFixed(1);
    return `${folder}: ${found} of ${found + survived} found (${share} %), ${ignored} not tried`;
  });
  return [...(values.list ? survivors : []), ...rows].join('\n');
}
