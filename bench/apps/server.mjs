import { once } from 'node:events';
import { createServer } from 'node:http';
import { RedisStore } from 'connect-redis';
import session from 'express-session';
import pg from 'pg';
import { countCalls } from '../lib/call-counts.mjs';
import { redisClient } from '../lib/redis.mjs';
import { answerTasks, argument } from '../lib/tasks.mjs';

/**
 * The process of one application. Its argument says which one, over which session store, in front of which service, and whether
 * calls of cryptography and of the session store are counted.
 */
const { app, redisUrl, postgresUrl, sessions = 'memory', counts = false, ...options } = argument;

const redis = redisUrl === undefined ? undefined : await redisClient(redisUrl);
const postgres = postgresUrl === undefined ? undefined : new pg.Pool({ connectionString: postgresUrl, max: 10 });
const server = createServer();
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

// Before the application is loaded: it may take functions by name.
const takeCounts = counts ? countCalls() : undefined;
const { createApp } = await import(`./${app}.mjs`);
const { handler, tasks } = createApp({
  ...options,
  store: storeOf(sessions),
  redis,
  postgres,
  origin: `http://127.0.0.1:${port}`,
});
server.on('request', handler);
answerTasks({ port }, { ...tasks, takeCounts });

function storeOf(kind) {
  if (kind === 'cookie') return undefined;
  return redis === undefined ? new session.MemoryStore() : new RedisStore({ client: redis, prefix: 'session:' });
}
