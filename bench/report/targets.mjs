import { count, spread } from './format.mjs';

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
const MANY = 1_000_000;
const OF_A_LOGIN =
  'Its profile: 29 % of the CPU is in the package. The cookie that is sealed and opened takes 4 %, other random bytes and hashes 3 %; the rest is in some 200 functions, none of which has 1 %. Express, express-session, Passport and undici, which the others have too, take most of what is left.';

/** @param {Record<string, any>} results by scenario @returns {Target[]} those of the scenarios that were played */
export function targetsOf(results) {
  const played = Object.entries(CHECKS).filter(([scenario]) => results[scenario] !== undefined);
  return played.flatMap(([scenario, check]) => check(results[scenario]));
}

const CHECKS = {
  middleware: ({ ns, bytes }) => [
    {
      ...atMost('middleware, cache hit: ns for a pass', 400, ns),
      reason:
        'The only time that is absolute: it is halved or doubled by the load of the host that this machine is on.',
    },
    atMost('middleware, cache hit: bytes for a pass', 300, bytes),
  ],
  overhead: (result) => [
    atMost('logged-in request: CPU against bare with as large a session', 1.03, ours(result).cpuRatio),
  ],
  'overhead-redis': (result) => {
    const uncached = named(result, `${OURS}, cache: false`);
    const trips = exactly(uncached.commands - named(result, 'bare').commands);
    return [
      atMost('over Redis, cache: false: round trips for a request', 1, trips),
      atLeast('over Redis, cache: false: against bare with one more GET', 0.97, inverse(uncached.cpuRatio)),
    ];
  },
  'api-loop': ({ rows }) =>
    rows
      .filter(({ name }) => name === OURS)
      .map(({ projects, cpuRatio }) => {
        const name = `API loop, ${projects} project${projects === 1 ? '' : 's'}, against bare dispatch`;
        return atLeast(name, 0.9, inverse(cpuRatio));
      }),
  application: (result) => [atLeast('GET /projects against floor', 0.95, inverse(ours(result).cpuRatio))],
  forward: (result) => [
    {
      ...atLeast('forward against a pass-through by hand', 0.8, inverse(ours(result).cpuRatio)),
      reason:
        'Its profile: 19 % of the CPU is in the package, for time limits, checks of the request, and headers that the pass-through does not have; no function has 4 %.',
    },
  ],
  logins: (result) =>
    [
      atLeast('logins, eight at a time, against floor', 0.85, inverse(ours(result).cpuRatio)),
      atMost('logins: CPU against hand-written', 1.2, ours(result).cpuToHandWritten),
    ].map((target) => ({ ...target, reason: OF_A_LOGIN })),
  stampede: (result) => {
    const { together } = result;
    const once = (name, { mostTokenRequests, mostFailures }) =>
      fact(name, '1 and 0', mostTokenRequests === 1 && mostFailures === 0, `${mostTokenRequests} and ${mostFailures}`);
    return [
      once('stampede of 200, one process: token requests, failures', ours(result)),
      once('stampede of 200, four processes: the same', named(result, `${OURS}, 4 processes`)),
      once('stampede of 1,000, four processes: the same', together),
      {
        ...atMost('stampede of 1,000: last answer against the token endpoint', 1.3, together.lastRatio),
        reason: `The same requests with a fresh token take ${spread(together.freshMs)} ms on these cores: as much is added to the ${together.tokenDelayMs} ms of the token endpoint.`,
      },
    ];
  },
  morning: ({ rows }) =>
    rows.flatMap(({ name, delayMs, refused, lastRatio }) => [
      fact(`morning, ${name}, ${delayMs} ms: pages refused`, '0', refused === 0, String(refused)),
      {
        ...atMost(`morning, ${name}, ${delayMs} ms: last page against the token endpoint`, 1.3, lastRatio),
        reason:
          'The pages and the store share two cores with the token endpoint and the load. Over PostgreSQL they take all of both: for 2,000 pages the four processes take 10 to 13 s of CPU, a quarter of it in the system call that writes to the sockets of PostgreSQL, and PostgreSQL itself 6 to 7 s.',
      },
    ]),
  memory: ({ rows: [grant, login] }) => [
    {
      ...atMost('memory over Redis: a cached grant with tokens of 1.6 KB, bytes', 1_900, grant.bytes),
      reason:
        'The tokens take 1,650 of them, the grant with its numbers and ids 240, its entry in the cache with the key 160: fewer would mean to pack the grant, and to unpack it for each request.',
    },
    atMost('memory over Redis: a used login, bytes', 120, login.bytes),
  ],
  'growth-grants': ({ rows }) =>
    rows
      .filter(({ store, grants, activeRatio }) => store === 'memory' && grants === MANY && activeRatio)
      .map(({ activeRatio }) => atMost('CPU at 1,000,000 grants against 1,000', 1.1, activeRatio)),
  imports: (result) => [atMost('import: CPU against passport-oauth2', 1.45, ours(result).cpuRatio)],
  'late-save': (result) => [fact('login survives a late session save', 'yes', ours(result).loginSurvived)],
  sweep: ({ rows }) =>
    rows.map(({ store, expired, seconds }) =>
      atMost(`${store}: ${count(expired)} grants that expire together are gone after, s`, 120, exactly(seconds)),
    ),
};

function ours(result) {
  return named(result, OURS);
}

function named({ rows }, wanted) {
  return rows.find(({ name }) => name === wanted);
}

function atLeast(name, least, measured) {
  const verdict = verdictOf(measured.value >= least, measured.high >= least);
  return { name, wanted: `≥ ${least}`, value: spread(measured), verdict };
}

function atMost(name, most, measured) {
  const verdict = verdictOf(measured.value <= most, measured.low <= most);
  return { name, wanted: `≤ ${count(most)}`, value: spread(measured), verdict };
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
