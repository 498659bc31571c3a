import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endService, findExecutable, freePort, isInstalled, startService } from './service-process.js';

/** A Redis of the tests' own. */
export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** Of the process that runs now; a restart changes it. For SIGSTOP and SIGCONT. */
  readonly pid: number;
  /** Ends it for good and removes its data. May be called at any time, and more than once. */
  stop(): Promise<void>;
  /** Ends it by SIGKILL; the data stays, every write that was answered included. */
  kill(): Promise<void>;
  /** Ends it if it runs, and starts it on the same port with the same data. */
  restart(): Promise<void>;
}

const executable = findExecutable('redis-server');

/** Whether Redis is installed; see {@link isInstalled}. For `describe.skipIf(!hasRedis())`. */
export function hasRedis(): boolean {
  return isInstalled('redis-server', executable);
}

/** Starts Redis on a free port, with its data in a folder of its own. */
export async function startRedis(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'redis-'));
  const port = await freePort();
  let child = await launch(port, folder);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return child.pid ?? 0;
    },
    stop: async () => {
      await endService(child, 'SIGKILL');
      await rm(folder, { recursive: true, force: true });
    },
    kill: () => endService(child, 'SIGKILL'),
    restart: async () => {
      await endService(child, 'SIGTERM');
      child = await launch(port, folder);
    },
  };
}

async function launch(port: number, folder: string): Promise<ChildProcess> {
  // The append-only file is written before the answer goes out: a killed process loses nothing that it confirmed.
  const args = ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes'];
  return startService({ file: executable ?? 'redis-server', args, ready: /Ready to accept connections/ });
}
