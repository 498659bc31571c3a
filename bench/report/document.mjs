import { readFileSync, writeFileSync } from 'node:fs';
import { capacity } from './capacity.mjs';
import { asMarkdown } from './format.mjs';
import { plot } from './plot.mjs';
import { tablesOf } from './tables.mjs';
import { missed, targetsOf } from './targets.mjs';

const PAGES = ['docs/performance.md', 'docs/figures/performance.md'];

/** Writes the figures of the pages anew, between their markers, and the plots. The words around them stay. */
export function writeDocument(root, results) {
  const parts = {
    machine: machineText(results),
    targets: targetsText(results),
    missed: missedText(results),
    capacity: capacity(results.scenarios),
    ...tables(results),
  };
  for (const page of PAGES) {
    const text = readFileSync(`${root}${page}`, 'utf8').replaceAll(
      /(<!-- bench: ([\w-]+) -->)[\s\S]*?(<!-- end -->)/g,
      (whole, start, name, end) => (parts[name] === undefined ? whole : `${start}\n\n${parts[name]}\n\n${end}`),
    );
    writeFileSync(`${root}${page}`, text);
  }
  writeFileSync(`${root}docs/images/performance.svg`, plot(results.scenarios));
}

function tables({ scenarios }) {
  const all = Object.entries(scenarios).flatMap(([name, result]) => Object.entries(tablesOf(name, result)));
  return Object.fromEntries(all.map(([name, table]) => [name, asMarkdown(table)]));
}

function machineText({ quick, machine, scenarios }) {
  const { cpu, cores, memoryGiB, system, node, redis, postgres, packages } = machine;
  const dates = Object.values(scenarios).map(({ date }) => date.slice(0, 10));
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  const stores = [`Redis ${redis}`, ...(postgres === undefined ? [] : [`PostgreSQL ${postgres}`])].join(', ');
  const caution = quick ? '**From a quick run, which shows only that the command works: not figures to go by.** ' : '';
  const starts = Object.values(scenarios).flatMap(({ rows }) => rows?.[0]?.starts ?? []);
  const fewest = starts.length === 0 ? '' : ` Fewest starts of a comparison: ${Math.min(...starts)}.`;
  return `${caution}${dates.sort().at(-1)}: ${cores} cores of ${cpu} (a virtual machine), ${memoryGiB} GiB, ${system}, Node ${node}, ${stores}; ${versions.join(', ')}.${fewest}`;
}

function targetsText({ scenarios }) {
  const rows = targetsOf(scenarios).map(({ name, wanted, value, verdict }) => [
    name,
    wanted,
    value,
    verdict === 'missed' ? '**missed**' : verdict,
  ]);
  return asMarkdown([['target', 'wanted', 'measured (95% interval)', ''], ...rows]);
}

function missedText({ scenarios }) {
  const lines = missed(targetsOf(scenarios)).map(
    ({ name, wanted, value, reason = '' }) => `- **${name}**: wanted ${wanted}, measured ${value}. ${reason}`,
  );
  return lines.length === 0 ? 'None.' : lines.join('\n').replaceAll(/ +$/gm, '');
}
