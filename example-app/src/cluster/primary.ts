import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { startService, strategyOptionsFor } from '../emulated-service.js';
import { type BreakService, serviceBreaker } from '../incidents/service-faults.js';
import type { BurstOrder } from '../panel/burst.js';
import { Recorder } from '../panel/recorder.js';
import { closeServer, listen } from '../server.js';
import { type ServerSettings, SettingsError } from '../settings.js';
import type { Setup, ToPrimary, ToWorker } from './messages.js';
import { openRedis, type Redis } from './redis.js';

/** The running processes. */
export interface Primary {
  /** To be opened in a browser. */
  readonly url: string;
  /** Of the processes that answer. */
  readonly pids: readonly number[];
  close(): Promise<void>;
}

const count = 2;

/** Starts Redis, the emulated service, and the processes that answer. @throws {SettingsError} if it cannot */
export async function startPrimary(settings: ServerSettings, redisUrl: string | undefined): Promise<Primary> {
  const port = await usablePort(settings.port);
  const redis = await openRedis(redisUrl);
  try {
    return await startWorkers(redis, port, settings.sessionSecret);
  } catch (error) {
    await redis.close();
    throw error;
  }
}

async function startWorkers(redis: Redis, port: number, sessionSecret: string): Promise<Primary> {
  const recorder = new Recorder(Date.now);
  const service = await startService({ appPort: port, recorder });
  const setup = { port, redisUrl: redis.url, sessionSecret, strategyOptions: strategyOptionsFor(service) };
  const workers = Array.from({ length: count }, () => cluster.fork());
  const breakService = serviceBreaker(service);
  for (const worker of workers) serve(worker, workers, breakService, recorder);
  await Promise.all(workers.map((worker) => begin(worker, setup)));
  const close = async () => {
    await Promise.all(workers.map(end));
    await service.close();
    await redis.close();
  };
  return { url: `http://localhost:${port}`, pids: workers.map(({ process }) => process.pid ?? 0), close };
}

function begin(worker: Worker, setup: Setup): Promise<void> {
  return new Promise((resolve, reject) => {
    worker.once('exit', () => reject(new SettingsError('A process ended as soon as it was started.')));
    worker.on('message', ({ kind }: ToPrimary) => {
      if (kind === 'hello') tell(worker, { kind: 'setup', setup });
      if (kind === 'ready') resolve();
    });
  });
}

/** Serves the requests of a worker, and sends its events to all workers. */
function serve(worker: Worker, workers: readonly Worker[], breakService: BreakService, recorder: Recorder): void {
  worker.on('message', async (message: ToPrimary) => {
    if (message.kind === 'happening') {
      const entry = recorder.record(message.happening);
      if (entry) for (const each of workers) tell(each, { kind: 'entry', entry });
    }
    if (message.kind === 'fault') {
      await breakService(message.fault, message.userId);
      tell(worker, { kind: 'done', id: message.id });
    }
    if (message.kind === 'store') {
      for (const each of workers) tell(each, { kind: 'store', broken: message.broken });
      tell(worker, { kind: 'done', id: message.id });
    }
    if (message.kind === 'burst') {
      await Promise.all(workers.map((each, index) => burst(each, message.grantId, shareOf(message.order, index))));
      tell(worker, { kind: 'done', id: message.id });
    }
  });
}

function shareOf(order: BurstOrder, worker: number): BurstOrder {
  const each = order.count / count;
  return { ...order, from: order.from + worker * each, count: each };
}

function burst(worker: Worker, grantId: string, order: BurstOrder): Promise<void> {
  return new Promise((resolve) => {
    worker.on('message', function take(message: ToPrimary) {
      if (message.kind !== 'burst-done' || message.burst !== order.burst) return;
      worker.off('message', take);
      resolve();
    });
    tell(worker, { kind: 'burst', grantId, order });
  });
}

/** Sends a message. A worker that is about to end may have closed its channel already: it misses the message. */
function tell(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

async function end(worker: Worker): Promise<void> {
  if (worker.isDead()) return;
  tell(worker, { kind: 'end' });
  await once(worker, 'exit');
}

/** Returns the port that the workers will share. @throws {SettingsError} if it is taken */
async function usablePort(port: number | undefined): Promise<number> {
  const server = createServer();
  const usable = await listen(server, port, '127.0.0.1');
  await closeServer(server);
  return usable;
}
