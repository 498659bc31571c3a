import { mysqlMigration, mysqlTokenStore } from 'passport-oauth-app/mysql';
import { beforeEach, expect, test } from 'vitest';
import { mayLeave } from '../support/may-leave.js';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed' };
const SETTINGS = [
  { Variable_name: 'autocommit', Value: 'ON' },
  { Variable_name: 'transaction_read_only', Value: 'OFF' },
];
const DONE = [{ affectedRows: 1 }, undefined];
const readOnly =
  'The connections of the pool are read-only: no grant can be saved. Give mysqlTokenStore a pool of the primary with transaction_read_only = OFF.';

let settings: unknown;
/** The statements, by their first two words, and the values of the last one. */
let ran: string[];
let values: readonly unknown[];
/** What answers a statement. */
let answer: (words: string) => unknown;

beforeEach(() => {
  [settings, ran, values, answer] = [SETTINGS, [], [], () => DONE];
});

const pool = {
  execute: async () => undefined,
  async query(this: unknown, { sql, ...options }: { sql: string }, given: readonly unknown[]): Promise<unknown> {
    expect(this).toBe(pool);
    expect(options).toEqual({ rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true });
    const words = sql.split(' ', 2).join(' ');
    ran.push(words);
    values = given;
    if (words !== 'SHOW SESSION') return answer(words);
    expect(given).toEqual([]);
    return [settings, []];
  },
};

/** Fails the first so many times. */
function failing(errno: unknown, times = Number.POSITIVE_INFINITY): typeof answer {
  let left = times;
  return (words) => {
    if (words === 'CREATE TABLE' || left-- <= 0) return DONE;
    throw Object.assign(new Error('no'), { errno });
  };
}

test('a pool is used with promises or callbacks, and its settings are read once', async () => {
  for (const given of [pool, { query: () => {}, execute: () => {}, promise: () => pool }]) {
    const store = mysqlTokenStore(given as typeof pool);
    await Promise.all([store.set('id', grant), store.delete('id')]);
    await store.delete('id');
    expect(ran.splice(0).sort()).toEqual(['DELETE FROM', 'DELETE FROM', 'DELETE FROM', 'REPLACE INTO', 'SHOW SESSION']);
  }
});

test('texts are sent as bytes', async () => {
  // The time limit of the deletion that is not answered.
  mayLeave(/timer/);
  answer = (words) => (words === 'DELETE FROM' ? new Promise(() => undefined) : DONE);
  await mysqlTokenStore(pool).set('ü', grant);
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toEqual(['SHOW SESSION', 'REPLACE INTO', 'DELETE FROM']);
  answer = () => DONE;
  await mysqlTokenStore(pool).delete('ü', 7);
  expect(values).toEqual([Buffer.from('ü'), 7]);
});

test.for([1146, 1213, 1205, 1020])('a statement that fails with the error %d is run again', async (errno) => {
  answer = failing(errno, 1);
  await mysqlTokenStore(pool).delete('id');
  const made = errno === 1146 ? ['CREATE TABLE'] : [];
  expect(ran).toEqual(['SHOW SESSION', 'DELETE FROM', ...made, 'DELETE FROM']);
});

test.for<[errno: unknown, message: string]>([
  [1792, readOnly],
  [1290, readOnly],
  [1836, readOnly],
  [1064, 'MySQL could not delete a grant.'],
  ['1146', 'MySQL could not delete a grant.'],
])('a statement that fails with the error %s is not', async ([errno, message]) => {
  answer = failing(errno);
  const deleting = mysqlTokenStore(pool).delete('id');
  await expect(deleting).rejects.toMatchObject({ name: 'TokenStoreError', message });
  expect(ran).toEqual(['SHOW SESSION', 'DELETE FROM']);
});

test.for<[answers: unknown, found: unknown]>([
  [[[{ record: JSON.stringify(grant) }], []], grant],
  [[[], []], undefined],
  [DONE, undefined],
])('a result is rows, or a header', async ([result, found]) => {
  answer = () => result;
  expect(await mysqlTokenStore(pool).get('id')).toEqual(found);
});

test.for([undefined, {}, [], [null], ['text'], [{ changes: 1 }]])('a result is not %j', async (result) => {
  answer = () => result;
  await expect(mysqlTokenStore(pool).get('id')).rejects.toMatchObject({
    cause: { message: 'pool: expected a pool of mysql2, whose queries resolve to rows or a header' },
  });
});

test('a header tells how many rows have changed', async () => {
  for (const [affectedRows, isDone] of [
    [1, true],
    [0, false],
    ['0', false],
  ] as const) {
    answer = () => [{ affectedRows }];
    expect(await mysqlTokenStore(pool).update('id', grant, 1)).toBe(isDone);
  }
});

test('the migration quotes the names of the schema and the table, and takes no other option', () => {
  expect(mysqlMigration({ table: 'app.grants' })).toMatch(/^CREATE TABLE IF NOT EXISTS `app`\.`grants` \(/);
  // @ts-expect-error: misspelt
  expect(() => mysqlMigration({ tabel: 'x' })).toThrow(/^tabel: is not an option of mysqlMigration/);
});
