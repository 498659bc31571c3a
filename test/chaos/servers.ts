import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { createClient } from 'redis';
import { vi } from 'vitest';
import { type StoreServer, shareStore } from '../processes/fleet.js';
import { hasMariadb, startMariadb } from '../support/mariadb-server.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { SENTINEL_NAME, startRedisCluster, startRedisSentinel } from '../support/redis-topologies.js';
import { hasSqlite, sqlitePackages } from '../support/sqlite.js';

/** Does harm; resolves to the function that ends it. */
export type Harm = () => Promise<() => unknown>;

/** A store with its servers, and the harm that can be done to them. */
export interface Target extends StoreServer {
  readonly harms: Readonly<Record<string, Harm>>;
}

type ClientPackage = 'redis' | 'ioredis';

/** The stores, and whether they are installed here. */
export const targets: Readonly<Record<string, readonly [isInstalled: boolean, start: () => Promise<Target>]>> = {
  'Redis, node-redis': [hasRedis(), () => startSingleRedis('redis')],
  'Redis, ioredis': [hasRedis(), () => startSingleRedis('ioredis')],
  'Redis Sentinel, node-redis': [hasRedis(), () => startSentinel('redis')],
  'Redis Sentinel, ioredis': [hasRedis(), () => startSentinel('ioredis')],
  'Redis Cluster, node-redis': [hasRedis(), () => startCluster('redis')],
  'Redis Cluster, ioredis': [hasRedis(), () => startCluster('ioredis')],
  PostgreSQL: [hasPostgres(), startPostgresTarget],
  MariaDB: [hasMariadb(), startMariadbTarget],
  SQLite: [hasSqlite(), startSqlite],
};

/** How many replicas confirm a write, with Sentinel and Cluster. `REPLICAS=0` shows what a failover loses otherwise. */
const replicas = Number(process.env.REPLICAS ?? 1);

const none = (): void => undefined;
const instantly = async (): Promise<void> => undefined;

async function startSingleRedis(client: ClientPackage): Promise<Target> {
  const server = await startRedis();
  const store = await shareStore(server, (lease) => ({ redis: server.url, client, lease }));
  const admin = async (...command: string[]): Promise<void> => {
    const connection = await createClient({ url: server.url }).on('error', none).connect();
    await connection.sendCommand(command);
    connection.destroy();
  };
  return {
    ...store,
    harms: {
      'kill -9, restart': async () => {
        await server.kill();
        return server.restart;
      },
      SIGSTOP: async () => freeze(server.pid),
      'CLIENT PAUSE ALL': async () => {
        await admin('CLIENT', 'PAUSE', '3000', 'ALL');
        return none;
      },
      'CLIENT PAUSE WRITE': async () => {
        await admin('CLIENT', 'PAUSE', '3000', 'WRITE');
        return none;
      },
      'CLIENT KILL, five times': async () => {
        for (let times = 0; times < 5; times += 1) await admin('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        return none;
      },
      'out of memory': async () => {
        await admin('CONFIG', 'SET', 'maxmemory', '1');
        return () => admin('CONFIG', 'SET', 'maxmemory', '0');
      },
    },
  };
}

async function startSentinel(client: ClientPackage): Promise<Target> {
  const servers = await startRedisSentinel(2);
  const [sentinel = 0] = servers.ports;
  const address = { ports: servers.ports, name: SENTINEL_NAME };
  const store = await shareStore({ kill: instantly, restart: instantly, stop: servers.stop }, (lease) => ({
    sentinel: address,
    client,
    replicas,
    lease,
  }));
  const primary = async (): Promise<number> => {
    const found = await servers.command(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME);
    return Number((found as string[])[1]);
  };
  return {
    ...store,
    harms: {
      'failover by command': async () => {
        const former = await primary();
        await servers.command(sentinel, 'SENTINEL', 'FAILOVER', SENTINEL_NAME);
        // Until then it takes writes, which are lost.
        const isReplica = async () => String(await servers.command(former, 'ROLE')).startsWith('slave');
        return () => vi.waitUntil(isReplica, { timeout: 30_000, interval: 200 });
      },
      'kill -9 of the primary': async () => {
        const port = await primary();
        await servers.kill(port);
        return () => servers.restart(port);
      },
    },
  };
}

async function startCluster(client: ClientPackage): Promise<Target> {
  const servers = await startRedisCluster();
  const store = await shareStore({ kill: instantly, restart: instantly, stop: servers.stop }, (lease) => ({
    cluster: { ports: servers.ports },
    client,
    replicas,
    lease,
  }));
  const [, killed = 0] = servers.ports;
  return {
    ...store,
    harms: {
      'failover by command': async () => {
        // The fourth node replicates the first one.
        await servers.command(servers.nodes[3]?.port ?? 0, 'CLUSTER', 'FAILOVER');
        return none;
      },
      'kill -9 of a primary': async () => {
        await servers.kill(killed);
        return () => servers.restart(killed);
      },
    },
  };
}

async function startPostgresTarget(): Promise<Target> {
  const server = await startPostgres();
  const store = await shareStore(server, (lease) => ({ postgres: server.connectionString, lease }));
  const admin = async (...statements: string[]): Promise<void> => {
    const client = new pg.Client({ connectionString: server.connectionString });
    client.on('error', none);
    await client.connect();
    for (const statement of statements) await client.query(statement);
    await client.end();
  };
  return {
    ...store,
    harms: {
      'kill, restart': async () => {
        await server.kill();
        return server.restart;
      },
      SIGSTOP: async () => freezeAll(server.pid),
      pg_terminate_backend: async () => {
        await admin(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`);
        return none;
      },
      'statement time-out of 1 ms': async () => {
        const reset = ['ALTER SYSTEM RESET statement_timeout', 'SELECT pg_reload_conf()'];
        await admin("ALTER SYSTEM SET statement_timeout = '1ms'", 'SELECT pg_reload_conf()');
        return () => admin('SET statement_timeout = 0', ...reset);
      },
      'pool exhausted by a locked table': async () => {
        const client = new pg.Client({ connectionString: server.connectionString });
        await client.connect();
        await client.query('BEGIN; LOCK TABLE passport_oauth_app_grants IN ACCESS EXCLUSIVE MODE');
        return () => client.end();
      },
    },
  };
}

async function startMariadbTarget(): Promise<Target> {
  const server = await startMariadb();
  const store = await shareStore(server, (lease) => ({ mysql: server.uri, lease }));
  return {
    ...store,
    harms: {
      'kill -9, restart': async () => {
        await server.kill();
        return server.restart;
      },
      SIGSTOP: async () => freeze(server.pid),
      'KILL of every connection': async () => {
        const pool = createPool({ uri: server.uri, connectionLimit: 1 });
        const [rows] = await pool.query(
          'SELECT id FROM information_schema.processlist WHERE user = ? AND id <> CONNECTION_ID()',
          ['app'],
        );
        for (const { id } of rows as { id: number }[]) await pool.query(`KILL ${Number(id)}`).catch(none);
        await pool.end();
        return none;
      },
      'pool exhausted by a locked table': async () => {
        const pool = createPool({ uri: server.uri, connectionLimit: 1 });
        await pool.query('LOCK TABLES passport_oauth_app_grants WRITE');
        return () => pool.end();
      },
    },
  };
}

async function startSqlite(): Promise<Target> {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-'));
  const file = join(folder, 'grants');
  const stop = () => rm(folder, { recursive: true, force: true });
  const store = await shareStore({ kill: instantly, restart: instantly, stop }, (lease) => ({ sqlite: file, lease }));
  return {
    ...store,
    harms: {
      'locked by another process': async () => {
        const [[, open] = []] = sqlitePackages;
        const database = open?.(file);
        database?.exec('BEGIN EXCLUSIVE');
        return () => {
          database?.exec('COMMIT');
          database?.close();
        };
      },
    },
  };
}

function freeze(pid: number): () => void {
  process.kill(pid, 'SIGSTOP');
  return () => process.kill(pid, 'SIGCONT');
}

/** Freezes a process and its children: each connection to PostgreSQL is a process. */
async function freezeAll(pid: number): Promise<() => void> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(pid)]);
  const thaws = [
    pid,
    ...stdout
      .split('\n')
      .map(Number)
      .filter((child) => child > 0),
  ].map(freeze);
  return () => {
    for (const thaw of thaws) thaw();
  };
}
