import { type SqlDatabase, sqlTokenStore } from '../databases/sql-token-store.js';
import type { LockingStore, LockingStoreSettings, PostgresSessionStore } from '../stores/token-store.js';
import { postgresDatabase } from './postgres-database.js';

/** Returns the token store of a session store that is connect-pg-simple: in its table. */
export function postgresStoreOfSessions(
  store: PostgresSessionStore,
  { prefix, ...times }: LockingStoreSettings,
): LockingStore {
  const query = (text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }> =>
    new Promise((resolve, reject) => {
      store.query(text, values, (error, row) => {
        if (error) reject(error);
        else resolve({ rows: row === undefined || row === null ? [] : [row] });
      });
    });
  const database = sessionTable(postgresDatabase({ query }, []), store.quotedTable(), prefix);
  const { list: _, ...tokenStore } = sqlTokenStore(database, times);
  return tokenStore;
}

/**
 * Returns the database with the statements for a table of sessions. Its rows look like sessions, and expire as they do.
 *
 * The column `expire` has no time zone: it depends on the setting `TimeZone` of a connection, and is ambiguous for an hour
 * a year where that has daylight saving time. So each record has its own end (`endsAt`, epoch milliseconds), and the column
 * serves the session store's clean-up, and records of earlier commits, which have no `endsAt`. The clean-up goes by the
 * clock and the time zone of each process: it comes two days later, so that it takes no lease that is held.
 */
function sessionTable(database: SqlDatabase, table: string, prefix: string): SqlDatabase {
  const now = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';
  const sid = (parameter: string): string => `'${prefix.replaceAll("'", "''")}' || ${parameter}`;
  const expire = (parameter: string): string =>
    `clock_timestamp() + ${parameter} * interval '1 millisecond' + interval '2 days'`;
  const record = (endsIn: string, fields: string): string =>
    `json_build_object('cookie', json_build_object('path', '/'), 'endsAt', ${now} + ${endsIn}::bigint, ${fields})`;
  const grant = (version: string, stored: string, ttl: string): string =>
    record(ttl, `'version', ${version}::bigint, 'grant', ${stored}::json`);
  const lease = (ms: string, owner: string): string => record(ms, `'lease', ${ms}::bigint, 'owner', ${owner}::text`);
  const version = `(sess->>'version')::bigint`;
  const endsAt = `(sess->>'endsAt')::bigint`;
  const isAlive = `coalesce(${endsAt} > ${now}, expire > clock_timestamp())`;
  return {
    ...database,
    createTable: [],
    statements: {
      get: `SELECT (sess->'grant')::text AS record FROM ${table} WHERE sid = ${sid('$1')} AND ${isAlive}`,
      set: `INSERT INTO ${table} (sid, sess, expire) VALUES (${sid('$1')}, ${grant('$2', '$3', '$4')}, ${expire('$4')})
        ON CONFLICT (sid) DO UPDATE SET sess = excluded.sess, expire = excluded.expire`,
      add: `INSERT INTO ${table} (sid, sess, expire) VALUES (${sid('$1')}, ${grant('$2', '$3', '$4')}, ${expire('$4')})
        ON CONFLICT (sid) DO NOTHING RETURNING sid`,
      deleteExpired: `DELETE FROM ${table} WHERE sid = ${sid('$1')} AND NOT ${isAlive}`,
      update: `UPDATE ${table} SET sess = ${grant('$1', '$2', '$3')}, expire = ${expire('$3')}
        WHERE sid = ${sid('$4')} AND ${version} = $5 AND ${isAlive} RETURNING sid`,
      delete: `DELETE FROM ${table} WHERE sid = ${sid('$1')}`,
      deleteVersion: `DELETE FROM ${table} WHERE sid = ${sid('$1')} AND ${version} = $2`,
      insertLease: `INSERT INTO ${table} (sid, sess, expire) VALUES (${sid('$1')}, ${lease('$2', '$3')}, ${expire('$4')})
        ON CONFLICT (sid) DO NOTHING RETURNING sid`,
      replaceLease: `UPDATE ${table} SET sess = ${lease('$1', '$2')}, expire = ${expire('$3')}
        WHERE sid = ${sid('$4')} AND (NOT ${isAlive} OR ${endsAt} > ${now} + 2 * (sess->>'lease')::bigint) RETURNING sid`,
      findLease: `SELECT 1 FROM ${table} WHERE sid = ${sid('$1')} AND sess->>'owner' = $2 AND ${isAlive}`,
      release: `DELETE FROM ${table} WHERE sid = ${sid('$1')} AND sess->>'owner' = $2`,
      // The session store itself deletes expired rows.
      sweep: `SELECT 1`,
      list: `SELECT 1`,
    },
  };
}
