import { inspect } from 'node:util';
import type { TokenStore } from 'passport-oauth-app';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { type PostgresPoolLike, postgresMigration, postgresTokenStore } from 'passport-oauth-app/postgres';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { hasPgbouncer, type PgbouncerServer, startPgbouncer } from '../support/pgbouncer-server.js';
import { hasPostgres, type PostgresServer, startPostgres } from '../support/postgres-server.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const SECRET = 'eyJhbGciOiJkaXIifQ.secret-secret-secret';
const TABLE = 'passport_oauth_app_grants';
/** Seconds: short, so that its end can be waited for. */
const LEASE = { lease: 2 };
const forever = (): Promise<never> => new Promise(() => undefined);

afterEach(() => void vi.useRealTimers());

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
    const create = () => postgresTokenStore(few[turn++ % few.length] ?? connect(), LEASE);
    for (const { name, run } of tokenStoreChecks(create, LEASE)) test(name, run);
  });

  describe('passes every check, with one connection for everything', () => {
    let one: PostgresPoolLike = { query: forever };
    beforeAll(() => {
      one = connect({ max: 1 });
    });
    for (const { name, run } of tokenStoreChecks(() => postgresTokenStore(one, LEASE), LEASE)) test(name, run);
  });

  test('passes every check where transactions are serializable, in a schema of its own', async () => {
    const pool = connect({ options: '-c default_transaction_isolation=serializable' });
    await pool.query('CREATE SCHEMA app');
    const checks = tokenStoreChecks(() => postgresTokenStore(pool, { table: 'app.Grants', ...LEASE }), LEASE);
    await Promise.all(checks.map(({ run }) => run()));
    expect((await pool.query('SELECT count(*) FROM app."Grants"')).rows).toEqual([{ count: '0' }]);
  });

  describe.skipIf(!hasPgbouncer())('passes every check but that of watch through PgBouncer in transaction mode', () => {
    let bouncer: PgbouncerServer;
    const bounced: pg.Pool[] = [];
    let turn = 0;
    const create = () => postgresTokenStore(bounced[turn++ % bounced.length] ?? connect(), LEASE);
    beforeAll(async () => {
      bouncer = await startPgbouncer(postgres);
      for (let count = 0; count < 3; count += 1) bounced.push(connect({ connectionString: bouncer.connectionString }));
    });
    afterAll(() => bouncer.stop());

    // It passes no notifications on.
    const checks = tokenStoreChecks(create, LEASE).filter(({ name }) => !name.startsWith('watch'));
    for (const { name, run } of checks) test(name, run);

    test('locks more grants than it has connections', async () => {
      const store = create();
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
      () => store.get('id'),
      () => store.set('id', grant),
      () => store.lock('id', async () => 1),
    ];
    const refusing = postgresTokenStore(connect({ options }));
    for (const call of calls(refusing))
      await expect(call()).rejects.toMatchObject({ name: 'TokenStoreError', message });
    const pool = connect({ max: 1 });
    const store = postgresTokenStore(pool);
    expect(await store.get('id')).toBeUndefined();
    await pool.query('SET default_transaction_read_only = on');
    await expect(store.set('id', grant)).rejects.toMatchObject({ name: 'TokenStoreError', message });
    await pool.query('SET default_transaction_read_only = off');
    await store.set('id', grant);
    expect(await refusing.get('id').catch((error: Error) => error.message)).toBe(message);
  });

  test('makes its table once when many processes miss it at the same moment', async () => {
    const stores = Array.from({ length: 20 }, () => postgresTokenStore(connect({ max: 1 }), { table: 'made_at_once' }));
    await Promise.all(stores.map((store, index) => store.set(`id${index}`, grant)));
    expect(await stores[0]?.get('id19')).toEqual(grant);
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

  test('counts the time to live anew at each write, and takes a row past it for absent', async () => {
    const pool = connect();
    const store = postgresTokenStore(pool, { ttl: 100 });
    const seconds = async (): Promise<number> => {
      const { rows } = await pool.query(
        `SELECT extract(epoch FROM expires_at - now())::int AS s FROM ${TABLE} WHERE id = 'ttl'`,
      );
      return rows[0].s;
    };
    const expire = () => pool.query(`UPDATE ${TABLE} SET expires_at = now() - interval '1 s' WHERE id = 'ttl'`);
    await store.set('ttl', grant);
    expect(await seconds()).toBeOneOf([99, 100]);
    await expire();
    expect(await store.get('ttl')).toBeUndefined();
    expect(await store.update('ttl', grant, 1)).toBe(false);
    expect(await store.add('ttl', grant)).toBe(true);
    expect(await store.get('ttl')).toEqual(grant);
    await pool.query(`UPDATE ${TABLE} SET expires_at = now() + interval '1 s' WHERE id = 'ttl'`);
    expect(await store.update('ttl', grant, 1)).toBe(true);
    expect(await seconds()).toBeOneOf([99, 100]);
  });

  test('keeps grants for 30 days unless told otherwise', async () => {
    const pool = connect();
    await postgresTokenStore(pool).set('month', grant);
    const { rows } = await pool.query(
      `SELECT round(extract(epoch FROM expires_at - now()) / 86400)::int AS days FROM ${TABLE} WHERE id = 'month'`,
    );
    expect(rows).toEqual([{ days: 30 }]);
  });

  test('deletes what has expired in passing', async () => {
    const pool = connect({ max: 1 });
    await pool.query(postgresMigration({ table: 'swept' }));
    await pool.query(
      `INSERT INTO swept SELECT 'old' || i, 1, '{}', now() - interval '1 day' FROM generate_series(1, 1500) AS i`,
    );
    const count = async (): Promise<unknown> => (await pool.query('SELECT count(*)::int AS n FROM swept')).rows[0].n;
    const store = postgresTokenStore(pool, { table: 'swept' });
    await store.set('a', grant);
    expect(await count()).toBe(501);
    await store.set('a', grant);
    expect(await count()).toBe(501);
    await postgresTokenStore(pool, { table: 'swept' }).set('a', grant);
    expect(await count()).toBe(1);
  });

  test('leaves no lock behind', async () => {
    const pool = connect();
    const rows = async (): Promise<string[]> =>
      (await pool.query(`SELECT id FROM ${TABLE} WHERE id LIKE '%traceless'`)).rows.map(({ id }) => id);
    const seen = await postgresTokenStore(pool).lock('traceless', rows);
    expect(seen).toEqual(['lock traceless']);
    expect(await rows()).toEqual([]);
  });

  test('treats a damaged record as no grant', async () => {
    const pool = connect();
    const store = postgresTokenStore(pool);
    await store.set('spoilt', grant);
    await pool.query(`UPDATE ${TABLE} SET record = left(record, 10) WHERE id = 'spoilt'`);
    expect(await store.get('spoilt')).toBeUndefined();
  });

  test('takes over a lease that ends too late, as after the clock was set back', async () => {
    const pool = connect();
    await postgresTokenStore(pool).lock('clock', async () => {
      await pool.query(`UPDATE ${TABLE} SET expires_at = expires_at + interval '3 hours' WHERE id = 'lock clock'`);
      expect(await postgresTokenStore(pool).lock('clock', async () => 'taken')).toBe('taken');
    });
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

  test('refuses the late write of a holder that lost its lock, which does not free the lock of the next one', async () => {
    const pool = connect();
    const [late, next] = [postgresTokenStore(connect(), { lease: 1 }), postgresTokenStore(pool, { lease: 30 })];
    await late.set('late', grant);
    await late.lock('late', async () => {
      await new Promise<void>((resolve) => {
        void next.lock('late', async () => {
          resolve();
          await forever();
        });
      });
      expect(await next.update('late', { ...grant, version: 2 }, 1)).toBe(true);
      expect(await late.update('late', { ...grant, version: 3 }, 1)).toBe(false);
    });
    expect((await pool.query(`SELECT FROM ${TABLE} WHERE id = 'lock late'`)).rowCount).toBe(1);
    expect(await next.get('late')).toEqual({ ...grant, version: 2 });
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

test('gives up a query that is not answered within five seconds', async () => {
  vi.useFakeTimers();
  const reading = postgresTokenStore({ query: forever })
    .get('id')
    .catch((error: unknown) => error);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await reading).toMatchObject({
    name: 'TokenStoreError',
    message: 'PostgreSQL did not read a grant within 5000 ms.',
  });
});

test('rejects with errors that quote no secret, and shows none when it is inspected', async () => {
  const pool: PostgresPoolLike = {
    query: (text, values) => Promise.reject(Object.assign(new Error(`syntax error near ${values}`), { text, values })),
  };
  const store = postgresTokenStore(pool);
  const error = await store.set('id', { ...grant, sealed: SECRET }).catch((fault: unknown) => fault);
  expect(error).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 });
  expect(inspect([error, store], { depth: 10, showHidden: true })).not.toContain('secret-secret');
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
