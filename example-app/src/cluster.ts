/**
 * The example application in two processes that share a Redis: `npm run start:cluster`.
 *
 * Sessions and grants are in Redis, and the emulated service is in the first process. Whatever the two do at once, a token is
 * refreshed by one of them; the panel shows which. REDIS_URL names a Redis that runs; without it, one is started.
 */
import { spawn } from 'node:child_process';
import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { connect } from './calls.js';
import { Recorder } from './panel/recorder.js';
import { closeServer, listen, realService, run, SettingsError, serverSettings, untilAskedToEnd } from './server.js';
import { serviceBreaker, startService, strategyOptionsFor } from './service.js';
import { type PrimaryCalls, type WorkerCalls, work } from './worker.js';

const processes = 2;

async function main(): Promise<void> {
  if (cluster.isWorker) return work();
  if (realService(process.env))
    throw new SettingsError('The cluster runs with the emulated service: unset AUTH_URL and the others.');
  const { port, sessionSecret } = serverSettings(process.env);
  const shared = await usablePort(port);
  const redis = await openRedis(process.env.REDIS_URL);
  try {
    await serve(shared, redis.url, sessionSecret);
  } finally {
    await redis.close();
  }
}

async function serve(port: number, redisUrl: string, sessionSecret: string): Promise<void> {
  const recorder = new Recorder(Date.now);
  const service = await startService({ port, recorder });
  const children = Array.from({ length: processes }, () => cluster.fork());
  const ofAll = (call: (worker: WorkerCalls, index: number) => Promise<void>) => Promise.all(workers.map(call));
  const primary: PrimaryCalls = {
    setup: async () => ({ port, redisUrl, sessionSecret, strategyOptions: strategyOptionsFor(service) }),
    async tell(happening) {
      const entry = recorder.record(happening);
      if (entry) void ofAll((worker) => worker.add(entry));
    },
    breakService: serviceBreaker(service),
    async breakStore(broken) {
      await ofAll((worker) => worker.breakStore(broken));
    },
    async burst(grantId, order) {
      const count = order.count / processes;
      await ofAll((worker, index) => worker.burst(grantId, { ...order, from: order.from + index * count, count }));
    },
  };
  const workers = children.map((child) => connect<WorkerCalls>(child, primary));
  await Promise.all(children.map((child) => Promise.race([once(child, 'listening'), failed(child)])));
  const isAsked = untilAskedToEnd();
  const pids = children.map((child) => child.process.pid).join(' and ');
  process.stdout.write(`\n  Open http://localhost:${port}\n\n  Processes ${pids} answer. Ctrl-C ends everything.\n`);
  await isAsked;
  const ends = children.filter((child) => !child.isDead()).map((child) => once(child, 'exit'));
  void ofAll((worker) => worker.end());
  await Promise.all(ends);
  await service.close();
}

async function failed(child: Worker): Promise<never> {
  await once(child, 'exit');
  throw new SettingsError('A process ended as soon as it was started.');
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
  const exit = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  await new Promise<void>((resolve, reject) => {
    server.once('error', () => reject(new SettingsError(noRedis)));
    server.once('exit', () => reject(new SettingsError('redis-server ended as soon as it was started.')));
    createInterface({ input: server.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve();
    });
  });
  const close = async () => {
    server.kill();
    await exit;
  };
  return { url: `redis://127.0.0.1:${port}`, close };
}

const noRedis =
  'redis-server is not installed. Install it (apt-get install redis-server, brew install redis), ' +
  'or set REDIS_URL to one that runs, such as redis://localhost:6379.';

await run(main);
