import { asMarkdown, count, figure } from './format.mjs';

/** A user at work asks for something so often. */
const SECONDS_BETWEEN_REQUESTS = 10;
/** A token lives two hours, and is refreshed five minutes ahead. */
const SECONDS_BETWEEN_REFRESHES = 7_200 - 300;
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
export function capacity({ 'overhead-redis': overRedis, 'growth-processes': processes, 'growth-grants': grants }) {
  if (!overRedis || !processes || !grants) return undefined;
  const rowOf = (wanted) => overRedis.rows.find(({ name }) => name === wanted);
  const requests = part(
    'requests, Express and sessions included',
    rowOf('passport-oauth-app').cpuUs.value,
    SECONDS_BETWEEN_REQUESTS,
  );
  const sessions = part(
    'sessions, read and touched by each request',
    rowOf('bare').storeCpuUs,
    SECONDS_BETWEEN_REQUESTS,
  );
  const stores = processes.refreshes.map(({ store, storeCpuUs }) => {
    // With most processes the batches are the smallest: the dearest case.
    const reads = processes.rows.filter((row) => row.store === store).at(-1).storeCpuUs.value;
    return [
      store,
      part('reads of grants, one in each lifetime of the cache', reads, CACHE_TTL_S),
      refreshes(storeCpuUs),
    ];
  });
  const resources = [
    ['process', requests, refreshes(processes.refreshes[0].cpuUs)],
    ...stores,
    [`${stores[0][0]} with sessions`, sessions, ...stores[0].slice(1)],
  ].map(([name, ...parts]) => ({ name, parts, users: (LOAD * 1e6) / parts.reduce((sum, { us }) => sum + us, 0) }));
  const table = resources.flatMap(({ name, parts, users }) => [
    ...parts.map(({ what, arithmetic, us }) => [name, what, arithmetic, `${figure(us)} µs`]),
    [`**${name}**`, `**users at work on one core**`, `${LOAD} s ÷ the sum`, `**${rounded(users)}**`],
  ]);
  return [
    asMarkdown([['one', 'CPU that a user at work takes in a second', 'arithmetic', 'comes to'], ...table]),
    asMarkdown(memoryTable(grants)),
  ].join('\n\n');
}

/** CPU of one thing that happens once in so many seconds. */
function part(what, us, seconds) {
  return { what, arithmetic: `${figure(us)} µs ÷ ${count(seconds)} s`, us: us / seconds };
}

function refreshes(us) {
  return part('refreshes', us, SECONDS_BETWEEN_REFRESHES);
}

function memoryTable({ rows }) {
  const last = [...new Map(rows.map((row) => [row.store, row])).values()];
  const cells = ({ store, storeBytes }) => [
    store === 'memory' ? 'the memory of the process' : store,
    count(Math.round(storeBytes)),
    rounded(2 ** 30 / storeBytes),
  ];
  return [['grants in', 'bytes each', 'grants in 1 GiB'], ...last.map(cells)];
}

/** Two digits: the figures hold no more. */
function rounded(value) {
  return count(Number(value.toPrecision(2)));
}
