import { redisClient, startRedis } from '../lib/redis.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval } from '../lib/statistics.mjs';

const LOGINS = 10_000;
/** Logins that come first: the code is compiled, the pools are filled. */
const WARM_UPS = 1_000;
const CONNECTIONS = 8;
/** Access token and refresh token together. */
const TOKEN_CHARS = 1_600;
const TIMES = 3;

const CACHING = { app: 'ours', cache: { max: 50_000, ttl: 3_600 } };
const UNCACHED = { app: 'ours', cache: false };
const BARE = { app: 'bare' };

/** What a process over Redis keeps in its own memory for each user: the cached grant, and the mark of the used login. */
export async function memory({ quick }) {
  const logins = quick ? LOGINS / 10 : LOGINS;
  const redis = await startRedis();
  const client = await redisClient(redis.url);
  const grown = [];
  try {
    for (let time = 0; time < (quick ? 1 : TIMES); time += 1) {
      const sizes = [];
      for (const app of [CACHING, UNCACHED, BARE]) {
        await client.flushAll();
        sizes.push(await growthOf({ ...app, redisUrl: redis.url }, logins));
      }
      grown.push(sizes);
    }
  } finally {
    client.destroy();
    await redis.stop();
  }
  const rows = [
    { name: 'a cached grant', bytes: interval(grown.map(([caching, uncached]) => caching - uncached)) },
    { name: 'a used login', bytes: interval(grown.map(([, uncached, bare]) => uncached - bare)) },
    { name: 'a session of the application without the package', bytes: interval(grown.map(([, , bare]) => bare)) },
  ];
  return { title: 'Memory of a process over Redis, for each user', tokenChars: TOKEN_CHARS, rows };
}

/** Bytes by which the heap grows with each login, after a collection. */
function growthOf(options, logins) {
  return onStage(async (stage) => {
    const service = await stage.service({ tokenChars: TOKEN_CHARS });
    const load = await stage.load();
    const server = await stage.appWithGc({ service: service.ready, ...options });
    const logIn = (requests) =>
      load.ask('runLogIns', { port: server.ready.port, requests, connections: CONNECTIONS, users: requests });
    await logIn(WARM_UPS);
    const before = await server.ask('memory');
    await logIn(logins);
    return ((await server.ask('memory')).heapBytes - before.heapBytes) / logins;
  });
}
