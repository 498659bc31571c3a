import { readFileSync, writeFileSync } from 'node:fs';
import { capacity } from './capacity.mjs';
import { explanationsOf } from './explanations.mjs';
import { asMarkdown } from './format.mjs';
import { growthPlot } from './growth-plot.mjs';
import { plot } from './plot.mjs';
import { tablesOf } from './tables.mjs';
import { targetsOf } from './targets.mjs';

/** Writes the figures of docs/performance.md anew, between its markers, and its plots. The words around them stay. */
export function writeDocument(root, results) {
  const file = `${root}docs/performance.md`;
  const parts = {
    machine: machineText(results),
    targets: targetsText(results),
    missed: missedText(results),
    capacity: capacity(results.scenarios),
    ...tables(results),
  };
  const text = readFileSync(file, 'utf8').replaceAll(
    /(<!-- bench: ([\w-]+) -->)[\s\S]*?(<!-- end -->)/g,
    (whole, start, name, end) => (parts[name] === undefined ? whole : `${start}\n\n${parts[name]}\n\n${end}`),
  );
  writeFileSync(file, text);
  const { scenarios } = results;
  const pictures = { 'performance.svg': plot(scenarios), 'growth.svg': growthPlot(scenarios) };
  for (const [name, svg] of Object.entries(pictures))
    if (svg !== undefined) writeFileSync(`${root}docs/images/${name}`, svg);
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
  const explained = explanationsOf(targetsOf(scenarios), scenarios);
  const paragraphs = explained.map(({ target, text, table }) => {
    return [`**${target}.** ${text}`, ...(table === undefined ? [] : [asMarkdown(table)])].join('\n\n');
  });
  return paragraphs.length === 0 ? 'None.' : paragraphs.join('\n\n');
}
