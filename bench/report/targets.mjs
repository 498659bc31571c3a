import { count, figure, mebibytes, spread } from './format.mjs';

/**
 * What the package sets itself, and whether it is met. Where another program is measured beside it, ratios only: absolute figures
 * are the machine's.
 *
 * @typedef {import('../lib/statistics.mjs').Interval} Interval
 * @typedef {object} Target
 * @property {string} name
 * @property {string} wanted
 * @property {string} value with its interval
 * @property {'met' | 'met within the interval' | 'missed'} verdict
 * @property {string} [reason] what else was measured that tells
 */

const OURS = 'passport-oauth-app';

/** @param {Record<string, any>} results by scenario @returns {Target[]} those of the scenarios that were played */
export function targetsOf(results) {
  return CHECKS.filter(({ scenario }) => results[scenario] !== undefined).flatMap(({ scenario, check }) =>
    check(results[scenario]),
  );
}

/** @param {Target[]} targets */
export function missed(targets) {
  return targets.filter(({ verdict }) => verdict === 'missed');
}

const CHECKS = [
  {
    scenario: 'middleware',
    check: ({ ns, bytes }) => [
      atMost('middleware, cache hit: ns for a pass', 400, ns),
      atMost('middleware, cache hit: bytes for a pass', 300, bytes),
    ],
  },
  {
    scenario: 'overhead',
    check: (result) =>
      isFair(result)
        ? [atMost('logged-in request: CPU against bare with as large a session', 1.03, ours(result).cpuRatio)]
        : [],
  },
  { scenario: 'overhead-redis', check: overRedis },
  { scenario: 'api-loop', check: apiLoop },
  {
    scenario: 'application',
    check: (result) => [atLeast('GET /projects against floor', 0.95, inverse(ours(result).cpuRatio))],
  },
  {
    scenario: 'forward',
    check: (result) => [atLeast('forward against a pass-through by hand', 0.8, inverse(ours(result).cpuRatio))],
  },
  {
    scenario: 'logins',
    check: (result) => [
      atLeast('logins, eight at a time, against floor', 0.85, inverse(ours(result).cpuRatio)),
      atMost('logins: CPU against hand-written', 1.2, ours(result).cpuToHandWritten),
    ],
  },
  { scenario: 'stampede', check: stampede },
  {
    scenario: 'morning',
    check: ({ rows }) =>
      rows.flatMap(({ name, delayMs, refused, lastRatio }) => [
        fact(`morning, ${name}, ${delayMs} ms: pages refused`, '0', refused === 0, String(refused)),
        {
          ...atMost(`morning, ${name}, ${delayMs} ms: last page against the token endpoint`, 1.3, lastRatio),
          reason: 'The pages and the store share the cores with the token endpoint and the load.',
        },
      ]),
  },
  { scenario: 'memory', check: memory },
  { scenario: 'grants', check: grants },
  { scenario: 'imports', check: imports },
  {
    scenario: 'late-save',
    check: (result) => [fact('login survives a late session save', 'yes', ours(result).loginSurvived)],
  },
  {
    scenario: 'emulator',
    check: ({ peakBytes }) => [atMost('memory of the emulator under uploads, MB', 200, exactly(peakBytes / 1e6))],
  },
];

function overRedis(result) {
  const uncached = result.rows.find(({ name }) => name === `${OURS}, cache: false`);
  const bare = result.rows.find(({ name }) => name === 'bare');
  const name = 'over Redis, cache: false: throughput against bare with one more GET';
  return [
    atMost('over Redis, cache: false: round trips for a request', 1, exactly(uncached.commands - bare.commands)),
    ...(isFair(result) ? [atLeast(name, 0.97, inverse(uncached.cpuRatio))] : []),
  ];
}

/** Whether it was measured against an application whose session is as large. */
function isFair({ rows }) {
  return rows.some(({ name }) => name.startsWith('bare, as large a session'));
}

function apiLoop({ rows }) {
  const of = (size) => rows.find(({ projects, name }) => projects === size && name === OURS);
  const sizes = [...new Set(rows.map(({ projects }) => projects))];
  return sizes.map((size) =>
    atLeast(
      `API loop, ${size} project${size === 1 ? '' : 's'}, against bare dispatch`,
      0.9,
      inverse(of(size).cpuRatio),
    ),
  );
}

function stampede({ rows, together }) {
  const row = (name) => rows.find((one) => one.name === name);
  const four = row(`${OURS}, 4 processes`);
  const one = row(OURS);
  return [
    fact('stampede of 200, one process: token requests, failures', '1 and 0', isOnce(one), counts(one)),
    fact('stampede of 200, four processes: the same', '1 and 0', isOnce(four), counts(four)),
    fact('stampede of 1,000, four processes: the same', '1 and 0', isOnce(together), counts(together)),
    {
      ...atMost('stampede of 1,000: last answer against the token endpoint', 1.3, together.lastRatio),
      reason: `The same requests with a fresh token take ${spread(together.freshMs)} ms on these cores: as much is added to the ${together.tokenDelayMs} ms of the token endpoint.`,
    },
  ];
}

function memory({ rows }) {
  const [grant, login] = rows.map(({ bytes }) => inThousands(bytes));
  return [
    atMost('memory over Redis: a cached grant with tokens of 1.6 KB, KB', 1.9, grant),
    atMost('memory over Redis: a used login, KB', 0.12, login),
  ];
}

function grants({ rows }) {
  const [few, many, , anyUser] = rows.filter(({ program }) => program === OURS);
  const [plainFew, plainMany] = rows.filter(({ program }) => program !== OURS);
  const us = ({ value }) => `${figure(value)} µs`;
  return [
    {
      ...atMost('CPU at 1,000,000 grants against 1,000', 1.1, many.cpuRatio),
      reason: [
        `A request takes ${us(few.cpuUs)} with ${count(few.grants)} grants and ${us(many.cpuUs)} with ${count(many.grants)}; of a random one of so many users ${us(anyUser.cpuUs)}.`,
        `An application without this package that has as many entries, and as many bytes, in a plain \`Map\` takes ${us(plainFew.cpuUs)} and ${us(plainMany.cpuUs)}: ${spread(plainMany.cpuRatio)} times as much.`,
        `Garbage collection stops the program for ${us(few.pausesUs)} of each request with few and ${us(many.pausesUs)} with many grants; with the plain \`Map\` for ${us(plainFew.pausesUs)} and ${us(plainMany.pausesUs)}.`,
        `A young collection takes ${figure(few.youngMs)} ms in a heap of ${mebibytes(few.heapBytes)} and ${figure(many.youngMs)} ms in one of ${mebibytes(many.heapBytes)}; with the plain \`Map\` ${figure(plainFew.youngMs)} ms and ${figure(plainMany.youngMs)} ms.`,
      ].join(' '),
    },
  ];
}

function imports(result) {
  return [atMost('import: CPU against passport-oauth2', 1.45, ours(result).cpuRatio)];
}

function isOnce({ mostTokenRequests, mostFailures }) {
  return mostTokenRequests === 1 && mostFailures === 0;
}

function counts({ mostTokenRequests, mostFailures }) {
  return `${mostTokenRequests} and ${mostFailures}`;
}

function ours({ rows }) {
  return rows.find(({ name }) => name === OURS);
}

function atLeast(name, least, measured) {
  const verdict = verdictOf(measured.value >= least, measured.high >= least);
  return { name, wanted: `≥ ${least}`, value: spread(measured), verdict };
}

function atMost(name, most, measured) {
  const verdict = verdictOf(measured.value <= most, measured.low <= most);
  return { name, wanted: `≤ ${most}`, value: spread(measured), verdict };
}

function fact(name, wanted, isMet, value = isMet ? 'yes' : 'no') {
  return { name, wanted, value, verdict: verdictOf(isMet, isMet) };
}

function verdictOf(isMet, isAllowed) {
  if (isMet) return 'met';
  return isAllowed ? 'met within the interval' : 'missed';
}

/** @returns {Interval} */
function exactly(value) {
  return { value, low: value, high: value };
}

/** Requests for a second of CPU, instead of CPU for a request: throughput where the measured core is busy, and with less noise. @param {Interval} ratio @returns {Interval} */
function inverse({ value, low, high }) {
  return { value: 1 / value, low: 1 / high, high: 1 / low };
}

/** @param {Interval} interval @returns {Interval} */
function inThousands({ value, low, high }) {
  return { value: value / 1000, low: low / 1000, high: high / 1000 };
}
