/**
 * What the package sets itself, and whether it is met. Ratios only: absolute figures are the machine's.
 *
 * @typedef {{ name: string, wanted: string, value: string, isMet: boolean }} Target
 */

const OURS = 'passport-oauth-app';

/** @param {Record<string, any>} results by scenario @returns {Target[]} those of the scenarios that were played */
export function targetsOf(results) {
  return CHECKS.filter(({ scenario }) => results[scenario] !== undefined).flatMap(({ scenario, check }) =>
    check(results[scenario]),
  );
}

const CHECKS = [
  { scenario: 'overhead', check: (result) => overhead('in memory', result) },
  { scenario: 'overhead-redis', check: (result) => overhead('over Redis', result) },
  { scenario: 'api-loop', check: apiLoop },
  {
    scenario: 'application',
    check: (result) => [atLeast('GET /projects against the hand-written one', 2.2, ours(result).throughputRatio)],
  },
  {
    scenario: 'logins',
    check: (result) => [atLeast('whole logins against the hand-written ones', 1.2, ours(result).throughputRatio)],
  },
  { scenario: 'imports', check: (result) => [atMost('import against passport-oauth2', 1.5, ours(result).ratio)] },
  { scenario: 'stampede', check: stampede },
  {
    scenario: 'late-save',
    check: (result) => [fact('login survives a late session save', 'yes', ours(result).loginSurvived)],
  },
  {
    scenario: 'emulator',
    check: ({ peakBytes }) => [atMost('memory of the emulator under uploads, in MB', 200, { median: peakBytes / 1e6 })],
  },
];

function overhead(where, result) {
  const { throughputRatio, cpuRatio } = ours(result);
  return [
    atLeast(`overhead ${where}: throughput against bare`, 0.96, throughputRatio),
    atMost(`overhead ${where}: CPU against bare`, 1.05, cpuRatio),
  ];
}

function apiLoop({ rows }) {
  const [own] = rows.filter(({ name }) => name === OURS);
  const against = ['fetch', 'axios', 'official SDK'].map((name) => {
    const other = rows.find((row) => row.name === name);
    return atLeast(`API loop against ${name}`, 5, { median: own.perSecond.median / other.perSecond.median });
  });
  return [atLeast('API loop against undici.request', 1.2, own.throughputRatio), ...against];
}

function stampede({ rows }) {
  const row = (name) => rows.find((one) => one.name === name);
  const four = row(`${OURS}, 4 processes`);
  const one = row(OURS);
  const hand = row('passport-oauth2 by hand, single-flight');
  return [
    fact('stampede, one process: 1 token request, no failure', '1 and 0', isOnce(one), counts(one)),
    fact('stampede, four processes: 1 token request, no failure', '1 and 0', isOnce(four), counts(four)),
    atMost('stampede: last answer against single-flight by hand', 1, {
      median: one.lastMs.median / hand.lastMs.median,
    }),
  ];
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

function atLeast(name, least, { median }) {
  return { name, wanted: `≥ ${least}`, value: median.toFixed(2), isMet: median >= least };
}

function atMost(name, most, { median }) {
  return { name, wanted: `≤ ${most}`, value: median.toFixed(2), isMet: median <= most };
}

function fact(name, wanted, isMet, value = isMet ? 'yes' : 'no') {
  return { name, wanted, value, isMet };
}
