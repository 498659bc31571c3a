import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Cluster, Redis } from 'ioredis';
import mysql from 'mysql2/promise';
import { memoryTokenStore, type TokenStore } from 'passport-oauth-app';
import { mysqlMigration, mysqlTokenStore } from 'passport-oauth-app/mysql';
import { postgresMigration, postgresTokenStore } from 'passport-oauth-app/postgres';
import { redisTokenStore } from 'passport-oauth-app/redis';
import { sqliteTokenStore } from 'passport-oauth-app/sqlite';
import pg from 'pg';
import { createClient, createCluster } from 'redis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { hasMariadb, startMariadb } from '../support/mariadb-server.js';
import { hasPostgres, startPostgres } from '../support/postgres-server.js';
import { hasRedis, startRedis } from '../support/redis-server.js';
import { startRedisCluster } from '../support/redis-topologies.js';
import { hasSqlite, sqlitePackages } from '../support/sqlite.js';

const COUNT = 100_000;
const RECORD = JSON.stringify({ version: 1, expiresAt: 1, sealed: 'x'.repeat(100) });
const TABLE = 'passport_oauth_app_grants';

async function listed(store: Pick<TokenStore, 'list'>, prefix?: string): Promise<Set<string>> {
  const ids = new Set<string>();
  for await (const id of store.list?.(prefix) ?? []) ids.add(id);
  return ids;
}

/** Lists all grants, beside a lock and a mark, while other calls are answered. */
async function expectAll(store: Required<Omit<TokenStore, 'watch'>>, count = COUNT): Promise<void> {
  const grant = JSON.parse(RECORD);
  await store.set('login:mark', grant);
  const ids = await store.lock('locked', () => listed(store));
  expect(ids.size).toBe(count);
  expect([...ids].filter((id) => !/^grant\d+$/.test(id))).toEqual([]);
  const ofPrefix = await listed(store, 'grant19');
  expect(ofPrefix).toEqual(new Set([...ids].filter((id) => id.startsWith('grant19'))));
  // Answered between two pages.
  const list = store.list()[Symbol.asyncIterator]();
  await list.next();
  expect(await store.get('grant1')).toEqual(grant);
  await list.return?.();
}

describe('100,000 grants are listed', () => {
  test('in memory', async () => {
    const store = memoryTokenStore();
    for (let index = 1; index <= COUNT; index += 1) await store.set(`grant${index}`, JSON.parse(RECORD));
    await expectAll(store);
  });

  test.skipIf(!hasRedis())('by Redis in short steps, also with a prefix of the client and odd characters', async () => {
    const server = await startRedis();
    const client = await createClient({ url: server.url }).connect();
    const prefix = 'a[b]*?:';
    const ioredis = new Redis(server.url, { keyPrefix: 'client*:' });
    onTestFinished(async () => {
      client.destroy();
      ioredis.disconnect();
      await server.stop();
    });
    const fill = (before: string, count: number) =>
      client.eval(`for i = 1, tonumber(ARGV[2]) do redis.call('set', ARGV[1] .. i, ARGV[3]) end`, {
        arguments: [before, String(count), RECORD],
      });
    await fill('oauth-app-grant:grant', COUNT);
    await fill('session:', 1_000);
    await client.configResetStat();
    await expectAll(redisTokenStore(client));
    const { calls = '0' } = /cmdstat_scan:calls=(?<calls>\d+)/.exec(await client.info('commandstats'))?.groups ?? {};
    expect(Number(calls)).toBeGreaterThan(COUNT / 1_000);
    await redisTokenStore(ioredis, { prefix }).set('odd', JSON.parse(RECORD));
    await redisTokenStore(client, { prefix: 'client*:ab*?:' }).set('other', JSON.parse(RECORD));
    expect(await listed(redisTokenStore(ioredis, { prefix }))).toEqual(new Set(['odd']));
  });

  test.skipIf(!hasRedis())(
    'by a Cluster of Redis (10,000 of them), on every primary, with both kinds of client',
    async () => {
      const topology = await startRedisCluster();
      const nodes = topology.ports.map((port) => ({ host: '127.0.0.1', port }));
      const nodeRedis = createCluster({ rootNodes: nodes.map((socket) => ({ socket })) });
      await nodeRedis.on('error', () => undefined).connect();
      const ioredis = new Cluster(nodes);
      await expect.poll(() => ioredis.status).toBe('ready');
      onTestFinished(async () => {
        nodeRedis.destroy();
        ioredis.disconnect();
        await topology.stop();
      });
      const count = 10_000;
      const keys = Array.from({ length: count }, (_, index) => `oauth-app-grant:grant${index}`);
      await Promise.all(keys.map((key) => ioredis.set(key, RECORD)));
      await expectAll(redisTokenStore(nodeRedis), count);
      await expectAll(redisTokenStore(ioredis), count);
    },
    120_000,
  );

  test.skipIf(!hasPostgres())(
    'by PostgreSQL along its primary key, where texts have an order of a language',
    async () => {
      const server = await startPostgres();
      const maker = new pg.Client(server.connectionString);
      await maker.connect();
      await maker.query(`CREATE DATABASE listed LOCALE_PROVIDER icu ICU_LOCALE 'en-US' TEMPLATE template0`);
      await maker.end();
      const pool = new pg.Pool({ connectionString: server.connectionString.replace(/\w+$/, 'listed'), max: 1 });
      onTestFinished(async () => {
        await pool.end();
        await server.stop();
      });
      await pool.query(postgresMigration());
      await pool.query(
        `INSERT INTO ${TABLE} SELECT 'grant' || i, 1, $1, now() + interval '1 day'
      FROM generate_series(1, ${COUNT}) AS i`,
        [RECORD],
      );
      await pool.query(`INSERT INTO ${TABLE} VALUES ('expired', 1, $1, now() - interval '1 day')`, [RECORD]);
      await pool.query(`ANALYZE ${TABLE}`);
      const scans = async () => {
        await pool.query('SELECT pg_stat_force_next_flush()');
        const { rows } = await pool.query('SELECT seq_scan FROM pg_stat_user_tables WHERE relname = $1', [TABLE]);
        return Number(rows[0].seq_scan);
      };
      const before = await scans();
      await expectAll(postgresTokenStore(pool));
      // Each page would be one more, if it were not read along the index.
      expect((await scans()) - before).toBeLessThan(10);
    },
  );

  test.skipIf(!hasMariadb())('by MariaDB along its primary key', async () => {
    const server = await startMariadb();
    const pool = mysql.createPool({ uri: server.uri, connectionLimit: 1 });
    onTestFinished(async () => {
      await pool.end();
      await server.stop();
    });
    await pool.query(mysqlMigration());
    const insert = `INSERT INTO ${TABLE} SELECT CONCAT('grant', seq), 1, ?, UTC_TIMESTAMP(3) + INTERVAL 1 DAY FROM seq_1_to_${COUNT}`;
    await pool.query(insert, [RECORD]);
    await pool.query('FLUSH STATUS');
    await expectAll(mysqlTokenStore(pool));
    const [rows] = await pool.query(
      `SHOW SESSION STATUS WHERE Variable_name IN ('Handler_read_rnd_next', 'Sort_rows')`,
    );
    // A status itself is a small table, which is read row by row.
    expect((rows as { Value: string }[]).every(({ Value }) => Number(Value) < 1_000)).toBe(true);
  });

  test.skipIf(!hasSqlite()).each(sqlitePackages)('by %s along its primary key', async (_name, open) => {
    const folder = await mkdtemp(join(tmpdir(), 'sqlite-'));
    const database = open(join(folder, 'grants'));
    onTestFinished(async () => {
      database.close();
      await rm(folder, { recursive: true });
    });
    const store = sqliteTokenStore(database);
    await store.get('creates the table');
    database.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${COUNT})
      INSERT INTO ${TABLE} SELECT 'grant' || i, 1, '${RECORD}', 4102444800000 FROM n`);
    await expectAll(store);
    const statements: string[] = [];
    const prepare = (sql: string) => {
      statements.push(sql);
      return database.prepare(sql);
    };
    await listed(sqliteTokenStore({ prepare, exec: (sql) => database.exec(sql) }));
    const [plan] = database.prepare(`EXPLAIN QUERY PLAN ${statements.at(-1)?.replaceAll('?', "''")}`).all();
    expect(JSON.stringify(plan)).toMatch(/SEARCH .* USING INDEX sqlite_autoindex_\w+ \(id>/);
  });
});
