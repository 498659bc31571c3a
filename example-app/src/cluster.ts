/**
 * The example application in two processes that share a Redis: `npm run start:cluster`.
 *
 * Sessions and grants are in Redis, and the emulated service is in the first process. Whatever the two do at once, a token is
 * refreshed by one of them; the panel shows which. REDIS_URL names a Redis that runs; without it, one is started.
 */
import { spawn } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { RedisStore } from 'connect-redis';
import type { StrategyOptions } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { connect } from './calls.js';
import { Recorder } from './panel/recorder.js';
import { createPrimary, type Primary, type Worker } from './primary.js';
import { closeServer, listen, realService, run, SettingsError, serverSettings, untilAskedToEnd } from './server.js';
import { serviceBreaker, startService, strategyOptionsFor } from './service.js';
import { startWorker } from './worker.js';

const processes = 2;

/** What a worker has to be told. */
interface Setup {
  readonly port: number;
  readonly redisUrl: string;
  readonly sessionSecret: string;
  readonly strategyOptions: StrategyOptions;
}

type ClusterPrimary = Primary & { setup(): Promise<Setup> };

async function main(): Promise<void> {
  if (realService(process.env))
    throw new SettingsError('The cluster runs with the emulated service: unset AUTH_URL and the others.');
  const { port, sessionSecret } = serverSettings(process.env);
  const shared = await usablePort(port);
  const redis = await openRedis(process.env.REDIS_URL);
  try {
    await conduct(shared, redis.url, sessionSecret);
  } finally {
    await redis.close();
  }
}

/** The primary process: starts the service and the workers, and ends them when it is asked to. */
async function conduct(port: number, redisUrl: string, sessionSecret: string): Promise<void> {
  const recorder = new Recorder(Date.now);
  const service = await startService({ port, recorder });
  const children = Array.from({ length: processes }, () => cluster.fork());
  const workers: Worker[] = [];
  const primary: ClusterPrimary = {
    ...createPrimary(workers, (happening) => recorder.record(happening), serviceBreaker(service)),
    setup: async () => ({ port, redisUrl, sessionSecret, strategyOptions: strategyOptionsFor(service) }),
  };
  workers.push(...children.map((child) => connect<Worker>(child, primary)));
  const ended = children.map((child) => once(child, 'exit'));
  const failed = Promise.race(ended).then(() => {
    throw new SettingsError('A process ended as soon as it was started.');
  });
  await Promise.race([failed, Promise.all(children.map((child) => once(child, 'listening')))]);
  failed.catch(() => {});
  const isAsked = untilAskedToEnd();
  const pids = children.map((child) => child.process.pid).join(' and ');
  process.stdout.write(`\n  Open http://localhost:${port}\n\n  Processes ${pids} answer. Ctrl-C ends everything.\n`);
  await isAsked;
  for (const worker of workers) void worker.end();
  await Promise.all(ended);
  await service.close();
}

/** A worker: answers requests until the primary process says that it is over. */
async function work(): Promise<void> {
  // Ctrl-C reaches all processes of a terminal; the primary process decides when to end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const own: Partial<Worker> = {};
  const primary = connect<ClusterPrimary>(process, own);
  const { port, redisUrl, sessionSecret, strategyOptions } = await primary.setup();
  const redis = await createClient({ url: redisUrl }).on('error', console.error).connect();
  const server = createServer();
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  const worker = startWorker({
    server,
    primary,
    // Without a cache, the panel shows the token that the other process has got at once.
    strategyOptions: { ...strategyOptions, cache: false, encryptionKeys: sessionSecret },
    sessionSecret,
    sessionStore: new RedisStore({ client: redis }),
    tokenStore: redisTokenStore(redis),
    clock: Date.now,
  });
  Object.assign(own, worker, {
    async end() {
      await worker.end();
      await redis.close();
      process.disconnect();
    },
  });
  await listen(server, port, '127.0.0.1');
}

/** Returns a port that nobody listens on. @throws {SettingsError} if `port` is taken */
async function usablePort(port: number | undefined): Promise<number> {
  const server = createServer();
  const usable = await listen(server, port, '127.0.0.1');
  await closeServer(server);
  return usable;
}

/** Returns the Redis at `url`, or starts one for this run that keeps nothing. @throws {SettingsError} if it cannot */
async function openRedis(url: string | undefined): Promise<{ readonly url: string; close(): Promise<void> }> {
  if (url) return { url, close: async () => {} };
  const port = await usablePort(0);
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  // In a group of its own: Ctrl-C would end it before those who still save to it.
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await once(server, 'spawn').catch(() => {
    throw new SettingsError(
      'redis-server is not installed. Install it (apt-get install redis-server, brew install redis), ' +
        'or set REDIS_URL to one that runs, such as redis://localhost:6379.',
    );
  });
  const exit = once(server, 'exit');
  const close = async () => {
    server.kill();
    await exit;
  };
  for await (const line of createInterface(server.stdout)) {
    if (line.includes('Ready to accept connections')) return { url: `redis://127.0.0.1:${port}`, close };
  }
  throw new SettingsError('redis-server ended as soon as it was started.');
}

await run(cluster.isWorker ? work : main);
