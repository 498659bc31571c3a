import { sessionTokenStore } from 'passport-oauth-app';
import { postgresMigration, postgresTokenStore } from 'passport-oauth-app/postgres';
import { beforeEach, describe, expect, test } from 'vitest';

const grant = { version: 1, expiresAt: 2, sealed: 'sealed' };
const readOnly =
  'The connections to PostgreSQL are read-only: no grant can be saved. Connect to the primary, with default_transaction_read_only = off.';

let setting: unknown;
/** The statements, by their first two words. */
let ran: string[];
let answer: (words: string, values: readonly unknown[]) => unknown;

beforeEach(() => {
  [setting, ran, answer] = [{ setting: 'off' }, [], () => ({ rows: [] })];
});

const pool = {
  query: async (text: string, values: unknown[] = []) => {
    const words = text.split(/\s/, 2).join(' ');
    if (text.includes('transaction_read_only')) {
      expect(values).toEqual([]);
      ran.push('settings');
      return { rows: setting === undefined ? [] : [setting] };
    }
    ran.push(words);
    return (await answer(words, values)) as { rows: unknown[] };
  },
};

function failing(code: unknown, times = Number.POSITIVE_INFINITY): typeof answer {
  let left = times;
  return (words) => {
    if (words.startsWith('CREATE') || left-- <= 0) return { rows: [] };
    throw Object.assign(new Error('no'), { code });
  };
}

test.for(['42P01', '23505', '42P07', '42710', '40001', '40P01'])(
  'a statement that fails with the error %s is run again',
  async (code) => {
    answer = failing(code, 1);
    await postgresTokenStore(pool).delete('id');
    const made = code.startsWith('40') ? [] : ['CREATE TABLE', 'CREATE INDEX'];
    expect(ran).toEqual(['settings', 'DELETE FROM', ...made, 'DELETE FROM']);
  },
);

test.for<[code: unknown, message: string]>([
  ['25006', readOnly],
  ['42501', 'PostgreSQL could not delete a grant.'],
  [undefined, 'PostgreSQL could not delete a grant.'],
])('a statement that fails with the error %s is not', async ([code, message]) => {
  answer = failing(code);
  const deleting = postgresTokenStore(pool).delete('id');
  await expect(deleting).rejects.toMatchObject({ name: 'TokenStoreError', message });
  expect(ran).toEqual(['settings', 'DELETE FROM']);
});

test('rows tell what was found, and how many have changed', async () => {
  const store = postgresTokenStore(pool);
  expect([await store.get('id'), await store.update('id', grant, 1)]).toEqual([undefined, false]);
  answer = (_words, [id]) => ({ rows: [{ id, record: JSON.stringify(grant) }] });
  expect([await store.get('id'), await store.update('id', grant, 1)]).toEqual([grant, true]);
  expect((await store.list()[Symbol.asyncIterator]().next()).value).toBe('');
});

test('the migration quotes the names of the schema, the table and its index, and takes no other option', () => {
  const sql = postgresMigration({ table: 'app.Grants' });
  expect(sql).toMatch(/^CREATE TABLE IF NOT EXISTS "app"\."Grants" \(/);
  expect(sql).toMatch(/\n\);\nCREATE INDEX IF NOT EXISTS "Grants_expires_at" ON "app"\."Grants" \(expires_at\);\n$/);
  // @ts-expect-error: misspelt
  expect(() => postgresMigration({ tabel: 'x' })).toThrow(/^tabel: is not an option of postgresMigration/);
  expect(postgresMigration()).toContain('"passport_oauth_app_grants_expires_at" ON "passport_oauth_app_grants"');
});

describe('a session store', () => {
  const methods = { get: () => undefined, set: () => undefined, destroy: () => undefined };
  /** The parts of connect-pg-simple. */
  const sessions = {
    ...methods,
    pruneSessions: () => undefined,
    quotedTable(this: unknown) {
      expect(this).toBe(sessions);
      return '"sessions"';
    },
    query(this: unknown, text: string, values: unknown[], done: (error: unknown, row?: unknown) => void) {
      expect(this).toBe(sessions);
      pool.query(text, values).then(({ rows }) => done(null, rows[0]), done);
    },
  };

  test.for(['pruneSessions', 'quotedTable', 'query'])('without the method %s is left to its three methods', (name) => {
    expect(sessionTokenStore({ ...sessions, [name]: undefined }).lock).toBeUndefined();
  });
});
