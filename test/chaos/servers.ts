import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createPool } from 'mysql2/promise';
import pg from 'pg';
import { createClient } from 'redis';
import { vi } from 'vitest';
import { type StoreServer, shareStore } from '../processes/fleet.js';
import { hasMariadb, startMariadb } from '../support/mariadb-server.js';
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer-server.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { SENTINEL_NAME, startRedisCluster, startRedisSentinel } from '../support/redis-topologies.js';
import { hasSqlite, sqlitePackages } from '../support/sqlite.js';

/** Does harm; resolves to the function that ends it. */
export type Harm = () => Promise<() => unknown>;

/** A store with its servers, and the harm that can be done to them. */
export interface Target extends StoreServer {
  readonly harms: Readonly<Record<string, Harm>>;
  /** The harms after which the store may have forgotten what it had confirmed. */
  readonly forgets: readonly string[];
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
  'PostgreSQL, serializable': [hasPostgres(), startSerializable],
  'PgBouncer, transaction mode': [hasPostgres() && hasPgbouncer(), startBounced],
  MariaDB: [hasMariadb(), startMariadbTarget],
  SQLite: [hasSqlite(), startSqlite],
};

/** How many replicas confirm a write: all that a primary has. `REPLICAS=0` and `REPLICAS=1` show what a failover loses otherwise. */
const replicasOf = (all: number): number => Number(process.env.REPLICAS ?? all);

/** The policies by which Redis takes keys when its memory is full; `noeviction` is tried as "out of memory". */
const POLICIES = [
  ...['volatile-ttl', 'volatile-lru', 'volatile-lfu', 'volatile-random'],
  ...['allkeys-lru', 'allkeys-lfu', 'allkeys-random'],
];
const [EMPTY, evictionOf] = ['kill -9, restart empty', (policy: string): string => `maxmemory, ${policy}`];

const none = (): void => undefined;
const instantly = async (): Promise<void> => undefined;
const harmless = { kill: instantly, restart: instantly };

function targetOf(store: StoreServer, forgets: Target['forgets'], harms: Target['harms']): Target {
  return { ...store, forgets, harms };
}

/** Harm that ends by itself, or is over at once. */
const passing =
  (work: () => Promise<unknown>): Harm =>
  async () => {
    await work();
    return none;
  };

const restarting =
  (server: Pick<StoreServer, 'kill' | 'restart'>): Harm =>
  async () => {
    await server.kill();
    return server.restart;
  };

async function startSingleRedis(client: ClientPackage): Promise<Target> {
  const server = await startRedis();
  const store = await shareStore(server, (lease) => ({ redis: server.url, client, lease }));
  const admin = async (...command: string[]): Promise<void> => {
    const connection = await createClient({ url: server.url }).on('error', none).connect();
    await connection.sendCommand(command);
    connection.destroy();
  };
  const connection = await createClient({ url: server.url }).on('error', none).connect();
  /** Writes sessions of 4 KiB, which expire before the grants do. */
  const fill = async (name: string, count: number): Promise<void> => {
    const names = Array.from({ length: count }, (_, index) => `session:${name}${index}`);
    await Promise.all(names.map((each) => connection.set(each, 'x'.repeat(4096), { EX: 86_400 })));
  };
  await fill('before', 500);
  const evict = async (policy: string): Promise<() => unknown> => {
    const used = Number(/^used_memory:([0-9]+)/m.exec(await connection.info('memory'))?.[1]);
    await admin('CONFIG', 'SET', 'maxmemory-policy', policy, 'maxmemory', String(used));
    let count = 0;
    // As many sessions as there were before, while the harm lasts.
    const logins = setInterval(() => void fill(`after${count++}-`, 17).catch(none), 100);
    return () => {
      clearInterval(logins);
      return admin('CONFIG', 'SET', 'maxmemory', '0');
    };
  };
  const stop = async () => {
    connection.destroy();
    await store.stop();
  };
  const forgets = [EMPTY, ...POLICIES.map(evictionOf)];
  return targetOf({ ...store, stop }, forgets, {
    'kill -9, restart': restarting(server),
    [EMPTY]: async () => {
      await admin('FLUSHALL');
      return restarting(server)();
    },
    ...Object.fromEntries(POLICIES.map((policy) => [evictionOf(policy), () => evict(policy)])),
    SIGSTOP: async () => freeze(server.pid),
    'CLIENT PAUSE ALL': passing(() => admin('CLIENT', 'PAUSE', '3000', 'ALL')),
    'CLIENT PAUSE WRITE': passing(() => admin('CLIENT', 'PAUSE', '3000', 'WRITE')),
    'CLIENT KILL, five times': async () => {
      for (let times = 0; times < 5; times += 1) await admin('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
      return none;
    },
    'out of memory': async () => {
      await admin('CONFIG', 'SET', 'maxmemory', '1');
      return () => admin('CONFIG', 'SET', 'maxmemory', '0');
    },
  });
}

async function startSentinel(client: ClientPackage): Promise<Target> {
  const servers = await startRedisSentinel({ replicas: 2, downAfterMs: 1000 });
  const [sentinel = 0] = servers.ports;
  const address = { ports: servers.ports, name: SENTINEL_NAME };
  const store = await shareStore({ ...harmless, stop: servers.stop }, (lease) => ({
    sentinel: address,
    client,
    replicas: replicasOf(2),
    lease,
  }));
  const primary = async (): Promise<number> => {
    const found = await servers.command(sentinel, 'SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SENTINEL_NAME);
    return Number((found as string[])[1]);
  };
  return targetOf(store, [], {
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
  });
}

async function startCluster(client: ClientPackage): Promise<Target> {
  const servers = await startRedisCluster({ downAfterMs: 1000 });
  const store = await shareStore({ ...harmless, stop: servers.stop }, (lease) => ({
    cluster: { ports: servers.ports },
    client,
    replicas: replicasOf(1),
    lease,
  }));
  const [, killed = 0] = servers.ports;
  return targetOf(store, [], {
    'failover by command': passing(async () => {
      // On a busy machine, a replica may have taken over by itself before.
      const roles = await Promise.all(servers.nodes.map(({ port }) => servers.command(port, 'ROLE')));
      const replica = roles.findIndex((role) => String(role).startsWith('slave'));
      await servers.command(servers.nodes[replica]?.port ?? 0, 'CLUSTER', 'FAILOVER');
    }),
    'kill -9 of a primary': async () => {
      await servers.kill(killed);
      return () => servers.restart(killed);
    },
  });
}

/** Runs statements over a connection of their own. */
async function runSql({ connectionString }: PostgresServer, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on('error', none);
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

const TERMINATE = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`;

async function startSerializable(): Promise<Target> {
  const server = await startPostgres();
  const options = encodeURIComponent('-c default_transaction_isolation=serializable');
  const connectionString = `${server.connectionString}?options=${options}`;
  const store = await shareStore(server, (lease) => ({ postgres: connectionString, lease }));
  return targetOf(store, [], {
    'transactions that read and write all rows': async () => {
      let isEnded = false;
      const rewrite = async (): Promise<void> => {
        const client = new pg.Client({ connectionString });
        await client.connect();
        while (!isEnded) {
          const update = 'UPDATE passport_oauth_app_grants SET version = version';
          await client.query(`BEGIN; SELECT count(*) FROM passport_oauth_app_grants; ${update}`).catch(none);
          await client.query('COMMIT').catch(none);
          await delay(5);
        }
        await client.end();
      };
      const ended = Promise.all([rewrite(), rewrite()]);
      return () => {
        isEnded = true;
        return ended;
      };
    },
    pg_terminate_backend: passing(() => runSql(server, TERMINATE)),
  });
}

async function startBounced(): Promise<Target> {
  const server = await startPostgres();
  const bouncer = await startPgbouncer(server);
  const stop = async (): Promise<void> => {
    await bouncer.stop();
    await server.stop();
  };
  const store = await shareStore({ kill: bouncer.kill, restart: bouncer.restart, stop }, (lease) => ({
    postgres: bouncer.connectionString,
    lease,
  }));
  return targetOf(store, [], {
    'kill -9 of PgBouncer, restart': restarting(bouncer),
    'SIGSTOP of PgBouncer': async () => freeze(bouncer.pid),
    'kill of PostgreSQL, restart': restarting(server),
    'PostgreSQL read-only': async () => {
      const reset = ['ALTER SYSTEM RESET default_transaction_read_only', 'SELECT pg_reload_conf()'];
      await runSql(server, 'ALTER SYSTEM SET default_transaction_read_only = on', 'SELECT pg_reload_conf()');
      return () => runSql(server, ...reset);
    },
  });
}

async function startPostgresTarget(): Promise<Target> {
  const server = await startPostgres();
  const store = await shareStore(server, (lease) => ({ postgres: server.connectionString, lease }));
  return targetOf(store, [], {
    'kill, restart': restarting(server),
    SIGSTOP: async () => freezeAll(server.pid),
    pg_terminate_backend: passing(() => runSql(server, TERMINATE)),
    'statement time-out of 1 ms': async () => {
      const reset = ['ALTER SYSTEM RESET statement_timeout', 'SELECT pg_reload_conf()'];
      await runSql(server, "ALTER SYSTEM SET statement_timeout = '1ms'", 'SELECT pg_reload_conf()');
      return () => runSql(server, 'SET statement_timeout = 0', ...reset);
    },
    'pool exhausted by a locked table': async () => {
      const client = new pg.Client({ connectionString: server.connectionString });
      await client.connect();
      await client.query('BEGIN; LOCK TABLE passport_oauth_app_grants IN ACCESS EXCLUSIVE MODE');
      return () => client.end();
    },
  });
}

async function startMariadbTarget(): Promise<Target> {
  const server = await startMariadb();
  const store = await shareStore(server, (lease) => ({ mysql: server.uri, lease }));
  return targetOf(store, [], {
    'kill -9, restart': restarting(server),
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
  });
}

async function startSqlite(): Promise<Target> {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-'));
  const file = join(folder, 'grants');
  const stop = () => rm(folder, { recursive: true, force: true });
  const store = await shareStore({ ...harmless, stop }, (lease) => ({ sqlite: file, lease }));
  return targetOf(store, [], {
    'locked by another process': async () => {
      const [[, open] = []] = sqlitePackages;
      const database = open?.(file);
      // The processes are at work: node:sqlite waits for nobody by itself.
      database?.exec('PRAGMA busy_timeout = 5000');
      database?.exec('BEGIN EXCLUSIVE');
      return () => {
        database?.exec('COMMIT');
        database?.close();
      };
    },
  });
}

function freeze(pid: number): () => void {
  process.kill(pid, 'SIGSTOP');
  return () => process.kill(pid, 'SIGCONT');
}

/** Freezes a process and its children: each connection to PostgreSQL is a process. */
async function freezeAll(pid: number): Promise<() => void> {
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=', '--ppid', String(pid)]);
  const thaws = [pid, ...(stdout.match(/\d+/g) ?? []).map(Number)].map(freeze);
  return () => {
    for (const thaw of thaws) thaw();
  };
}
