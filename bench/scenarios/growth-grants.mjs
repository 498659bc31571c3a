import pg from 'pg';
import { overDatabases, redisClient } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { inTurns, measured, summary } from '../lib/starts.mjs';
import { ratio } from '../lib/statistics.mjs';

const REQUESTS = 1_000;
const COUNTS = [1_000, 10_000, 100_000, 1_000_000];
/** All of them are found in the cache, however many grants there are. */
const ACTIVE_USERS = 1_000;

/**
 * What a request costs, and what is kept, as grants grow: in memory, Redis, PostgreSQL. Requests are of any user, of whom most read the
 * store beyond the cache's 10,000, and of the same thousand users. And how long it takes to list all grants, and to look at all of them
 * for `keepAlive`.
 */
export async function growthGrants({ quick, rounds }) {
  const settings = { counts: quick ? COUNTS.slice(0, 3) : COUNTS, rounds: quick ? rounds : 12 };
  const inMemory = await grow('memory', {}, settings);
  const others = await overDatabases((store, { options }) => grow(store, options, settings));
  return { title: 'One process, as grants grow', rows: [...inMemory, ...others] };
}

function grow(store, options, { counts, rounds }) {
  return onStage(
    async ({ app, load }) => {
      const server = await app({ app: 'keyed', ...options });
      const size = await sizeOf(server, options);
      const before = await size();
      const rows = [];
      let seeded = 0;
      let few;
      for (const count of counts) {
        await server.ask('seed', { from: seeded + 1, to: count });
        seeded = count;
        const storeBytes = ((await size()) - before) / count;
        const { any, active } = await costs(server, load, count, rounds);
        few ??= active;
        const activeRatio = ratio(cpuOf(active), cpuOf(few));
        const { rss } = await server.ask('memory');
        const walked = await server.ask('walk');
        rows.push({ store, grants: count, ...summary(any), activeRatio, storeBytes, rss, ...walked });
      }
      await size.end?.();
      return rows;
    },
    { pinned: true },
  );
}

/** @returns a function for the bytes that the grants take, wherever they are */
async function sizeOf(server, { redisUrl, postgresUrl }) {
  if (redisUrl !== undefined) {
    const client = await redisClient(redisUrl);
    const bytes = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    return Object.assign(bytes, { end: () => client.destroy() });
  }
  if (postgresUrl === undefined) return async () => (await server.ask('memory')).heapBytes;
  const pool = new pg.Pool({ connectionString: postgresUrl, max: 1 }).on('error', () => {});
  const sql = 'SELECT pg_database_size(current_database()) AS size';
  const bytes = async () => Number((await pool.query(sql)).rows[0].size);
  return Object.assign(bytes, { end: () => pool.end() });
}

/** The rounds of requests of any user, and of those that are active. */
async function costs(server, load, count, rounds) {
  const contestant = (name, users) => {
    const task = { ports: [server.ready.port], path: '/', requests: REQUESTS, connections: 32, users };
    return { name, measure: () => measured(server, REQUESTS, () => load.ask('run', task), 200) };
  };
  return await inTurns([contestant('any', count), contestant('active', ACTIVE_USERS)], rounds, 3);
}

function cpuOf(rounds) {
  return rounds.map(({ cpuUs }) => cpuUs);
}
