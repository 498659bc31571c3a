import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { tokenStoreChecks } from 'passport-oauth-app/conformance';
import { type SqliteDatabaseLike, sqliteTokenStore } from 'passport-oauth-app/sqlite';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { endService, startService } from '../support/service-process.js';
import { hasSqlite, type SqliteDatabase, sqlitePackages } from '../support/sqlite.js';
import { storeChecks, testEach } from '../support/store-checks.js';
import { timersOf } from './fixture.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-text' };
const TABLE = 'passport_oauth_app_grants';

afterEach(() => void vi.useRealTimers());

test.skipIf(!hasSqlite())('a package for SQLite is there to test with', () => {
  expect(sqlitePackages.length).toBeGreaterThan(0);
});

describe.each(sqlitePackages)('with %s', (name, openFile) => {
  let folder: string;
  const databases: SqliteDatabase[] = [];
  const open = (file = 'grants'): SqliteDatabase => {
    const database = openFile(join(folder, file));
    database.exec('PRAGMA busy_timeout = 0');
    databases.push(database);
    return database;
  };
  const rows = (database: SqliteDatabase, sql: string): unknown[] => database.prepare(sql).all();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sqlite-'));
  });
  afterAll(async () => {
    for (const database of databases) database.close();
    await rm(folder, { recursive: true });
  });

  describe('passes every check, with several connections to one file', () => {
    testEach(storeChecks((options) => sqliteTokenStore(open(), options)));
  });

  test('passes every check in WAL mode, in a table of another name', async () => {
    open('wal').exec('PRAGMA journal_mode = WAL');
    const checks = tokenStoreChecks(() => sqliteTokenStore(open('wal'), { table: 'Grants' }));
    for (const { run } of checks) await run();
    expect(rows(open('wal'), 'SELECT id FROM Grants')).toEqual([]);
  });

  test('creates its table once when several connections miss it at the same moment', async () => {
    const stores = Array.from({ length: 10 }, () => sqliteTokenStore(open('together')));
    await Promise.all(stores.map((store, index) => store.set(`id${index}`, grant)));
    expect(await stores[0]?.get('id9')).toEqual(grant);
  });

  test('waits while another connection writes, without blocking the process', async () => {
    const [writer, store] = [open(), sqliteTokenStore(open())];
    await store.set('busy', grant);
    writer.exec('BEGIN IMMEDIATE');
    const saving = store.set('busy', { ...grant, version: 2 });
    for (let turns = 0; turns < 10; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    writer.exec('COMMIT');
    await saving;
    expect(await store.get('busy')).toEqual({ ...grant, version: 2 });
  });

  test('rejects while another process has the file in exclusive mode, says what to set, and loses nothing', async () => {
    const store = sqliteTokenStore(open('exclusive'));
    await store.set('id', grant);
    const loaded = JSON.stringify(name === 'node:sqlite' ? name : createRequire(import.meta.url).resolve(name));
    const script = `const loaded = require(${loaded});
      const database = new (loaded.DatabaseSync ?? loaded)(${JSON.stringify(join(folder, 'exclusive'))});
      database.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT');
      console.log('locked');
      setInterval(() => {}, 1000)`;
    const child = await startService({ file: process.execPath, args: ['-e', script], ready: /^locked$/ });
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    const calls = [
      store.get('id'),
      store.update('id', { ...grant, version: 2 }, 1),
      store.lock('id', async () => 'never'),
    ];
    const outcomes = Promise.allSettled(calls);
    await vi.advanceTimersByTimeAsync(6000);
    const reason = expect.objectContaining({
      name: 'TokenStoreError',
      message: expect.stringMatching(/^SQLite did not .* within 5000 ms.*locking_mode = EXCLUSIVE/),
    });
    expect(await outcomes).toEqual(calls.map(() => ({ status: 'rejected', reason })));
    await endService(child, 'SIGKILL');
    vi.useRealTimers();
    expect(await store.get('id')).toEqual(grant);
    expect(await store.lock('id', () => store.update('id', { ...grant, version: 2 }, 1))).toBe(true);
  });

  test('keeps out of a transaction that the application has begun on its connection', async () => {
    const database = open();
    const store = sqliteTokenStore(database);
    await store.set('outside', grant);
    if (!('inTransaction' in database || 'isTransaction' in database)) return;
    database.exec('BEGIN');
    const saving = store.set('outside', { ...grant, version: 2 });
    await new Promise((resolve) => setImmediate(resolve));
    database.exec('ROLLBACK');
    await saving;
    expect(await store.get('outside')).toEqual({ ...grant, version: 2 });
  });

  test('counts the time to live anew at each write, and takes a row past it for absent', async () => {
    const database = open();
    const store = sqliteTokenStore(database, { ttl: 100 });
    const leftMs = (): number => {
      const [row] = rows(database, `SELECT expires_at AS at FROM ${TABLE} WHERE id = 'ttl'`) as [{ at: number }];
      return row.at - Date.now();
    };
    await store.set('ttl', grant);
    expect(leftMs()).toBeGreaterThan(90_000);
    expect(leftMs()).toBeLessThan(101_000);
    database.exec(`UPDATE ${TABLE} SET expires_at = expires_at - 100000 WHERE id = 'ttl'`);
    expect(await store.get('ttl')).toBeUndefined();
    expect(await store.update('ttl', grant, 1)).toBe(false);
    expect(await store.add('ttl', grant)).toBe(true);
    expect(await store.get('ttl')).toEqual(grant);
  });

  test('deletes expired rows in passing', async () => {
    const database = open('swept');
    await sqliteTokenStore(database).set('old', grant);
    database.exec(`UPDATE ${TABLE} SET expires_at = 1`);
    await sqliteTokenStore(database).set('new', grant);
    expect(rows(database, `SELECT id FROM ${TABLE}`)).toEqual([expect.objectContaining({ id: 'new' })]);
  });

  test('takes over a lease that ends too late, as after the clock was set back', async () => {
    const database = open('clock');
    const store = sqliteTokenStore(database);
    await store.lock('id', async () => {
      database.exec(`UPDATE ${TABLE} SET expires_at = expires_at + 10800000`);
      expect(await sqliteTokenStore(open('clock')).lock('id', async () => 'taken')).toBe('taken');
    });
  });

  test.for(['Grants', 'main.Grants'])('is in the table %s, with an index on what has expired', async (table) => {
    const database = open(`table ${table}`);
    await sqliteTokenStore(database, { table }).set('id', grant);
    const made = rows(database, 'SELECT type, name, tbl_name AS of FROM sqlite_master WHERE sql IS NOT NULL');
    expect(made.map((row) => ({ ...(row as object) }))).toEqual([
      { type: 'table', name: 'Grants', of: 'Grants' },
      { type: 'index', name: 'Grants_expires_at', of: 'Grants' },
    ]);
  });

  test('prepares a statement once', async () => {
    const database = open();
    const prepare = vi.spyOn(database, 'prepare');
    const store = sqliteTokenStore(database);
    await store.set('once', grant);
    prepare.mockClear();
    for (const id of ['one', 'two', 'three']) await store.get(id);
    expect(prepare).toHaveBeenCalledTimes(1);
  });

  test('rejects when the database is closed', async () => {
    const database = openFile(join(folder, 'closed'));
    const store = sqliteTokenStore(database);
    await store.set('id', grant);
    database.close();
    await expect(store.get('id')).rejects.toMatchObject({ name: 'TokenStoreError', status: 503 });
  });
});

test.for<[what: string, error: unknown, message: RegExp]>([
  ['that the file is busy, in the way of node:sqlite', { errcode: 5 }, /did not read.* PRAGMA locking_mode/],
  ['that it is busy, in a special way', { errcode: 5 + 2 * 256 }, /did not read/],
  ['that the table is locked', { errcode: 6 }, /did not read/],
  ['that the file is busy, in the way of better-sqlite3', { code: 'SQLITE_BUSY_SNAPSHOT' }, /did not read/],
  ['that the table is locked, in that way', { code: 'SQLITE_LOCKED' }, /did not read/],
  ['another fault', { errcode: 11 }, /could not read/],
  ['another fault, in that way', { code: 'SQLITE_CORRUPT' }, /could not read/],
  ['a code of others', { code: 'ERR_SQLITE_BUSY' }, /could not read/],
  ['nothing', {}, /could not read/],
])('a statement that fails with an error that tells %s is waited for or not', async ([, fields, message]) => {
  vi.useFakeTimers();
  const fault = Object.assign(new Error('no'), fields);
  const timers = await timersOf(async () => {
    const reading = expect(sqliteTokenStore(failing(fault)).get('id')).rejects.toThrow(message);
    await vi.advanceTimersByTimeAsync(6_000);
    await reading;
  });
  expect(timers.filter(({ isPending }) => isPending)).toEqual([]);
});

test('a statement that fails with what is no error is not tried again', async () => {
  await expect(sqliteTokenStore(failing({ code: 'SQLITE_BUSY' })).get('id')).rejects.toMatchObject({
    message: 'SQLite could not read a grant.',
    cause: { message: 'a object was thrown' },
  });
});

function failing(error: unknown): SqliteDatabaseLike {
  return {
    exec: () => undefined,
    prepare: () => {
      throw error;
    },
  };
}

test('rejects with errors that quote no secret, and shows none when it is inspected', async () => {
  const secret = 'eyJhbGciOiJkaXIifQ.secret-secret-secret';
  const database: SqliteDatabaseLike = {
    exec: () => undefined,
    prepare: () => ({
      all: () => [],
      run: (...values: unknown[]) => {
        throw new Error(`cannot bind ${values}`);
      },
    }),
  };
  const store = sqliteTokenStore(database);
  const error = await store.set('id', { ...grant, sealed: secret }).catch((fault: unknown) => fault);
  expect(error).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE', status: 503 });
  expect(inspect([error, store], { depth: 10, showHidden: true })).not.toContain('secret-secret');
});

test('throws at creation for an argument that is wrong, and names it', () => {
  const database: SqliteDatabaseLike = {
    exec: () => undefined,
    prepare: () => ({ all: () => [], run: () => ({ changes: 0 }) }),
  };
  for (const wrong of [
    undefined,
    'grants.sqlite',
    {},
    { prepare: () => undefined },
    { ...database, each: () => undefined },
  ]) {
    // @ts-expect-error: not a database
    expect(() => sqliteTokenStore(wrong)).toThrow(
      /^database: expected a DatabaseSync of node:sqlite or a Database of better-sqlite3/,
    );
  }
  // @ts-expect-error: misspelt
  expect(() => sqliteTokenStore(database, { tabel: 'x' })).toThrow(/^tabel: is not an option of sqliteTokenStore/);
  expect(() => sqliteTokenStore(database, { table: 'a b' })).toThrow(/^table: expected a name/);
});
