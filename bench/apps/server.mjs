import { once } from 'node:events';
import { createServer } from 'node:http';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import pg from 'pg';
import { redisClient } from '../lib/databases.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/**
 * The process of one application. Its argument says which one, over which session store, in front of which service.
 */
const { app, redisUrl, postgresUrl, sessions = 'memory', ...options } = argument;

const redis = redisUrl === undefined ? undefined : await redisClient(redisUrl);
const postgres = postgresUrl === undefined ? undefined : new pg.Pool({ connectionString: postgresUrl, max: 10 });
const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

const { createApp } = await import(`./${app}.mjs`);
const inMemory = sessions === 'memory' ? new session.MemoryStore() : undefined;
const store = redis ? new RedisStore({ client: redis, prefix: 'session:' }) : inMemory;
const { handler, tasks } = createApp({ ...options, store, redis, postgres, origin: `http://127.0.0.1:${port}` });
server.on('request', handler);
answerTasks({ port }, { ...tasks, stored });

/** Characters of the session and of the grant of the one user who has logged in, as they are stored. Marks of logins are shorter. */
async function stored() {
  const keys = redis === undefined ? Object.keys(store.sessions) : await redis.keys('*');
  const sizes = keys.map(async (key) => ({
    isGrant: key.startsWith('oauth-app') || !/^session:|^[\w-]{32}$/.test(key),
    chars: redis === undefined ? store.sessions[key].length : await redis.strLen(key).catch(() => 0),
  }));
  const all = await Promise.all(sizes);
  const most = (wanted) => Math.max(...all.filter(({ isGrant }) => isGrant === wanted).map(({ chars }) => chars));
  return { sessionChars: most(false), grantChars: most(true) };
}
