import { asMarkdown, count, figure } from './format.mjs';

const OURS = 'passport-oauth-app';

/** A user at work asks for something so often. */
const SECONDS_BETWEEN_REQUESTS = 10;
const LIFETIME_S = 7_200;
/** Refreshes ahead begin so long before the expiry. */
const AHEAD_S = 300;
/** A cached grant is read again after so long. */
const CACHE_TTL_S = 30;
/** What a core is to be used for at most: beyond that, requests wait for each other. */
const LOAD = 0.7;

/**
 * How many users one process, one Redis and one PostgreSQL carry, out of what was measured. All figures are computed here; nothing
 * where the scenarios have not been played.
 *
 * @param {Record<string, any>} scenarios
 * @returns {string | undefined} Markdown
 */
export function capacity(scenarios) {
  const { 'overhead-redis': overRedis, 'growth-processes': processes, 'growth-grants': grants } = scenarios;
  if (!overRedis || !processes || !grants) return undefined;
  const stores = processes.refreshes.map((one) => storeOf(one, processes));
  const resources = [processOf(overRedis, processes), ...stores, withSessions(stores[0], overRedis)];
  const table = resources.flatMap(({ name, perUser, users }) => [
    ...perUser.map(([what, arithmetic, us]) => [name, what, arithmetic, `${figure(us)} µs`]),
    [`**${name}**`, `**users at work on one core**`, `${LOAD} s ÷ the sum`, `**${rounded(users)}**`],
  ]);
  return [
    asMarkdown([['one', 'CPU that a user at work takes in a second', 'arithmetic', 'comes to'], ...table]),
    asMarkdown(memoryTable(grants)),
    verdict(resources, grants),
  ].join('\n\n');
}

function processOf({ rows }, { refreshes }) {
  const { cpuUs } = rows.find(({ name }) => name === OURS);
  const refreshUs = refreshes[0].cpuUs;
  return resource('process', [
    [
      'requests, Express and sessions included',
      `${figure(cpuUs.value)} µs ÷ ${SECONDS_BETWEEN_REQUESTS} s`,
      cpuUs.value / SECONDS_BETWEEN_REQUESTS,
    ],
    ['refreshes', `${figure(refreshUs)} µs ÷ ${count(LIFETIME_S - AHEAD_S)} s`, refreshUs / (LIFETIME_S - AHEAD_S)],
  ]);
}

/** Its CPU for grants alone. */
function storeOf({ store, storeCpuUs }, { rows }) {
  // With most processes the batches are the smallest: the dearest case.
  const reads = rows.filter((row) => row.store === store).at(-1).storeCpuUs.value;
  return resource(store, [
    [
      'reads of grants, one in each lifetime of the cache',
      `${figure(reads)} µs ÷ ${CACHE_TTL_S} s`,
      reads / CACHE_TTL_S,
    ],
    ['refreshes', `${figure(storeCpuUs)} µs ÷ ${count(LIFETIME_S - AHEAD_S)} s`, storeCpuUs / (LIFETIME_S - AHEAD_S)],
  ]);
}

/** Redis once more, with the sessions of bare in it. */
function withSessions({ name, perUser }, { rows }) {
  const { storeCpuUs } = rows.find((row) => row.name === 'bare');
  const sessions = [
    'sessions, read and touched by each request',
    perRequest(storeCpuUs),
    storeCpuUs / SECONDS_BETWEEN_REQUESTS,
  ];
  return resource(`${name} with sessions`, [sessions, ...perUser]);
}

function perRequest(us) {
  return `${figure(us)} µs ÷ ${SECONDS_BETWEEN_REQUESTS} s`;
}

function resource(name, perUser) {
  const us = perUser.reduce((sum, [, , one]) => sum + one, 0);
  return { name, perUser, users: (LOAD * 1e6) / us };
}

function memoryTable({ rows }) {
  const stores = [...new Set(rows.map(({ store }) => store))];
  const last = stores.map((store) => rows.filter((row) => row.store === store).at(-1));
  return [
    ['grants in', 'bytes each', 'grants in 1 GiB'],
    ...last.map(({ store, storeBytes }) => [
      store === 'memory' ? 'the memory of the process' : store,
      count(Math.round(storeBytes)),
      rounded(2 ** 30 / storeBytes),
    ]),
  ];
}

function verdict(resources, { rows }) {
  const [first, ...others] = [...resources].sort((a, b) => a.users - b.users);
  const behind = others.map(
    ({ name, users }) => `one core of ${name} carries ${rounded(users / first.users)} times as many`,
  );
  const inMemory = rows.filter(({ store }) => store === 'memory');
  const growth = inMemory.at(-1).cpuUs.value / inMemory[0].cpuUs.value;
  return [
    `What gives way first is the CPU of the ${first.name}: ${rounded(first.users)} users at work, one request every ${SECONDS_BETWEEN_REQUESTS} s each; ${behind.join(', ')}.`,
    `With ${count(inMemory.at(-1).grants)} grants in its memory, a process takes ${figure(growth)} times the CPU for a request of a random user that it takes with ${count(inMemory[0].grants)}.`,
  ].join(' ');
}

/** Two digits: the figures hold no more. */
function rounded(value) {
  return count(Number(value.toPrecision(2)));
}
