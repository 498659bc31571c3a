import { fieldOf, PAGE_ROWS, type SqlDatabase, SWEEP_ROWS } from '../databases/sql-token-store.js';
import { TokenStoreError } from '../errors.js';
import { HAND_OVER_PREFIX, MARK_PREFIX, SHARE_PREFIX } from '../stores/token-store.js';
import { succeedOnce } from '../waiting.js';

/** The part of a pool of pg that is used: single queries. A client of pg, or of a proxy that pools transactions, works too. */
export interface PostgresPoolLike {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** serialization_failure, deadlock_detected: the statement lost against a concurrent one. */
const LOST: readonly unknown[] = ['40001', '40P01'];

/** read_only_sql_transaction */
const READ_ONLY = '25006';

/**
 * undefined_table; and, where another process creates the table at the same moment (IF NOT EXISTS does not prevent it),
 * unique_violation of the catalogue, duplicate_table and duplicate_object.
 */
const TABLE_MISSING_OR_MADE: readonly unknown[] = ['42P01', '23505', '42P07', '42710'];

/** Returns PostgreSQL with the statements for a table of grants. */
export function postgresDatabase(pool: PostgresPoolLike, name: readonly string[]): SqlDatabase {
  const table = quoted(name);
  const ms = `interval '1 millisecond'`;
  const checkSettings = succeedOnce(async () => {
    const [row] = (await pool.query(`SELECT current_setting('transaction_read_only') AS setting`, [])).rows;
    if ((row as { readonly setting?: unknown } | undefined)?.setting === 'on') throw readOnly();
  });
  const insert = `INSERT INTO ${table} (id, version, record, expires_at)
    VALUES ($1, $2, $3, clock_timestamp() + $4 * ${ms}) ON CONFLICT (id) DO NOTHING RETURNING id`;
  const isGrant = [MARK_PREFIX, SHARE_PREFIX, HAND_OVER_PREFIX]
    .map((prefix) => `id NOT LIKE '${prefix}%'`)
    .join(' AND ');
  // Notifies within the statement, so exactly when it takes effect. No listener needs the marks of used logins.
  const told = (message: string, condition = 'true'): string =>
    `CASE WHEN ${condition} AND ${isGrant} THEN pg_notify('${channelOf(name)}', ${message}) END`;
  const withVersion = `id || ' ' || version`;
  return {
    product: 'PostgreSQL',
    createTable: createTable(name),
    statements: {
      get: `SELECT record FROM ${table} WHERE id = $1 AND expires_at > now()`,
      set: `INSERT INTO ${table} (id, version, record, expires_at) VALUES ($1, $2, $3, now() + $4 * ${ms})
        ON CONFLICT (id) DO UPDATE
        SET version = excluded.version, record = excluded.record, expires_at = excluded.expires_at
        RETURNING ${told(withVersion)}`,
      add: `${insert}, ${told(withVersion)}`,
      deleteExpired: `DELETE FROM ${table} WHERE id = $1 AND expires_at <= now()`,
      update: `UPDATE ${table} SET version = $1, record = $2, expires_at = now() + $3 * ${ms}
        WHERE id = $4 AND version = $5 AND expires_at > now() RETURNING id, ${told('id', 'version = $5')}`,
      delete: `DELETE FROM ${table} WHERE id = $1 RETURNING ${told('id')}`,
      deleteVersion: `DELETE FROM ${table} WHERE id = $1 AND version = $2 RETURNING ${told('id')}`,
      insertLease: insert,
      // The statement may wait for another one on the same row, and now() is the time when it began to wait.
      replaceLease: `UPDATE ${table} SET version = $1, record = $2, expires_at = clock_timestamp() + $3 * ${ms}
        WHERE id = $4 AND (expires_at <= clock_timestamp() OR expires_at > clock_timestamp() + 2 * version * ${ms})
        RETURNING id`,
      findLease: `SELECT 1 FROM ${table} WHERE id = $1 AND record = $2 AND expires_at > clock_timestamp()`,
      release: `DELETE FROM ${table} WHERE id = $1 AND record = $2`,
      sweep: `DELETE FROM ${table} WHERE id IN
        (SELECT id FROM ${table} WHERE expires_at < now() LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED) RETURNING 1`,
      list: `SELECT id FROM ${table} WHERE id >= $1 COLLATE "C" AND id < $2 COLLATE "C" AND id NOT LIKE 'lock %' AND ${isGrant}
        AND expires_at > now() ORDER BY id COLLATE "C" LIMIT ${PAGE_ROWS}`,
    },
    run: async (statement, values) => {
      await checkSettings();
      const { rows } = await pool.query(statement, [...values]).catch((error: unknown) => {
        throw fieldOf(error, 'code') === READ_ONLY ? readOnly() : error;
      });
      return { rows, changed: rows.length };
    },
    remedyFor: (error) => {
      const code = fieldOf(error, 'code');
      if (TABLE_MISSING_OR_MADE.includes(code)) return 'create';
      return LOST.includes(code) ? 'retry' : undefined;
    },
  };
}

function readOnly(): TokenStoreError {
  return new TokenStoreError(
    'The connections to PostgreSQL are read-only: no grant can be saved. Connect to the primary, with default_transaction_read_only = off.',
  );
}

/** Returns the channel for changes of a table of grants. Tables with the same name share it: they hold grants with other ids. */
export function channelOf(name: readonly string[]): string {
  return name.at(-1) ?? '';
}

/** Returns the statements that create a table of grants. */
export function createTable(name: readonly string[]): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${quoted(name)} (
  id text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  record text NOT NULL,
  expires_at timestamptz NOT NULL
);
`,
    `CREATE INDEX IF NOT EXISTS "${name.at(-1)}_expires_at" ON ${quoted(name)} (expires_at);
`,
  ];
}

function quoted(name: readonly string[]): string {
  return name.map((part) => `"${part}"`).join('.');
}
