import { redisClient, startRedis } from '../lib/redis.mjs';
import { inTurns, measured } from '../lib/rounds.mjs';
import { onStage } from '../lib/stage.mjs';
import { summary } from '../lib/statistics.mjs';

const CONNECTIONS = 32;
/** Fewer than the cache holds: all of their grants are found there. */
const FEW = 1_000;

const COUNTS = [1_000, 10_000, 100_000, 1_000_000];

/** Cost of a request, and memory, as grants grow. Requests are of random users; beyond the cache's 10,000 most look into the store. */
export async function grants({ quick, share, rounds }) {
  const counts = quick ? COUNTS.slice(0, 3) : COUNTS;
  const inMemory = await grow({ store: 'memory', counts, rounds, share });
  const redis = await startRedis();
  try {
    const client = await redisClient(redis.url);
    const inRedis = await grow({ store: 'Redis', redisUrl: redis.url, client, counts, rounds, share });
    client.destroy();
    return { title: 'One process, as grants grow', rows: [...inMemory, ...inRedis] };
  } finally {
    await redis.stop();
  }
}

function grow({ store, redisUrl, client, counts, rounds, share }) {
  return onStage(async (stage) => {
    const service = await stage.service();
    const load = await stage.load();
    const server = await stage.appWithGc({ app: 'keyed', service: service.ready, redisUrl });
    const before = await bytesUsed(server, client);
    const rows = [];
    let seeded = 0;
    for (const count of counts) {
      await server.ask('seed', { from: seeded + 1, to: count });
      seeded = count;
      const storeBytes = ((await bytesUsed(server, client)) - before) / count;
      rows.push({ store, grants: count, ...(await costs(server, load, { count, rounds, share })), storeBytes });
    }
    return rows;
  });
}

/** Of the heap for the store in memory, of Redis for that one. */
async function bytesUsed(server, client) {
  if (client === undefined) return (await server.ask('usage')).heapUsed;
  return Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
}

async function costs(server, load, { count, rounds, share }) {
  const requests = Math.round(2_000 * share);
  const task = { ports: [server.ready.port], path: '/', requests, connections: CONNECTIONS };
  const contestants = [
    { name: 'few', measure: () => measured(server, requests, () => load.ask('run', { ...task, users: FEW }), 200) },
    { name: 'all', measure: () => measured(server, requests, () => load.ask('run', { ...task, users: count }), 200) },
  ];
  await inTurns(contestants, 1);
  const { few, all } = await inTurns(contestants, Math.ceil(rounds / 4));
  const { rss } = await server.ask('usage');
  const cpu = (samples) => summary(samples.map(({ cpuUs }) => cpuUs));
  return {
    cachedCpuUs: cpu(few),
    randomCpuUs: cpu(all),
    perSecond: summary(all.map(({ perSecond }) => perSecond)),
    rss,
  };
}
