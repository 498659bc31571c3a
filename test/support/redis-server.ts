import { createClient } from 'redis';
import { afterAll, beforeAll } from 'vitest';
import { type DataServer, startDataServer } from './data-server.js';
import { findExecutable, isInstalled } from './service-process.js';

/** A Redis of the tests' own. */
export interface RedisServer extends DataServer {
  readonly url: string;
}

/**
 * The append-only file is written before the answer goes out: a killed process loses nothing that it confirmed. Only a crash of the
 * whole machine could, without fsync, whose wait for a busy disk holds up all writes.
 */
export const PERSISTENCE: readonly string[] = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'no'];

const executable = findExecutable('redis-server');

/** Whether Redis is installed; see {@link isInstalled}. For `describe.skipIf(!hasRedis())`. */
export const hasRedis = (): boolean => isInstalled('redis-server', executable);

/** Starts Redis on a free port, with its data in a folder of its own. */
export async function startRedis(): Promise<RedisServer> {
  const server = await startDataServer({
    name: 'redis',
    command: (folder, port) => ({
      file: executable ?? 'redis-server',
      args: ['--port', `${port}`, '--bind', '127.0.0.1', '--dir', folder, ...PERSISTENCE],
      ready: /Ready to accept connections/,
    }),
  });
  return Object.assign(server, { url: `redis://127.0.0.1:${server.port}` });
}

/** A client of node-redis. */
export type RedisClient = ReturnType<typeof createClient>;

/** Starts Redis for the tests of a suite. @param take Gets a client that is connected, before the first test. */
export function connectForSuite(take: (client: RedisClient) => void): void {
  let server: RedisServer | undefined;
  let client: RedisClient | undefined;
  beforeAll(async () => {
    server = await startRedis();
    client = createClient({ url: server.url });
    await client.connect();
    take(client);
  });
  afterAll(async () => {
    client?.destroy();
    await server?.stop();
  });
}
