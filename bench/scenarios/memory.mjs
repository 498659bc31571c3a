import { redisClient, startRedis } from '../lib/databases.mjs';
import { onStage } from '../lib/stage.mjs';
import { interval } from '../lib/statistics.mjs';

const LOGINS = 10_000;
/** Logins that come first: the code is compiled, the pools are filled. */
const WARM_UPS = 1_000;
/** Access token and refresh token together. */
const TOKEN_CHARS = 1_600;

const CACHING = { app: 'ours', cache: { max: 50_000, ttl: 3_600 } };
const UNCACHED = { app: 'ours', cache: false };
const BARE = { app: 'bare' };

/** What a process over Redis keeps in its own memory for each user: the cached grant, and the mark of the used login. */
export async function memory({ quick }) {
  const redis = await startRedis();
  const client = await redisClient(redis.url);
  const grown = [];
  try {
    for (let time = 0; time < (quick ? 1 : 3); time += 1) {
      const sizes = [];
      for (const app of [CACHING, UNCACHED, BARE]) {
        await client.flushAll();
        const play = (stage) => growthOf(stage, { ...app, ...redis.options }, quick ? LOGINS / 10 : LOGINS);
        sizes.push(await onStage(play, { tokenChars: TOKEN_CHARS }));
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
async function growthOf({ load, app }, options, logins) {
  const server = await app(options);
  const { port } = server.ready;
  const logIn = (requests) => load.ask('runLogIns', { port, requests, connections: 8, users: requests });
  await logIn(WARM_UPS);
  const before = await server.ask('memory');
  await logIn(logins);
  return ((await server.ask('memory')).heapBytes - before.heapBytes) / logins;
}
