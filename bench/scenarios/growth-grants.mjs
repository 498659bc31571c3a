import pg from 'pg';
import { startPostgres } from '../lib/postgres.mjs';
import { redisClient, startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { inTurns, measured } from '../lib/starts.mjs';
import { interval, median } from '../lib/statistics.mjs';

const CONNECTIONS = 32;
const REQUESTS = 1_000;
const COUNTS = [1_000, 10_000, 100_000, 1_000_000];

/** CPU and latency of a request, and memory, as grants grow. Requests are of random users; beyond the cache's 10,000 most of them read the store. */
export async function growthGrants({ quick, rounds }) {
  const counts = quick ? COUNTS.slice(0, 3) : COUNTS;
  const settings = { counts, rounds: quick ? rounds : 12 };
  const inMemory = await grow({ store: 'memory', bytes: heapOf, ...settings });
  return {
    title: 'One process, as grants grow',
    rows: [...inMemory, ...(await inRedis(settings)), ...(await inPostgres(settings))],
  };
}

async function inRedis(settings) {
  const redis = await startRedis();
  const client = await redisClient(redis.url);
  try {
    const bytes = async () => Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    return await grow({ store: 'Redis', options: { redisUrl: redis.url }, bytes, ...settings });
  } finally {
    client.destroy();
    await redis.stop();
  }
}

/** Nothing where PostgreSQL is not installed. */
async function inPostgres(settings) {
  const postgres = await startPostgres();
  if (postgres === undefined) return [];
  const pool = new pg.Pool({ connectionString: postgres.url, max: 1 });
  pool.on('error', () => {});
  try {
    const bytes = async () =>
      Number((await pool.query('SELECT pg_database_size(current_database()) AS size')).rows[0].size);
    const options = { postgresUrl: postgres.url };
    return await grow({ store: 'PostgreSQL', options, bytes, ...settings });
  } finally {
    await pool.end();
    await postgres.stop();
  }
}

async function heapOf(server) {
  return (await server.ask('memory')).heapBytes;
}

function grow({ store, options, counts, rounds, bytes }) {
  return onStage(
    async (stage) => {
      const service = await stage.service();
      const load = await stage.load();
      const server = await stage.appWithGc({ app: 'keyed', service: service.ready, ...options });
      const before = await bytes(server);
      const rows = [];
      let seeded = 0;
      for (const count of counts) {
        await server.ask('seed', { from: seeded + 1, to: count });
        seeded = count;
        const storeBytes = ((await bytes(server)) - before) / count;
        rows.push({ store, grants: count, ...(await costs(server, load, count, rounds)), storeBytes });
      }
      return rows;
    },
    { pinned: true },
  );
}

async function costs(server, load, users, rounds) {
  const task = { ports: [server.ready.port], path: '/', requests: REQUESTS, connections: CONNECTIONS, users };
  const contestants = [{ name: 'any', measure: () => measured(server, REQUESTS, () => load.ask('run', task), 200) }];
  await inTurns(contestants, 3);
  const { any } = await inTurns(contestants, rounds);
  const { rss } = await server.ask('memory');
  return {
    cpuUs: interval(any.map(({ cpuUs }) => cpuUs)),
    perSecond: interval(any.map(({ perSecond }) => perSecond)),
    p50Ms: median(any.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(any.map(({ p99Ms }) => p99Ms)),
    rss,
  };
}
