import { figure } from './format.mjs';
import { PART_NAMES } from './profile.mjs';

const OURS = 'passport-oauth-app';

/**
 * For each missed target: which part of the program takes the time, by the profile of just these requests.
 *
 * @param {import('./targets.mjs').Target[]} targets
 * @param {Record<string, any>} scenarios
 * @returns {{ target: string, text: string, table: import('./format.mjs').Table }[]}
 */
export function explanationsOf(targets, scenarios) {
  const rows = scenarios.profiles?.rows ?? [];
  return targets
    .filter(({ verdict }) => verdict === 'missed')
    .flatMap(({ name, wanted, value, profile }) => {
      const of = rows.find((row) => row.name === profile);
      if (of === undefined) return [];
      return [{ target: name, text: `Wanted ${wanted}, measured ${value}. ${sentence(of)}`, table: partsTable(of) }];
    });
}

function sentence({ title, parts }) {
  const { cpuUs, shares } = parts[OURS];
  const own = shares[OURS];
  const [most, second] = Object.entries(shares)
    .filter(([part]) => part !== OURS)
    .sort(([, a], [, b]) => b - a);
  const us = (share) => `${figure(share * cpuUs)} µs`;
  return `${title}: of ${figure(cpuUs)} µs of CPU, this package's own code takes ${us(own)} (${percent(own)}); most goes to ${most[0]} (${us(most[1])}) and ${second[0]} (${us(second[1])}).`;
}

/** Microseconds of CPU by part, for all that were profiled side by side. @returns {import('./format.mjs').Table} */
export function partsTable({ parts }) {
  const names = Object.keys(parts);
  const rows = PART_NAMES.filter((part) => names.some((name) => parts[name].shares[part] >= 0.001)).map((part) => [
    part,
    ...names.map((name) => {
      const share = parts[name].shares[part];
      return share < 0.001 ? '' : `${figure(share * parts[name].cpuUs)} (${percent(share)})`;
    }),
  ]);
  const total = ['CPU µs, all', ...names.map((name) => figure(parts[name].cpuUs))];
  return [['CPU µs by itself', ...names], ...rows, total];
}

function percent(share) {
  return `${(share * 100).toFixed(1)}%`;
}
