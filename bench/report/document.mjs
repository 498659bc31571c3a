import { readFileSync, writeFileSync } from 'node:fs';
import { capacity } from './capacity.mjs';
import { asMarkdown } from './format.mjs';
import { plot } from './plot.mjs';
import { tablesOf } from './tables.mjs';
import { targetsOf } from './targets.mjs';

const PAGES = ['docs/performance.md', 'docs/figures/performance.md'];

/** Writes the figures of the pages anew, between their markers, and the plots. The words around them stay. */
export function writeDocument(root, results) {
  const { scenarios } = results;
  const targets = targetsOf(scenarios);
  const tables = Object.assign({}, ...Object.entries(scenarios).map(([name, result]) => tablesOf(name, result)));
  const parts = {
    machine: machineText(results),
    targets: targetsText(targets),
    missed: missedText(targets.filter(({ verdict }) => verdict === 'missed')),
    capacity: capacity(scenarios),
    ...Object.fromEntries(Object.entries(tables).map(([name, table]) => [name, asMarkdown(table)])),
  };
  for (const page of PAGES) {
    const text = readFileSync(`${root}${page}`, 'utf8').replaceAll(
      /(<!-- bench: ([\w-]+) -->)[\s\S]*?(<!-- end -->)/g,
      (whole, start, name, end) => (parts[name] === undefined ? whole : `${start}\n\n${parts[name]}\n\n${end}`),
    );
    writeFileSync(`${root}${page}`, text);
  }
  writeFileSync(`${root}docs/images/performance.svg`, plot(scenarios));
}

function machineText({ quick, machine, scenarios }) {
  const { cpu, cores, memoryGiB, system, node, redis, postgres, packages } = machine;
  const dates = Object.values(scenarios).map(({ date }) => date.slice(0, 10));
  const versions = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  const stores = `Redis ${redis}${postgres === undefined ? '' : `, PostgreSQL ${postgres}`}`;
  const caution = quick ? '**From a quick run, which shows only that the command works: not figures to go by.** ' : '';
  const starts = Object.values(scenarios).flatMap(({ rows }) => rows?.[0]?.starts ?? []);
  const fewest = starts.length === 0 ? '' : ` Fewest starts of a comparison: ${Math.min(...starts)}.`;
  return `${caution}${dates.sort().at(-1)}: ${cores} cores of ${cpu} (a virtual machine), ${memoryGiB} GiB, ${system}, Node ${node}, ${stores}; ${versions.join(', ')}.${fewest}`;
}

function targetsText(targets) {
  const marked = (verdict) => (verdict === 'missed' ? '**missed**' : verdict);
  const rows = targets.map(({ name, wanted, value, verdict }) => [name, wanted, value, marked(verdict)]);
  return asMarkdown([['target', 'wanted', 'measured (95% interval)', ''], ...rows]);
}

function missedText(targets) {
  const line = ({ name, wanted, value, reason = '' }) =>
    `- **${name}**: wanted ${wanted}, measured ${value}. ${reason}`.trimEnd();
  return targets.length === 0 ? 'None.' : targets.map(line).join('\n');
}
