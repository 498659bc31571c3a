import { readFileSync, writeFileSync } from 'node:fs';
import { arithmetic } from './arithmetic.mjs';
import { asMarkdown } from './format.mjs';
import { plot } from './plot.mjs';
import { tableOf } from './tables.mjs';
import { targetsOf } from './targets.mjs';

/** Writes the figures of docs/performance.md anew, between its markers, and its plot. The words around them stay. */
export function writeDocument(root, results) {
  const file = `${root}docs/performance.md`;
  const parts = {
    machine: machineText(results),
    targets: targetsText(results),
    arithmetic: asMarkdown(arithmetic(results.scenarios)),
    ...tables(results),
  };
  const text = readFileSync(file, 'utf8').replaceAll(
    /(<!-- bench: ([\w-]+) -->)[\s\S]*?(<!-- end -->)/g,
    (whole, start, name, end) => (parts[name] === undefined ? whole : `${start}\n\n${parts[name]}\n\n${end}`),
  );
  writeFileSync(file, text);
  writeFileSync(`${root}docs/images/performance.svg`, plot(results.scenarios));
}

function tables({ scenarios }) {
  return Object.fromEntries(
    Object.entries(scenarios).map(([name, result]) => [name, asMarkdown(tableOf(name, result))]),
  );
}

function machineText({ machine, scenarios }) {
  const { cpu, cores, memoryGiB, system, node, redis, packages } = machine;
  const dates = Object.values(scenarios).map(({ date }) => date.slice(0, 10));
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  return `${dates.sort().at(-1)}: ${cores} cores of ${cpu} (a virtual machine), ${memoryGiB} GiB, ${system}, Node ${node}, Redis ${redis}; ${versions.join(', ')}.`;
}

function targetsText({ scenarios }) {
  const rows = targetsOf(scenarios).map(({ name, wanted, value, isMet }) => [
    name,
    wanted,
    value,
    isMet ? 'met' : '**missed**',
  ]);
  return asMarkdown([['target', 'wanted', 'measured', ''], ...rows]);
}
