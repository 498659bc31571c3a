// The command `npm run simulate`: see docs/refresh-protocol.md.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { bundleSimulation, filesOf } from './bundle.mjs';

const USAGE = `npm run simulate              checks the package at full length, by tests
npm run simulate -- [options]
  --seeds N            plays N random seeds (default 2,000)
  --from N             the first of them (default 1)
  --seed N             plays one seed, and prints what happens
  --exhaustive 1|2     plays the scenarios with every single fault, or with every pair of faults
  --freezes            plays a scenario with freezes of 0.1 to 60 s at every call, on all clocks
  --scenario NAME      the only scenario for that; alone or with --fault it is played once, and printed
  --fault CALL:FAULT   a fault in that scenario, once or twice, as the summary names it
  --mode MODE          refuse, revoke or grace: what the service does when a used refresh token is shown (default: all)
  --mutation NAME      breaks a part of every process first
  --mutations          looks for a trial that shows each of the mutations
  --each-mode          plays a trial in each mode even where it goes the same in all of them
  --list               prints every example that was kept, one a line
  --source FOLDER      the source of the package (default: src)
  --bundle FOLDER      what was bundled before, in place of a source
  --beside REVISION    gives every other process the package of that commit or tag
  --lacks METHOD       plays with a token store that has no lock, or no update
  --part K/N           only every N-th trial, from the K-th on; of pairs, every N-th first fault
  --jobs N             threads (default: one for each processor)
  --json               prints the summary as JSON`;

const optionsOf = (type, names) => Object.fromEntries(names.split(' ').map((name) => [name, { type }]));
const { values } = parseArgs({
  options: {
    ...optionsOf('string', 'seeds from seed exhaustive scenario mode mutation source bundle beside lacks part jobs'),
    ...optionsOf('boolean', 'freezes mutations each-mode list json help'),
    fault: { type: 'string', multiple: true },
  },
});

if (isMainThread && process.argv.length === 2) process.exitCode = runTests();
else if (!isMainThread) parentPort.postMessage(await (await import(workerData.module)).perform(workerData));
else if (values.help) console.log(USAGE);
else await main();

/** Returns the exit code. REPORT names a file for what .ci/reporter.mjs writes. */
function runTests() {
  const { env } = process;
  const reporters = env.REPORT ? ['--reporter=default', '--reporter=./.ci/reporter.mjs'] : [];
  const args = ['node_modules/vitest/vitest.mjs', 'run', 'test/simulation', 'test/flow/interleaving', ...reporters];
  const { status } = spawnSync(process.execPath, args, { env: { ...env, SIMULATE: 'whole' }, stdio: 'inherit' });
  return status ?? 1;
}

async function main() {
  const { bundle, source, beside } = values;
  const { directory, packageFile, besideFile, module } = bundle
    ? filesOf(bundle)
    : await bundleSimulation(source, beside);
  try {
    const { describe, emptyTally, merge } = await import(module);
    const isOne =
      values.seed !== undefined ||
      values.fault !== undefined ||
      (values.scenario && !values.exhaustive && !values.freezes);
    const shares = isOne ? 1 : Number(values.jobs ?? availableParallelism());
    const [part, parts] = (values.part ?? '1/1').split('/').map(Number);
    const since = performance.now();
    const results = await Promise.all(
      Array.from({ length: shares }, (_, share) =>
        run(taskOf({ module, packageFile, besideFile, share: (part - 1) * shares + share, shares: parts * shares })),
      ),
    );
    if (isOne) {
      console.log(results[0].text);
      return;
    }
    if (values.mutations) {
      const found = Object.assign({}, ...results.map((result) => result.found));
      for (const [name, hit] of Object.entries(found)) console.log(`${name}: ${hit ? textOf(hit) : 'NOT FOUND'}`);
      process.exitCode = Object.values(found).includes(undefined) ? 1 : 0;
      return;
    }
    const tally = emptyTally();
    for (const result of results) merge(tally, result.tally);
    if (values.json) console.log(JSON.stringify(tally));
    else console.log(`${describe(tally, values.list)}\n${((performance.now() - since) / 1000).toFixed(1)} s`);
    process.exitCode = Object.keys(tally.violations).length === 0 ? 0 : 1;
  } finally {
    if (!bundle) rmSync(directory, { recursive: true });
  }
}

function textOf({ trials, invariants, example }) {
  return `found by trial ${trials} (${invariants.join(', ')}): ${example}`;
}

function taskOf(share) {
  const { mode, scenario, mutation, seed, seeds, from, exhaustive, fault } = values;
  return {
    ...share,
    mode,
    scenario,
    mutation,
    isFrozen: values.freezes ?? false,
    lacks: values.lacks && `no ${values.lacks}`,
    isMutated: values.mutations ?? false,
    isEachMode: values['each-mode'] ?? false,
    seed: seed === undefined ? undefined : Number(seed),
    seeds: Number(seeds ?? (exhaustive === undefined ? 2000 : 0)),
    from: Number(from ?? 1),
    depth: Number(exhaustive ?? 0),
    faults: fault ?? [],
  };
}

function run(workerData) {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL(import.meta.url), {
      workerData,
      resourceLimits: { maxYoungGenerationSizeMb: 128 },
    });
    thread.once('message', resolve);
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(`a thread ended without a result (${code})`)));
  });
}
