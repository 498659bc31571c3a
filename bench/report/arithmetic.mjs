import { count, figure } from './format.mjs';

const USERS = 10_000_000;
/** Of them at work at one time, and how often each of these asks for something. */
const ACTIVE_SHARE = 0.1;
const SECONDS_BETWEEN_REQUESTS = 10;

const LIFETIME_S = 7_200;
/** When refreshes ahead begin. */
const AHEAD_S = 300;
/** For one refresh: take the lock, read, update, give the lock back. */
const STORE_COMMANDS = 4;

/** What ten million users need, out of what was measured. @returns {import('./format.mjs').Table} */
export function arithmetic(scenarios) {
  const { rows: grants } = scenarios.grants;
  const { rows: requests } = scenarios['overhead-redis'];
  const { rows: expiries } = scenarios.expiries;
  const bytes = grants.filter(({ store }) => store === 'Redis').at(-1).storeBytes;
  const own = requests.find(({ name }) => name === 'passport-oauth-app').cpuUs.median;
  const refreshUs = expiries.at(-1).expired.cpuUs;
  const refreshes = USERS / (LIFETIME_S - AHEAD_S);
  const perSecond = (USERS * ACTIVE_SHARE) / SECONDS_BETWEEN_REQUESTS;
  return [
    ['10,000,000 users', 'arithmetic', 'comes to'],
    [
      'their grants in Redis',
      `${count(USERS)} × ${count(Math.round(bytes))} bytes`,
      `${figure((USERS * bytes) / 2 ** 30)} GiB`,
    ],
    [
      'refreshes, if all of them are always active',
      `${count(USERS)} ÷ (7,200 − 300 s)`,
      `${figure(refreshes)} a second`,
    ],
    [
      'CPU for these',
      `${figure(refreshes)} × ${figure(refreshUs)} µs`,
      `${figure((refreshes * refreshUs) / 1e6)} cores`,
    ],
    [
      'commands to Redis for these',
      `${figure(refreshes)} × ${STORE_COMMANDS}`,
      `${figure(refreshes * STORE_COMMANDS)} a second`,
    ],
    [
      'requests, if a tenth asks every 10 s',
      `${count(USERS * ACTIVE_SHARE)} ÷ ${SECONDS_BETWEEN_REQUESTS} s`,
      `${count(perSecond)} a second`,
    ],
    [
      'CPU for these, Express and sessions included',
      `${count(perSecond)} × ${figure(own)} µs`,
      `${figure((perSecond * own) / 1e6)} cores`,
    ],
  ];
}
