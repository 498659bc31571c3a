import { figure } from './format.mjs';
import { PART_NAMES } from './profile.mjs';

const OURS = 'passport-oauth-app';
/** Microseconds below which a difference says nothing: less than the profiler tells apart. */
const LEAST_US = 0.05;
const MOST_FUNCTIONS = 6;

/**
 * For each missed target, what was measured beside it that tells where the time or the memory goes: the profile of just these
 * requests against what they are measured against, or the figures of the parts.
 *
 * @param {import('./targets.mjs').Target[]} targets
 * @param {Record<string, any>} scenarios
 * @returns {{ target: string, text: string, table?: import('./format.mjs').Table }[]}
 */
export function explanationsOf(targets, scenarios) {
  return targets
    .filter(({ verdict }) => verdict === 'missed')
    .map(({ name, wanted, value, profile, against, reason }) => {
      const measured = `Wanted ${wanted}, measured ${value}.`;
      const row = scenarios.profiles?.rows.find((one) => one.name === profile);
      if (row === undefined) return { target: name, text: reason === undefined ? measured : `${measured} ${reason}` };
      if (against === undefined)
        return { target: name, text: `${measured} ${ownSentence(row)}`, table: partsTable(row) };
      return {
        target: name,
        text: `${measured} ${differenceSentences(row, against)} ${ownSentence(row)}`,
        table: differenceTable(row, against),
      };
    });
}

function ownSentence({ parts }) {
  const { cpuUs, shares, own } = parts[OURS];
  const us = (share) => `${figure(share * cpuUs)} µs`;
  const functions = own.slice(0, MOST_FUNCTIONS).map(({ name, share }) => `\`${name}\` ${us(share)}`);
  return `Own code takes ${us(shares[OURS])} by itself (${percent(shares[OURS])}): ${functions.join(', ')}.`;
}

/** Which parts, and which functions outside of the package, take more than in what it is measured against. */
function differenceSentences({ title, parts, calls }, against) {
  const own = parts[OURS];
  const other = parts[against];
  const byPart = PART_NAMES.map((part) => ({ part, us: usOf(own, part) - usOf(other, part) }));
  const named = byPart.filter(({ us }) => Math.abs(us) >= LEAST_US).sort((a, b) => b.us - a.us);
  const functions = other.differing.filter(
    ({ part, us }) => part !== OURS && part !== 'garbage collection' && Math.abs(us) >= LEAST_US,
  );
  const cryptography = calls === undefined ? [] : [cryptographySentence(parts, calls, against)];
  return [
    `${title}: ${figure(own.cpuUs)} µs of CPU against ${figure(other.cpuUs)} µs (${against}), ${signed(own.cpuUs - other.cpuUs)} µs.`,
    `By part: ${named.map(({ part, us }) => `${part} ${signed(us)}`).join(', ')}.`,
    `Functions of others that differ most: ${functions
      .slice(0, MOST_FUNCTIONS)
      .map(({ name, part, us }) => `\`${name}\` (${part}) ${signed(us)}`)
      .join(', ')}.`,
    ...cryptography,
  ].join(' ');
}

function cryptographySentence(parts, calls, against) {
  const usOfCrypto = ({ cpuUs, crypto }) =>
    figure(Object.values(crypto).reduce((sum, share) => sum + share, 0) * cpuUs);
  const callsOf = (name) => Object.keys(parts[name].crypto).reduce((sum, kind) => sum + (calls[name][kind] ?? 0), 0);
  const both = [OURS, against].map((name) => `${usOfCrypto(parts[name])} µs in ${callsOf(name)} calls`);
  return `Cryptography: ${both[0]} against ${both[1]}.`;
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
  const besides = BESIDES.map(({ title, of }) => [title, ...names.map((name) => figure(of(parts[name])))]);
  return [['CPU µs by itself', ...names], ...rows, ...besides];
}

/** The same for two of them, with the difference. @returns {import('./format.mjs').Table} */
function differenceTable({ parts }, against) {
  const own = parts[OURS];
  const other = parts[against];
  const line = (title, of) => [title, figure(of(other)), figure(of(own)), signed(of(own) - of(other))];
  const rows = PART_NAMES.filter((part) => [own, other].some(({ shares }) => shares[part] >= 0.001)).map((part) =>
    line(part, (one) => usOf(one, part)),
  );
  return [
    ['CPU µs by itself', against, OURS, 'difference'],
    ...rows,
    ...BESIDES.map(({ title, of }) => line(title, of)),
  ];
}

/** The sum of the parts, and what was measured beside them, without the profiler. */
const BESIDES = [
  { title: 'CPU µs, all', of: ({ cpuUs }) => cpuUs },
  { title: 'of these, in helper threads of V8', of: ({ helpersUs }) => helpersUs },
  { title: 'pauses for garbage collection, µs', of: ({ pausesUs }) => pausesUs },
  { title: 'KB allocated', of: ({ bytes }) => bytes / 1000 },
];

/** How often a login calls for cryptography and for its session, and what the cryptography takes. @returns {import('./format.mjs').Table} */
export function callsTable({ parts, calls }) {
  const names = Object.keys(parts);
  const kinds = Object.keys(parts[OURS].crypto).filter((kind) => names.some((name) => calls[name][kind] > 0));
  const others = [...new Set(names.flatMap((name) => Object.keys(calls[name])))].filter(
    (call) => !kinds.includes(call),
  );
  const timesOf = (name, call) => figure(calls[name][call] ?? 0);
  return [
    ['calls in a login (µs)', ...names],
    ...kinds.map((kind) => [
      kind,
      ...names.map((name) =>
        calls[name][kind] > 0
          ? `${timesOf(name, kind)} (${figure(parts[name].crypto[kind] * parts[name].cpuUs)})`
          : timesOf(name, kind),
      ),
    ]),
    ...others.sort().map((call) => [call, ...names.map((name) => timesOf(name, call))]),
  ];
}

function usOf({ cpuUs, shares }, part) {
  return shares[part] * cpuUs;
}

function signed(value) {
  return `${value < 0 ? '−' : '+'}${figure(Math.abs(value))}`;
}

function percent(share) {
  return `${(share * 100).toFixed(1)}%`;
}
