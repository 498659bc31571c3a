import { createPool as createCallbackPool } from 'mysql2';
import { createPool, type Pool, type PoolOptions } from 'mysql2/promise';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { type MysqlPoolLike, mysqlMigration, mysqlTokenStore } from 'passport-oauth-app/mysql';
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest';
import { hasMariadb, type MariadbServer, startMariadb } from '../support/mariadb-server.js';
import { storeChecks, testEach } from '../support/store-checks.js';
import { testSqlStore } from './sql-store.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const forever = (): Promise<never> => new Promise(() => undefined);

describe.skipIf(!hasMariadb())('with MariaDB', () => {
  let mariadb: MariadbServer;
  const pools: { end(): unknown }[] = [];

  const connect = (options: PoolOptions = {}): Pool => {
    const pool = createPool({ uri: mariadb.uri, ...options });
    pools.push(pool);
    return pool;
  };
  const rows = async (pool: Pool, sql: string): Promise<unknown> => (await pool.query(sql))[0];

  beforeAll(async () => {
    mariadb = await startMariadb();
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await mariadb.stop();
  });

  describe('passes every check, with several pools', () => {
    let turn = 0;
    const few: Pool[] = [];
    beforeAll(() => void few.push(connect(), connect(), connect()));
    const open = (options: object) => mysqlTokenStore(few[turn++ % few.length] ?? connect(), options);
    testEach(storeChecks(open));
  });

  testSqlStore({
    open: (options) => mysqlTokenStore(connect(), options),
    query: (sql) => rows(connect(), sql),
    now: 'UTC_TIMESTAMP(3)',
    secondsLeft: 'TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(3), expires_at)',
  });

  test('passes every check with one connection for everything', async () => {
    const pool = connect({ connectionLimit: 1 });
    for (const { run } of tokenStoreChecks(() => mysqlTokenStore(pool))) await run();
  });

  test('refuses connections that commit nothing by themselves, at its first use, and says what to set', async () => {
    const pool = connect();
    pool.on('connection', (connection) => void connection.query('SET autocommit = 0'));
    const store = mysqlTokenStore(pool);
    for (const call of [
      () => store.get('uncommitted'),
      () => store.set('uncommitted', grant),
      () => store.lock('uncommitted', async () => 1),
    ])
      await expect(call()).rejects.toThrow(/have autocommit = 0.* Give mysqlTokenStore a pool with autocommit = 1/);
    expect(await mysqlTokenStore(connect()).get('uncommitted')).toBeUndefined();
  });

  test('refuses read-only connections at its first use, also later, and says what to set', async () => {
    const message = /^The connections of the pool are read-only.* pool of the primary with transaction_read_only = OFF/;
    const pool = connect();
    pool.on('connection', (connection) => void connection.query('SET SESSION TRANSACTION READ ONLY'));
    await expect(mysqlTokenStore(pool).get('read-only')).rejects.toThrow(message);
    const one = connect({ connectionLimit: 1 });
    const store = mysqlTokenStore(one);
    expect(await store.get('read-only')).toBeUndefined();
    await one.query('SET SESSION TRANSACTION READ ONLY');
    await expect(store.set('read-only', grant)).rejects.toThrow(message);
    await one.query('SET SESSION TRANSACTION READ WRITE');
    await store.set('read-only', grant);
  });

  test('passes every check with a callback pool', async () => {
    const pool = createCallbackPool(mariadb.uri);
    pools.push(pool);
    for (const { run } of tokenStoreChecks(() => mysqlTokenStore(pool))) await run();
  });

  test('passes every check under settings of the application that change the form of results', async () => {
    const pool = connect({
      ...{ rowsAsArray: true, namedPlaceholders: true, nestTables: '_', dateStrings: true, timezone: '+05:30' },
      ...{ charset: 'latin1', supportBigNumbers: true, bigNumberStrings: true, flags: ['-FOUND_ROWS'] },
    });
    const table = 'Other_Grants';
    for (const { run } of tokenStoreChecks(() => mysqlTokenStore(pool, { table }))) await run();
    expect(await rows(connect(), `SELECT id FROM ${table}`)).toEqual([]);
  });

  test('passes every check where transactions are serializable', async () => {
    await connect().query('SET GLOBAL TRANSACTION ISOLATION LEVEL SERIALIZABLE');
    const pool = connect();
    for (const { run } of tokenStoreChecks(() => mysqlTokenStore(pool, { table: 'grants.serializable' }))) await run();
    await connect().query('SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ');
  });

  test('needs no privilege to create a table that the migration has created', async () => {
    const owner = connect();
    await owner.query(mysqlMigration({ table: 'migrated' }));
    await owner.query(mysqlMigration({ table: 'migrated' }));
    await owner.query("CREATE USER reader@'%' IDENTIFIED BY 'reader'");
    await owner.query("GRANT SELECT, INSERT, UPDATE, DELETE ON grants.migrated TO reader@'%'");
    const uri = mariadb.uri.replace('app:app', 'reader:reader');
    const store = mysqlTokenStore(connect({ uri }), { table: 'migrated' });
    await store.lock('id', () => store.set('id', grant));
    expect(await store.get('id')).toEqual(grant);
  });

  test('deletes all expired rows in passing, a thousand at a time', async () => {
    const pool = connect({ connectionLimit: 1 });
    await pool.query(mysqlMigration({ table: 'swept' }));
    await pool.query(`INSERT INTO swept SELECT CONCAT('old', seq), 1, '{}', '2000-01-01' FROM seq_1_to_1500`);
    const count = async (): Promise<unknown> => rows(pool, 'SELECT COUNT(*) AS n FROM swept');
    await mysqlTokenStore(pool, { table: 'swept' }).set('a', grant);
    expect(await count()).toEqual([{ n: 501 }]);
    await expect.poll(count).toEqual([{ n: 1 }]);
  });

  test('rejects while MariaDB is down, returns the result of work that runs, and works again after its restart', async () => {
    const server = await startMariadb();
    const pool = createPool(server.uri);
    const store = mysqlTokenStore(pool);
    await store.set('id', grant);
    const result = await store.lock('id', async () => {
      await server.kill();
      return 'result';
    });
    expect(result).toBe('result');
    for (const call of [store.get('id'), store.set('id', grant), store.delete('id'), store.update('id', grant, 1)]) {
      await expect(call).rejects.toMatchObject({ name: 'TokenStoreError', status: 503 });
    }
    await server.restart();
    expect(await store.get('id')).toEqual(grant);
    await pool.end();
    await server.stop();
  });
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const pool: MysqlPoolLike = { query: forever, execute: forever };
  // @ts-expect-error: not a pool
  expect(() => mysqlTokenStore({})).toThrow(
    /^pool: expected a pool of mysql2, got an object without the method query, execute/,
  );
  // @ts-expect-error: a pool of the package mysql, which has no promises
  expect(() => mysqlTokenStore({ query: forever })).toThrow(/^pool: expected a pool of mysql2/);
  // @ts-expect-error: misspelt
  expect(() => mysqlTokenStore(pool, { tabel: 'x' })).toThrow(/^tabel: is not an option of mysqlTokenStore/);
  for (const table of ['', 'a b', 'a`b', 'a.b.c', 'x'.repeat(53)]) {
    expect(() => mysqlTokenStore(pool, { table })).toThrow(/^table: expected a name/);
    expect(() => mysqlMigration({ table })).toThrow(/^table: expected a name/);
  }
});

test('takes the pools and connections of mysql2 by their types', () => {
  expectTypeOf<Pool>().toExtend<MysqlPoolLike>();
  expectTypeOf<ReturnType<typeof createCallbackPool>>().toExtend<MysqlPoolLike>();
});
