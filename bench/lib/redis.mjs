import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { createClient } from 'redis';
import { onCore } from './cores.mjs';
import { freePort } from './free-port.mjs';

/**
 * Starts a Redis of our own on a free port of loopback, without files.
 *
 * @param {{ core?: string }} [options] `core`: the only one that it runs on
 * @returns {Promise<{ url: string, cpuUs(): Promise<number>, stop(): Promise<void> }>} `cpuUs`: of the server so far
 */
export async function startRedis({ core } = {}) {
  const port = await freePort();
  const options = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const [program, ...before] = [...onCore(core), 'redis-server'];
  const server = spawn(program, [...before, ...options], { stdio: 'ignore' });
  const exited = once(server, 'exit');
  // It must not outlive us, however we end.
  const end = () => server.kill();
  process.once('exit', end);
  const url = `redis://127.0.0.1:${port}`;
  await answering(url);
  return {
    url,
    cpuUs: async () => {
      const client = await redisClient(url);
      const text = await client.info('cpu');
      client.destroy();
      const seconds = ['used_cpu_user', 'used_cpu_sys'].map((name) =>
        Number(new RegExp(`${name}:([\\d.]+)`).exec(text)?.[1]),
      );
      return (seconds[0] + seconds[1]) * 1e6;
    },
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
