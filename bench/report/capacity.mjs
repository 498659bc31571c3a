import { asMarkdown, count, figure } from './format.mjs';

/** A user at work asks for something so often. */
const REQUEST_EVERY_S = 10;
/** A token lives two hours, and is refreshed five minutes ahead. */
const REFRESH_EVERY_S = 7_200 - 300;
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
  const { cpuUs } = rowOf('passport-oauth-app');
  const requests = part('requests, Express and sessions included', cpuUs.value, REQUEST_EVERY_S);
  const sessions = part('sessions, read and touched by each request', rowOf('bare').storeCpuUs, REQUEST_EVERY_S);
  const stores = processes.refreshes.map(({ store, storeCpuUs }) => {
    // With most processes the batches are the smallest: the dearest case.
    const readUs = processes.rows.filter((row) => row.store === store).at(-1).storeCpuUs.value;
    const reads = part('reads of grants, one in each lifetime of the cache', readUs, CACHE_TTL_S);
    return [store, reads, refreshes(storeCpuUs)];
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
  return part('refreshes', us, REFRESH_EVERY_S);
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
