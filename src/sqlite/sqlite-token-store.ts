import { optionError, readOptions, withMethods } from '../checks.js';
import { PAGE_ROWS, type SqlDatabase, SWEEP_ROWS, sqlTokenStore, tableName } from '../databases/sql-token-store.js';
import { type ListedTokenStore, leaseSeconds, ttlSeconds } from '../stores/token-store.js';

/** The part of a database that is used: a `DatabaseSync` of node:sqlite, or a `Database` of better-sqlite3. */
export interface SqliteDatabaseLike {
  prepare(sql: string): SqliteStatementLike;
  exec(sql: string): unknown;
}

/** A prepared statement of such a database. */
interface SqliteStatementLike {
  all(...values: never[]): unknown[];
  run(...values: never[]): { readonly changes: number | bigint };
}

/** Options of {@link sqliteTokenStore}. */
export interface SqliteTokenStoreOptions {
  /** Name of the table. Letters, digits and underscores. Default: `passport_oauth_app_grants`. */
  readonly table?: string | undefined;
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. At least the strategy's `timeout` and 5 s
   * more, or a slow refresh outlives its lock: the strategy warns of a shorter one. Default: 30.
   */
  readonly lease?: number | undefined;
}

/** SQLITE_BUSY and SQLITE_LOCKED: another connection is writing. */
const BUSY: readonly unknown[] = [5, 6];

/**
 * Returns a token store in SQLite, with all methods but `watch`: processes of one machine that open the same file refresh a
 * grant once between them, with nothing to set up. One table holds grants and locks; the store creates it. A statement
 * that finds the database locked is tried for 5 s, without blocking the process in between.
 *
 * Give the store a separate connection: while the application has an open transaction on a shared one, the store waits.
 *
 * @param database of node:sqlite (Node 22.5 and later) or better-sqlite3; the application closes it
 * @throws {ConfigurationError} if `database` is something else, or an option is wrong or unknown
 *
 * @example
 * const database = new DatabaseSync('grants.sqlite');
 * const strategy = new Strategy({ ...options, tokenStore: sqliteTokenStore(database) });
 */
export function sqliteTokenStore(
  database: SqliteDatabaseLike,
  options: SqliteTokenStoreOptions = {},
): ListedTokenStore {
  const expected = 'a DatabaseSync of node:sqlite or a Database of better-sqlite3';
  const given = withMethods<SqliteDatabaseLike>(expected, ['prepare', 'exec'])('database', database);
  // The databases of the packages sqlite3 and sqlite call back or return promises.
  if ('each' in given) throw optionError('database', `expected ${expected}, got an asynchronous database`);
  const { table, ...times } = readOptions('sqliteTokenStore', options, {
    table: tableName,
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  return sqlTokenStore(sqliteDatabase(given, table), times);
}

function sqliteDatabase(database: SqliteDatabaseLike, name: readonly string[]): SqlDatabase {
  const table = name.map((part) => `"${part}"`).join('.');
  const index = [...name.slice(0, -1), `${name.at(-1)}_expires_at`].map((part) => `"${part}"`).join('.');
  // Epoch milliseconds, in every version of SQLite.
  const now = `CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)`;
  const statements = new Map<string, SqliteStatementLike>();
  const insert = `INSERT INTO ${table} (id, version, record, expires_at) VALUES (?, ?, ?, ${now} + ?)
    ON CONFLICT (id) DO NOTHING`;
  return {
    product: 'SQLite',
    lockedHint:
      'Another connection keeps the file locked. No process may use it with PRAGMA locking_mode = EXCLUSIVE, or leave a transaction open.',
    createTable: [
      `CREATE TABLE IF NOT EXISTS ${table} (
        id TEXT PRIMARY KEY, version INTEGER NOT NULL, record TEXT NOT NULL, expires_at INTEGER NOT NULL)`,
      `CREATE INDEX IF NOT EXISTS ${index} ON "${name.at(-1)}" (expires_at)`,
    ],
    statements: {
      get: `SELECT record FROM ${table} WHERE id = ? AND expires_at > ${now}`,
      set: `INSERT INTO ${table} (id, version, record, expires_at) VALUES (?, ?, ?, ${now} + ?) ON CONFLICT (id)
        DO UPDATE SET version = excluded.version, record = excluded.record, expires_at = excluded.expires_at`,
      add: insert,
      deleteExpired: `DELETE FROM ${table} WHERE id = ? AND expires_at <= ${now}`,
      update: `UPDATE ${table} SET version = ?, record = ?, expires_at = ${now} + ?
        WHERE id = ? AND version = ? AND expires_at > ${now}`,
      delete: `DELETE FROM ${table} WHERE id = ?`,
      deleteVersion: `DELETE FROM ${table} WHERE id = ? AND version = ?`,
      insertLease: insert,
      replaceLease: `UPDATE ${table} SET version = ?, record = ?, expires_at = ${now} + ?
        WHERE id = ? AND (expires_at <= ${now} OR expires_at > ${now} + 2 * version)`,
      findLease: `SELECT 1 FROM ${table} WHERE id = ? AND record = ? AND expires_at > ${now}`,
      release: `DELETE FROM ${table} WHERE id = ? AND record = ?`,
      list: `SELECT id FROM ${table} WHERE id >= ? AND id < ? AND id NOT GLOB 'lock *' AND id NOT GLOB 'login:*' AND id NOT GLOB 'limit:*' AND id NOT GLOB 'frame:*'
        AND expires_at > ${now} ORDER BY id LIMIT ${PAGE_ROWS}`,
      sweep: `DELETE FROM ${table} WHERE rowid IN
        (SELECT rowid FROM ${table} WHERE expires_at < ${now} LIMIT ${SWEEP_ROWS})`,
    },
    run: async (sql, values) => {
      // The property of better-sqlite3, or that of node:sqlite, which older versions of Node lack.
      const isInTransaction = Reflect.get(database, 'inTransaction') ?? Reflect.get(database, 'isTransaction');
      if (isInTransaction === true) throw new TransactionError('The connection is in a transaction.');
      const statement = statements.get(sql) ?? database.prepare(sql);
      statements.set(sql, statement);
      // Numbers bind as integers or reals alike, and the columns of type INTEGER convert them.
      const bound = values as readonly never[];
      if (sql.startsWith('SELECT')) return { rows: statement.all(...bound), changed: 0 };
      return { rows: [], changed: Number(statement.run(...bound).changes) };
    },
    remedyFor: (error) => {
      if (error instanceof TransactionError) return 'wait';
      if (!(error instanceof Error)) return undefined;
      if (error.message.includes('no such table')) return 'create';
      // node:sqlite has the number, better-sqlite3 the name.
      const number = 'errcode' in error ? Number(error.errcode) % 256 : undefined;
      const isBusy = 'code' in error && /^SQLITE_(BUSY|LOCKED)/.test(String(error.code));
      return isBusy || BUSY.includes(number) ? 'wait' : undefined;
    },
  };
}

/** Reports that a statement would have joined the application's transaction, and might be rolled back with it. */
class TransactionError extends Error {}
