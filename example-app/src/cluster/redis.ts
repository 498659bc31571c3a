import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { closeServer, listen } from '../server.js';
import { SettingsError } from '../settings.js';

/** A running Redis. */
export interface Redis {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Returns the Redis at `url`, or starts one for this run that keeps nothing.
 *
 * @throws {SettingsError} if Redis is not installed
 */
export async function openRedis(url: string | undefined): Promise<Redis> {
  if (url) return { url, close: async () => {} };
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  // In a group of its own: Ctrl-C would end it before those who still save to it.
  const server = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await ready(server);
  return {
    url: `redis://127.0.0.1:${port}`,
    close: async () => {
      server.kill();
      await once(server, 'exit');
    },
  };
}

function ready(server: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', () => reject(notInstalled()));
    server.once('exit', () => reject(new SettingsError('redis-server ended as soon as it was started.')));
    if (!server.stdout) return;
    createInterface({ input: server.stdout }).on('line', (line) => {
      if (line.includes('Ready to accept connections')) resolve();
    });
  });
}

function notInstalled(): SettingsError {
  return new SettingsError(
    'redis-server is not installed. Install it (apt-get install redis-server, brew install redis), ' +
      'or set REDIS_URL to one that runs, such as redis://localhost:6379.',
  );
}

async function freePort(): Promise<number> {
  const server = createServer();
  const port = await listen(server, 0, '127.0.0.1');
  await closeServer(server);
  return port;
}
