/**
 * The example application in two processes that share a Redis: `npm run start:cluster`.
 *
 * Sessions and grants are in Redis, and the emulated service is in the first process. Whatever the two do at once, a token is
 * refreshed by one of them; the panel shows which. REDIS_URL names a Redis that runs; without it, one is started.
 */
import { spawn } from 'node:child_process';
import cluster, { type Address } from 'node:cluster';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { RedisStore } from 'connect-redis';
import type { StrategyOptions } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient, type RedisClientOptions } from 'redis';
import { connect } from './calls.js';
import { Recorder } from './panel/recorder.js';
import { createPrimary, type Primary, type Worker } from './primary.js';
import { closeServer, listen, realService, run, SettingsError, serverSettings, untilAskedToEnd } from './server.js';
import { startService, strategyOptionsFor } from './service.js';
import { startWorker } from './worker.js';

const processes = 2;

/** What a worker has to be told. */
interface Setup {
  readonly redis: RedisOptions;
  readonly sessionSecret: string;
  readonly strategyOptions: StrategyOptions;
}

/** Where a Redis listens. */
type RedisOptions = Pick<RedisClientOptions, 'url' | 'socket'>;

interface ClusterWorker extends Worker {
  /** Begins to answer. */
  serve(setup: Setup): Promise<void>;
}

async function main(): Promise<void> {
  if (realService(process.env))
    throw new SettingsError('The cluster runs with the emulated service: unset AUTH_URL and the others.');
  const { port, sessionSecret } = serverSettings(process.env);
  if (port) await refuseTaken(port);
  const redis = await openRedis(process.env.REDIS_URL);
  try {
    await conduct(redis.options, sessionSecret);
  } finally {
    await redis.close();
  }
}

/** The primary process: starts the service and the workers, and ends them when it is asked to. */
async function conduct(redis: RedisOptions, sessionSecret: string): Promise<void> {
  const children = Array.from({ length: processes }, () => cluster.fork());
  const ended = children.map((child) => once(child, 'exit'));
  const failed = Promise.race(ended).then(() => {
    throw new SettingsError('A process ended as soon as it was started.');
  });
  const listening = children.map(async (child) => {
    const [address] = (await once(child, 'listening')) as [Address];
    return address.port;
  });
  const [port = 0] = await Promise.race([failed, Promise.all(listening)]);

  const recorder = new Recorder(Date.now);
  const service = await startService({ port, recorder });
  const workers: ClusterWorker[] = [];
  const primary = createPrimary(workers, recorder, service);
  workers.push(...children.map((child) => connect<ClusterWorker>(child, primary)));
  const setup = { redis, sessionSecret, strategyOptions: strategyOptionsFor(service) };
  await Promise.race([failed, Promise.all(workers.map((worker) => worker.serve(setup)))]);
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
  const server = createServer();
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  const own: Partial<ClusterWorker> = {
    async serve({ redis, sessionSecret, strategyOptions }) {
      const client = await createClient(redis).on('error', console.error).connect();
      const worker = startWorker({
        server,
        primary,
        // Without a cache, the panel shows the token that the other process has got at once.
        strategyOptions: { ...strategyOptions, cache: false, encryptionKeys: sessionSecret },
        sessionSecret,
        sessionStore: new RedisStore({ client }),
        tokenStore: redisTokenStore(client),
        clock: Date.now,
      });
      Object.assign(own, worker, {
        async end() {
          await worker.end();
          await client.close();
          process.disconnect();
        },
      });
    },
  };
  const primary = connect<Primary>(process, own);
  // All workers get the same port, also where it is a free one.
  await listen(server, serverSettings(process.env).port, '127.0.0.1');
}

/** Says once, and not in each worker, that a port is taken. @throws {SettingsError} */
async function refuseTaken(port: number): Promise<void> {
  const server = createServer();
  await listen(server, port, '127.0.0.1');
  await closeServer(server);
}

/** Returns the Redis at `url`, or starts one for this run that keeps nothing. @throws {SettingsError} if it cannot */
async function openRedis(url: string | undefined): Promise<{ readonly options: RedisOptions; close(): Promise<void> }> {
  if (url) return { options: { url }, close: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), 'example-app-'));
  const path = join(folder, 'redis.sock');
  const args = ['--port', '0', '--unixsocket', path, '--dir', folder, '--save', '', '--appendonly', 'no'];
  // In a group of its own: Ctrl-C would end it before those who still save to it.
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await once(server, 'spawn').catch(async () => {
    await rm(folder, { recursive: true });
    throw new SettingsError(
      'redis-server is not installed. Install it (apt-get install redis-server, brew install redis), ' +
        'or set REDIS_URL to one that runs, such as redis://localhost:6379.',
    );
  });
  const exit = once(server, 'exit');
  const close = async () => {
    server.kill();
    await exit;
    await rm(folder, { recursive: true });
  };
  for await (const line of createInterface(server.stdout)) {
    if (line.includes('ready to accept connections')) return { options: { socket: { path, tls: false } }, close };
  }
  await close();
  throw new SettingsError('redis-server ended as soon as it was started.');
}

await run(cluster.isWorker ? work : main);
