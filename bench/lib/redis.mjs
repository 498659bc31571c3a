import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';

/** Starts a Redis of our own on a free port of loopback, without files. @returns {Promise<{ url: string, stop(): Promise<void> }>} */
export async function startRedis() {
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server = spawn('redis-server', options, { stdio: 'ignore' });
  const exited = once(server, 'exit');
  // It must not outlive us, however we end.
  const end = () => server.kill();
  process.once('exit', end);
  const url = `redis://127.0.0.1:${port}`;
  await answering(url);
  return {
    url,
    stop: async () => {
      process.off('exit', end);
      server.kill();
      await exited;
    },
  };
}

/** A connected client. */
export async function redisClient(url) {
  const client = createClient({ url });
  client.on('error', () => {});
  return await client.connect();
}

async function answering(url) {
  for (let tries = 0; tries < 100; tries += 1) {
    const client = createClient({ url, socket: { reconnectStrategy: false } });
    client.on('error', () => {});
    try {
      await client.connect();
      client.destroy();
      return;
    } catch {
      await pause(50);
    }
  }
  throw new Error('redis-server did not start');
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}
