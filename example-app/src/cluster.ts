/**
 * The example application in two processes that share a Redis: `npm run start:cluster`.
 *
 * Sessions and grants are in Redis, and the emulated service is in the first process. Whatever the two do at once, a token is
 * refreshed by one of them; the panel shows which. REDIS_URL names a Redis that runs; without it, one is started.
 */
import { spawn } from 'node:child_process';
import cluster from 'node:cluster';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { RedisStore } from 'connect-redis';
import type { StrategyOptions } from 'passport-oauth-app';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { createClient } from 'redis';
import { connect } from './calls.js';
import { Recorder } from './panel/recorder.js';
import { createPrimary, type Primary, type Worker } from './primary.js';
import { environmentOf, listen, realService, run, SettingsError, serverSettings, untilAskedToEnd } from './server.js';
import { grantOfOrganization, registrationAt, startService, strategyOptionsFor } from './service.js';
import { startWorker } from './worker.js';

const processes = 2;

/** The primary process: starts Redis, the service and the workers, and ends them when it is asked to. */
async function main(): Promise<void> {
  if (realService(process.env))
    throw new SettingsError('The cluster runs with the emulated service: unset AUTH_URL and the others.');
  const { port: wanted, sessionSecret } = serverSettings(process.env);
  if (wanted) {
    // Says once, and not in each worker, that the port is taken.
    const probe = createServer();
    await listen(probe, wanted, '127.0.0.1');
    probe.close();
  }
  const redisUrl = process.env.REDIS_URL || (await startRedis());
  const recorder = new Recorder();
  const service = await startService(wanted, recorder);
  const workers: Worker[] = [];
  const primary = createPrimary(workers, recorder, service);
  // A worker is told by its environment, as if the service were a real one.
  const env = {
    ...environmentOf(strategyOptionsFor(service)),
    ...{ SESSION_SECRET: sessionSecret, REDIS_URL: redisUrl },
    INSTALLATION: JSON.stringify(service.install({ userId: '2' })),
  };
  const children = Array.from({ length: processes }, () => cluster.fork(env));
  workers.push(...children.map((child) => connect<Worker>(child, () => primary)));
  const ended = children.map((child) => once(child, 'exit'));
  const listening = children.map((child) => once(child, 'listening'));
  const failed = Promise.race(ended).then(() => {
    throw new SettingsError('A process ended as soon as it was started.');
  });
  const [first] = await Promise.race([failed, Promise.all(listening)]);
  const port: number = first?.[0].port ?? 0;
  // Known only now where it is a free one.
  service.register(registrationAt(port));

  const isAsked = untilAskedToEnd();
  const pids = children.map((child) => child.process.pid).join(' and ');
  process.stdout.write(`\n  Open http://localhost:${port}\n\n  Processes ${pids} answer. Ctrl-C ends everything.\n`);
  await isAsked;
  for (const worker of workers) void worker.end();
  await Promise.all(ended);
  await service.close();
}

/** A worker: answers requests until the primary process says that it is over. Its settings are in its environment. */
async function work(): Promise<void> {
  // Ctrl-C reaches all processes of a terminal; the primary process decides when to end.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => {});
  const { port, sessionSecret } = serverSettings(process.env);
  const { REDIS_URL = '', INSTALLATION = '' } = process.env;
  const applicationGrant = grantOfOrganization(JSON.parse(INSTALLATION));
  const client = await createClient({ url: REDIS_URL }).on('error', console.error).connect();
  const server = createServer();
  // A new connection for each request, so that a browser meets both processes.
  server.maxRequestsPerSocket = 1;
  const worker = startWorker({
    server,
    primary: connect<Primary>(process, () => ({ ...worker, end })),
    // Without a cache, the panel shows the token that the other process has got at once.
    strategyOptions: {
      ...(realService(process.env) as StrategyOptions),
      ...{ applicationGrant, cache: false, encryptionKeys: sessionSecret },
    },
    sessionSecret,
    sessionStore: new RedisStore({ client }),
    tokenStore: redisTokenStore(client),
  });
  const end = async () => {
    await worker.end();
    await client.close();
    process.disconnect();
  };
  // All workers get the same port, also where it is a free one.
  await listen(server, port, '127.0.0.1');
}

/** Starts a Redis that keeps nothing, and ends with this process. @returns Its address. @throws {SettingsError} if it cannot */
async function startRedis(): Promise<string> {
  // Its own, and empty: Redis loads a dump that lies in its folder.
  const folder = mkdtempSync(join(tmpdir(), 'example-app-'));
  const path = join(folder, 'redis.sock');
  const args = ['--port', '0', '--unixsocket', path, '--dir', folder, '--save', '', '--appendonly', 'no'];
  // In a group of its own: Ctrl-C would end it before those who still save to it.
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  process.once('exit', () => {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await once(server, 'spawn').catch(() => {
    throw new SettingsError(
      'redis-server is not installed. Install it (apt-get install redis-server, brew install redis), ' +
        'or set REDIS_URL to one that runs, such as redis://localhost:6379.',
    );
  });
  for await (const line of createInterface(server.stdout)) {
    if (!line.includes('ready to accept connections')) continue;
    // Neither of them keeps this process from ending.
    server.stdout.destroy();
    server.unref();
    return `unix://${path}`;
  }
  throw new SettingsError('redis-server ended as soon as it was started.');
}

await run(cluster.isWorker ? work : main);
