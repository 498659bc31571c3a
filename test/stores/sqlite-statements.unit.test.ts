import { type SqliteDatabaseLike, sqliteTokenStore } from 'passport-oauth-app/sqlite';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { installSimulation } from '../simulation/bundle.mjs';
import { stopTime } from '../support/stop-time.js';

installSimulation();
const { SqliteFile } = await import('../simulation/sqlite-file.js');

const grant = { version: 1, expiresAt: 2, sealed: 'sealed-ü' };
const TABLE = 'passport_oauth_app_grants';

let now: number;
let file: InstanceType<typeof SqliteFile>;
/** The statements that were prepared. */
let prepared: string[];

beforeEach(() => {
  [now, prepared] = [Date.UTC(2026, 0, 1), []];
  file = new SqliteFile(() => now);
});

/** A connection to the file. */
function connection(changes: object = {}): SqliteDatabaseLike {
  return {
    exec: () => undefined,
    prepare: (sql) => {
      prepared.push(sql);
      return {
        all: (...values: readonly (string | number)[]) => [...file.execute(sql, values).rows],
        run: (...values: readonly (string | number)[]) => ({ changes: BigInt(file.execute(sql, values).changes) }),
      };
    },
    ...changes,
  };
}

const open = (options = {}) => sqliteTokenStore(connection(), options);
const rows = (where = '1') => file.execute(`SELECT * FROM ${TABLE} WHERE ${where} ORDER BY id`, []).rows;

describe('a grant in SQLite', () => {
  test('is read, replaced and deleted as its version allows', async () => {
    const store = open();
    expect(await store.get('id')).toBeUndefined();
    expect(await store.add('id', grant)).toBe(true);
    expect(await store.add('id', grant)).toBe(false);
    expect(await store.update('id', grant, 2)).toBe(false);
    expect(await store.update('other', grant, 1)).toBe(false);
    expect(await store.update('id', { ...grant, version: 2 }, 1)).toBe(true);
    await store.set('other', grant);
    await store.delete('id', 1);
    expect(await store.get('id')).toEqual({ ...grant, version: 2 });
    await store.set('id', { ...grant, version: 3 });
    await store.delete('id', 3);
    expect([await store.get('id'), await store.get('other')]).toEqual([undefined, grant]);
    await store.set('id', grant);
    await store.delete('other');
    expect([await store.get('id'), await store.get('other')]).toEqual([grant, undefined]);
  });

  test('ends in time, counted anew at each write, and can be added then', async () => {
    const store = open({ ttl: 100 });
    const writes = [
      () => store.set('id', grant),
      () => store.update('id', grant, 1),
      () => store.set('id', grant),
      () => store.delete('id').then(() => store.add('id', grant)),
    ];
    for (const write of writes) {
      await write();
      const [row] = rows(`id = 'id'`);
      expect(Math.abs(Number(row?.expires_at) - (now + 100_000))).toBeLessThan(3);
      expect(row?.version).toBe(1);
      now += 60_000;
    }
    expect(await store.get('id')).toEqual(grant);
    now += 60_000;
    expect([await store.get('id'), await store.update('id', grant, 1)]).toEqual([undefined, false]);
    expect(await store.add('id', { ...grant, version: 7 })).toBe(true);
    expect((await store.get('id'))?.version).toBe(7);
  });

  test('is deleted in passing once it has expired, and no other', async () => {
    await open({ ttl: 100 }).set('old', grant);
    await open({ ttl: 200 }).set('young', grant);
    now += 150_000;
    await open().set('new', grant);
    expect(rows().map(({ id }) => id)).toEqual(['new', 'young']);
  });

  test('is listed, unless it has expired; locks, marks and shares are not', async () => {
    const store = open();
    await open({ ttl: 1 }).set('expired', grant);
    for (const id of ['b', 'login:b', 'limit:b', 'frame:b', 'a', 'my+login:b']) await store.set(id, grant);
    now += 2_000;
    const ids = await store.lock('held', async () => {
      const listed: string[] = [];
      for await (const id of store.list()) listed.push(id);
      return listed;
    });
    expect(ids).toEqual(['a', 'b', 'my+login:b']);
  });

  test.for(['Grants', 'main.Grants'])('is in the table %s, with an index on what has expired', async (table) => {
    await open({ table }).set('id', grant);
    const made = file.execute(`SELECT type, name, tbl_name AS of FROM sqlite_master WHERE sql IS NOT NULL`, []).rows;
    expect(made).toEqual([
      { type: 'table', name: 'Grants', of: 'Grants' },
      { type: 'index', name: 'Grants_expires_at', of: 'Grants' },
    ]);
    expect(file.execute('SELECT id, version, record FROM "Grants"', []).rows).toEqual([
      { id: 'id', version: 1, record: JSON.stringify(grant) },
    ]);
  });
});

describe('a lock in SQLite', () => {
  test('is held until its lease has ended, by its owner alone, and replaced then', async () => {
    const [one, other] = [open(), open()];
    const held: unknown[] = [];
    await one.lock('id', async (lease) => {
      held.push(await lease?.isHeld());
      now += 29_000;
      held.push(await lease?.isHeld());
      now += 2_000;
      held.push(await lease?.isHeld());
      await other.lock('id', async (others) => held.push(await others?.isHeld(), await lease?.isHeld()));
      expect(rows()).toEqual([]);
    });
    expect(held).toEqual([true, true, false, true, false]);
  });

  test.for([
    [-1, false],
    [5_000, false],
    [31_000, true],
  ] as const)('that lasts longer by %d ms, since the clock was set back, counts as ended: %s', async ([ms, isOver]) => {
    stopTime();
    const [one, other] = [open(), open()];
    const taken = await one.lock('id', async (lease) => {
      now -= ms;
      const waiting = other.lock('id', async () => 'taken').catch(() => 'refused');
      await vi.advanceTimersByTimeAsync(40_000);
      expect(await lease?.isHeld()).toBe(!isOver);
      return await waiting;
    });
    expect(taken).toBe(isOver ? 'taken' : 'refused');
  });
});

test('a statement is prepared once', async () => {
  const store = open();
  await store.set('id', grant);
  prepared.length = 0;
  for (const id of ['one', 'two', 'three']) await store.get(id);
  expect(prepared).toHaveLength(1);
});

test.for(['inTransaction', 'isTransaction'])('a statement waits while the connection has %s', async (name) => {
  stopTime();
  const database = connection({ [name]: true });
  const saving = sqliteTokenStore(database).set('id', grant);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(prepared).toEqual([]);
  Object.assign(database, { [name]: false });
  await vi.advanceTimersByTimeAsync(100);
  await saving;
  expect(rows()).toHaveLength(1);
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
  stopTime();
  const fault = Object.assign(new Error('no'), fields);
  const reading = expect(sqliteTokenStore(failing(fault)).get('id')).rejects.toThrow(message);
  await vi.advanceTimersByTimeAsync(6_000);
  await reading;
});

test('a statement that fails with what is no error is not tried again', async () => {
  await expect(sqliteTokenStore(failing({ code: 'SQLITE_BUSY' })).get('id')).rejects.toMatchObject({
    message: 'SQLite could not read a grant.',
    cause: { message: 'a object was thrown' },
  });
});

function failing(error: unknown): SqliteDatabaseLike {
  return connection({
    prepare: () => {
      throw error;
    },
  });
}
