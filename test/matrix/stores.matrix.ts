import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasMariadb, type MariadbServer, startMariadb } from '../support/mariadb-server.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { hasRedis, type RedisServer, startRedis } from '../support/redis-server.js';
import { type RedisTopology, startRedisCluster } from '../support/redis-topologies.js';
import { type Installation, install } from './installation.js';

/** Session stores, and whether `sessionTokenStore` has a lock over them. */
const SESSION_STORES: readonly (readonly [name: string, locks: boolean])[] = [
  ['memorystore', false],
  ['session-file-store', false],
  ['connect-redis 6', false],
  ['connect-redis 7', false],
  ['connect-redis 8', false],
  ['connect-redis 9', true],
  ['connect-pg-simple', true],
  ['express-mysql-session', false],
  ['connect-sqlite3', false],
  ['connect-session-knex', false],
  ['connect-session-sequelize, PostgreSQL', false],
  ['connect-session-sequelize, MariaDB', false],
];

/** Clients that a token store takes, beside those under test in test/stores; with the version of Node that one needs. */
const CLIENTS: readonly (readonly [name: string, node: string | undefined])[] = [
  ['redis 4', undefined],
  ['redis 5', undefined],
  ['redis 4, Cluster', undefined],
  ['redis 5, Cluster', undefined],
  ['iovalkey', undefined],
  ['better-sqlite3', undefined],
  ['node:sqlite', '24'],
  ['node:sqlite', '26'],
];

const isInstalled = hasRedis() && hasPostgres() && hasMariadb();

describe.skipIf(!isInstalled)('every check of a token store passes', () => {
  let installation: Installation;
  let redis: RedisServer;
  let cluster: RedisTopology;
  let postgres: PostgresServer;
  let mariadb: MariadbServer;

  beforeAll(async () => {
    installation = await install(['stores']);
    redis = await startRedis();
    cluster = await startRedisCluster();
    postgres = await startPostgres();
    mariadb = await startMariadb();
  }, 1_200_000);
  afterAll(async () => {
    await Promise.all([redis, cluster, postgres, mariadb].map((server) => server?.stop()));
    await installation?.remove();
  });

  const check = async (name: string, node?: string | undefined): Promise<{ failed: string[]; locks: boolean }> => {
    const folder = await mkdtemp(join(tmpdir(), 'store-'));
    const settings = {
      ...{ name, folder, redis: redis.url, cluster: cluster.ports },
      ...{ postgres: postgres.connectionString, mysql: mariadb.uri },
    };
    const { program, cwd } = installation.stores(node);
    const { stdout } = await promisify(execFile)(program, ['stores.mjs', JSON.stringify(settings)], { cwd });
    await rm(folder, { recursive: true, force: true });
    return JSON.parse(stdout);
  };

  test.each(SESSION_STORES)('over %s', async (name, locks) => {
    expect(await check(name)).toEqual({ failed: [], locks });
  });

  test.each(CLIENTS)('over %s', async (name, node) => {
    expect(await check(name, node)).toEqual({ failed: [], locks: true });
  });
});
