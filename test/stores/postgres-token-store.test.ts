import type { TokenStore } from 'passport-oauth-app';
import { type PostgresPoolLike, postgresMigration, postgresTokenStore } from 'passport-oauth-app/postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { hasPgbouncer, type PgbouncerServer, startPgbouncer } from '../support/pgbouncer-server.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { storeChecks, testEach } from '../support/store-checks.js';
import { until } from '../support/until.js';
import { testSqlStore } from './sql-store.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const TABLE = 'passport_oauth_app_grants';
const forever = (): Promise<never> => new Promise(() => undefined);

describe.skipIf(!hasPostgres())('with PostgreSQL', () => {
  let postgres: PostgresServer;
  const pools: pg.Pool[] = [];

  function connect(config: pg.PoolConfig = {}): pg.Pool {
    const pool = new pg.Pool({ connectionString: postgres.connectionString, ...config });
    pool.on('error', () => undefined);
    pools.push(pool);
    return pool;
  }

  beforeAll(async () => {
    postgres = await startPostgres();
  });
  afterAll(async () => {
    await Promise.all(pools.map((pool) => pool.end()));
    await postgres.stop();
  });

  describe('passes every check, with several pools', () => {
    let turn = 0;
    const few: PostgresPoolLike[] = [];
    beforeAll(() => void few.push(connect(), connect(), connect()));
    const open = (options: object) => postgresTokenStore(few[turn++ % few.length] ?? connect(), options);
    testEach(storeChecks(open));
  });

  testSqlStore({
    open: (options) => postgresTokenStore(connect(), options),
    query: async (sql) => (await connect().query(sql)).rows,
    now: 'now()',
    secondsLeft: 'extract(epoch FROM expires_at - now())::int',
  });

  describe('passes every check, with one connection for everything', () => {
    let one: PostgresPoolLike = { query: forever };
    beforeAll(() => {
      one = connect({ max: 1 });
    });
    testEach(storeChecks((options) => postgresTokenStore(one, options)));
  });

  test('passes every check where transactions are serializable, in a schema of its own', async () => {
    const pool = connect({ options: '-c default_transaction_isolation=serializable' });
    await pool.query('CREATE SCHEMA app');
    const checks = storeChecks((options) => postgresTokenStore(pool, { table: 'app.Grants', ...options }));
    // One after the other: transactions at once are tried again and again until one of them is slower than its limit.
    for (const { run } of checks) await run();
    // A lease that is given back loses against other transactions, and is given back again behind its caller.
    const count = async () => (await pool.query('SELECT count(*) FROM app."Grants"')).rows;
    await expect.poll(count).toEqual([{ count: '0' }]);
  });

  describe.skipIf(!hasPgbouncer())('passes every check but that of watch through PgBouncer in transaction mode', () => {
    let bouncer: PgbouncerServer;
    const bounced: pg.Pool[] = [];
    let turn = 0;
    const open = (options: object = {}) => postgresTokenStore(bounced[turn++ % bounced.length] ?? connect(), options);
    beforeAll(async () => {
      bouncer = await startPgbouncer(postgres);
      for (let count = 0; count < 3; count += 1) bounced.push(connect({ connectionString: bouncer.connectionString }));
    });
    afterAll(() => bouncer.stop());

    // It passes no notifications on.
    testEach(storeChecks(open).filter(({ name }) => !name.startsWith('watch')));

    test('warns once that no notification arrives, and not where the pool leads to the server', async () => {
      const codes: unknown[] = [];
      const note = (warning: Error) => codes.push(Reflect.get(warning, 'code'));
      process.on('warning', note);
      // A message of another process may come along with an answer.
      class Lucky extends pg.Client {
        constructor(config?: pg.ClientConfig) {
          super(config);
          this.once('connect', () => setImmediate(() => this.emit('notification', { payload: '' })));
        }
      }
      const bounced = connect({ connectionString: bouncer.connectionString, Client: Lucky } as object);
      const stores = [connect(), bounced].map((pool) => postgresTokenStore(pool));
      const stops = stores.map((store) => store.watch?.(() => undefined));
      onTestFinished(() => {
        process.off('warning', note);
        for (const stop of stops) stop?.();
      });
      // The direct one was the first to listen.
      await until(() => expect(codes).toContain('ERR_NO_NOTIFICATIONS'));
      expect(codes).toEqual(['ERR_NO_NOTIFICATIONS']);
    });

    test('locks more grants than it has connections', async () => {
      const store = open();
      const ids = Array.from({ length: 10 }, (_, index) => `bounced-${index}`);
      const added = ids.map((id) => store.lock(id, () => store.add(id, grant)));
      expect(await Promise.all(added)).toEqual(ids.map(() => true));
    });
  });

  test('refuses read-only connections at its first use, also later, and says what to set', async () => {
    const message =
      'The connections to PostgreSQL are read-only: no grant can be saved. Connect to the primary, with default_transaction_read_only = off.';
    const options = '-c default_transaction_read_only=on';
    const calls = (store: ReturnType<typeof postgresTokenStore>) => [
      () => store.get('read-only'),
      () => store.set('read-only', grant),
      () => store.lock('read-only', async () => 1),
    ];
    const refusing = postgresTokenStore(connect({ options }));
    for (const call of calls(refusing))
      await expect(call()).rejects.toMatchObject({ name: 'TokenStoreError', message });
    const pool = connect({ max: 1 });
    const store = postgresTokenStore(pool);
    expect(await store.get('read-only')).toBeUndefined();
    await pool.query('SET default_transaction_read_only = on');
    await expect(store.set('read-only', grant)).rejects.toMatchObject({ name: 'TokenStoreError', message });
    await pool.query('SET default_transaction_read_only = off');
    await store.set('read-only', grant);
    expect(await refusing.get('read-only').catch((error: Error) => error.message)).toBe(message);
  });

  test('needs no right to make a table that the migration has made', async () => {
    const asApp = { connectionString: postgres.connectionString.replace('postgres@', 'app@') };
    const owner = connect();
    const migration = postgresMigration({ table: 'migrated' });
    await owner.query(migration);
    await owner.query(migration);
    await owner.query('CREATE ROLE app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON migrated TO app');
    const store = postgresTokenStore(connect(asApp), { table: 'migrated' });
    await store.lock('id', () => store.set('id', grant));
    expect(await store.get('id')).toEqual(grant);
    const elsewhere = postgresTokenStore(connect(asApp), { table: 'not_migrated' });
    await expect(elsewhere.get('id')).rejects.toMatchObject({ name: 'TokenStoreError', cause: { code: '42501' } });
  });

  test('keeps grants for 30 days unless told otherwise', async () => {
    const pool = connect();
    await postgresTokenStore(pool).set('month', grant);
    const { rows } = await pool.query(
      `SELECT round(extract(epoch FROM expires_at - now()) / 86400)::int AS days FROM ${TABLE} WHERE id = 'month'`,
    );
    expect(rows).toEqual([{ days: 30 }]);
  });

  test('deletes all that has expired in passing, a thousand rows at a time, once a minute', async () => {
    const pool = connect({ max: 1 });
    await pool.query(postgresMigration({ table: 'swept' }));
    const expire = (name: string, count: number) =>
      pool.query(
        `INSERT INTO swept SELECT '${name}' || i, 1, '{}', now() - interval '1 day' FROM generate_series(1, ${count}) AS i`,
      );
    const count = async (): Promise<unknown> => (await pool.query('SELECT count(*)::int AS n FROM swept')).rows[0].n;
    await expire('old', 2_500);
    const store = postgresTokenStore(pool, { table: 'swept' });
    await store.set('a', grant);
    expect(await count()).toBe(1_501);
    await expect.poll(count).toBe(1);
    await expire('later', 1);
    await store.set('a', grant);
    expect(await count()).toBe(2);
    await postgresTokenStore(pool, { table: 'swept' }).set('a', grant);
    expect(await count()).toBe(1);
  });

  test('sees before a token is sent that its lease has ended early, since the clock was set forward', async () => {
    const pool = connect();
    const store: TokenStore = postgresTokenStore(pool);
    await store.lock?.('forward', async (lease) => {
      expect(await lease?.isHeld()).toBe(true);
      await pool.query(`UPDATE ${TABLE} SET expires_at = expires_at - interval '1 hour' WHERE id = 'lock forward'`);
      expect(await lease?.isHeld()).toBe(false);
      expect(await postgresTokenStore(pool).lock('forward', async () => 'taken')).toBe('taken');
    });
  });

  test('rejects while PostgreSQL is down, returns the result of work that runs, and works again after its restart', async () => {
    const server = await startPostgres();
    const pool = connect({ connectionString: server.connectionString });
    const store = postgresTokenStore(pool);
    await store.set('id', grant);
    const result = await store.lock('id', async () => {
      const waiting = postgresTokenStore(pool).lock('id', async () => 'never');
      const failure = waiting.catch((error: unknown) => error);
      await server.kill();
      expect(await failure).toMatchObject({ name: 'TokenStoreError', status: 503 });
      return 'result';
    });
    expect(result).toBe('result');
    for (const call of [store.get('id'), store.set('id', grant), store.delete('id'), store.update('id', grant, 1)]) {
      await expect(call).rejects.toMatchObject({ name: 'TokenStoreError', cause: { code: 'ECONNREFUSED' } });
    }
    await server.restart();
    expect(await store.get('id')).toEqual(grant);
    await server.stop();
  });
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const pool: PostgresPoolLike = { query: forever };
  // @ts-expect-error: not a pool
  expect(() => postgresTokenStore({})).toThrow(/^pool: expected a pool of pg, got an object without the method query/);
  // @ts-expect-error: misspelt
  expect(() => postgresTokenStore(pool, { tabel: 'x' })).toThrow(/^tabel: is not an option of postgresTokenStore/);
  for (const table of ['', 'a b', 'a"b', 'a.b.c', '.a', 'a.', '1a', 'x'.repeat(53), 'a;drop']) {
    expect(() => postgresTokenStore(pool, { table })).toThrow(/^table: expected a name/);
    expect(() => postgresMigration({ table })).toThrow(/^table: expected a name/);
  }
  expect(() => postgresTokenStore(pool, { lease: 601 })).toThrow(
    /^lease: expected a number of seconds from 1 to 600, got 601/,
  );
  expect(() => postgresTokenStore(pool, { ttl: 0 })).toThrow(/^ttl: expected a number of seconds/);
});
