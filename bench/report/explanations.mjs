import { figure } from './format.mjs';
import { PART_NAMES } from './profile.mjs';

const OURS = 'passport-oauth-app';

/**
 * For each missed target, what was measured beside it that tells where the time or the memory goes: the profile of just these
 * requests, or the figures of the parts.
 *
 * @param {import('./targets.mjs').Target[]} targets
 * @param {Record<string, any>} scenarios
 * @returns {{ target: string, text: string, table?: import('./format.mjs').Table }[]}
 */
export function explanationsOf(targets, scenarios) {
  return targets
    .filter(({ verdict }) => verdict === 'missed')
    .map(({ name, wanted, value, profile, reason }) => {
      const measured = `Wanted ${wanted}, measured ${value}.`;
      const of = scenarios.profiles?.rows.find((row) => row.name === profile);
      if (of === undefined) return { target: name, text: reason === undefined ? measured : `${measured} ${reason}` };
      return { target: name, text: `${measured} ${sentences(of)}`, table: partsTable(of) };
    });
}

function sentences({ title, parts }) {
  const { cpuUs, shares, own } = parts[OURS];
  const [most, second] = Object.entries(shares)
    .filter(([part]) => part !== OURS)
    .sort(([, a], [, b]) => b - a);
  const us = (share) => `${figure(share * cpuUs)} µs`;
  const functions = own.slice(0, 5).map(({ name, share }) => `\`${name}\` ${us(share)}`);
  return [
    `${title}: of ${figure(cpuUs)} µs of CPU, the code of this package takes ${us(shares[OURS])} by itself (${percent(shares[OURS])}).`,
    `${most[0]} takes ${us(most[1])}, ${second[0]} ${us(second[1])}.`,
    `Its own functions: ${functions.join(', ')}.`,
  ].join(' ');
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
