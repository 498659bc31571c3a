import { optionError, readOptions, withMethods } from '../checks.js';
import {
  fieldOf,
  PAGE_ROWS,
  type SqlDatabase,
  type SqlResult,
  SWEEP_ROWS,
  sqlTokenStore,
  tableName,
} from '../databases/sql-token-store.js';
import { TokenStoreError } from '../errors.js';
import { type ListedTokenStore, leaseSeconds, ttlSeconds } from '../stores/token-store.js';
import { succeedOnce } from '../waiting.js';

/** A pool of mysql2/promise. A connection works too. */
interface MysqlPromisePoolLike {
  query(...args: never[]): Promise<unknown>;
  execute(...args: never[]): Promise<unknown>;
}

/** The part of a pool of mysql2 that is used: a promise pool, or a callback pool by its `promise()`. */
export type MysqlPoolLike = MysqlPromisePoolLike | { promise(...args: never[]): MysqlPromisePoolLike };

/** Options of {@link mysqlTokenStore}. */
export interface MysqlTokenStoreOptions {
  /**
   * Name of the table, with its database in front of a dot if it is not the pool's. Letters, digits and underscores.
   * Default: `passport_oauth_app_grants`.
   */
  readonly table?: string | undefined;
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. At least the strategy's `timeout` and 5 s
   * more, or a slow refresh outlives its lock: the strategy warns of a shorter one. Default: 30.
   */
  readonly lease?: number | undefined;
}

/** ER_NO_SUCH_TABLE */
const TABLE_MISSING = 1146;

/** ER_LOCK_DEADLOCK, ER_LOCK_WAIT_TIMEOUT, and MariaDB's ER_CHECKREAD: the statement lost against a concurrent one. */
const LOST: readonly unknown[] = [1213, 1205, 1020];

/** ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, ER_OPTION_PREVENTS_STATEMENT (`read_only`, as on a replica), ER_READ_ONLY_MODE. */
const READ_ONLY: readonly unknown[] = [1792, 1290, 1836];

/** Options of a query that the pool's own settings must not change, since they change the form of the result. */
const PLAIN = { rowsAsArray: false, nestTables: false, namedPlaceholders: false, typeCast: true };

/**
 * Returns the SQL that creates the table of {@link mysqlTokenStore}, for a migration of the application. Without a
 * migration the store creates the table when it first misses it, for which its user needs the privilege CREATE. The SQL
 * may run any number of times.
 *
 * @throws {ConfigurationError} naming `table`
 */
export function mysqlMigration(options: { readonly table?: string | undefined } = {}): string {
  const { table } = readOptions('mysqlMigration', options, { table: tableName });
  return createTableSql(quoted(table));
}

/**
 * Returns a token store in MySQL or MariaDB, with all methods but `watch`: processes and hosts that share the database refresh
 * a grant once between them. One table holds grants and locks. A query rejects after 5 s, including the wait for a
 * connection of the pool. A lock occupies no connection.
 *
 * @param pool of mysql2, with promises or callbacks; the application ends it
 * @throws {ConfigurationError} if `pool` is not of mysql2, or an option is wrong or unknown
 *
 * @example
 * const pool = mysql.createPool(process.env.DATABASE_URL);
 * const strategy = new Strategy({ ...options, tokenStore: mysqlTokenStore(pool) });
 */
export function mysqlTokenStore(pool: MysqlPoolLike, options: MysqlTokenStoreOptions = {}): ListedTokenStore {
  const given = withMethods<MysqlPoolLike>('a pool of mysql2', ['query', 'execute'])('pool', pool);
  const { table, ...times } = readOptions('mysqlTokenStore', options, {
    table: tableName,
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  const promised: unknown = 'promise' in given ? given.promise() : given;
  return sqlTokenStore(mysqlDatabase(promised as MysqlPromisePoolLike, quoted(table)), times);
}

function mysqlDatabase(pool: MysqlPromisePoolLike, table: string): SqlDatabase {
  // UTC_TIMESTAMP depends on no time zone, and so on no daylight saving time.
  const after = 'DATE_ADD(UTC_TIMESTAMP(3), INTERVAL ? * 1000 MICROSECOND)';
  const insert = `INSERT IGNORE INTO ${table} (id, version, record, expires_at) VALUES (?, ?, ?, ${after})`;
  const query = pool.query.bind(pool) as (options: object, values: readonly unknown[]) => Promise<unknown>;
  const send = async (sql: string, values: readonly unknown[]): Promise<SqlResult> =>
    resultOf(await query({ sql, ...PLAIN }, values));
  const checkSettings = succeedOnce(async () => {
    const names = "'autocommit', 'transaction_read_only', 'tx_read_only'";
    const { rows } = await send(`SHOW SESSION VARIABLES WHERE Variable_name IN (${names})`, []);
    for (const row of rows as readonly { readonly Variable_name: string; readonly Value: string }[]) {
      if (row.Variable_name !== 'autocommit' && row.Value === 'ON') throw readOnly();
      if (row.Variable_name === 'autocommit' && row.Value === 'OFF')
        throw new TokenStoreError(
          'The connections of the pool have autocommit = 0: no grant would ever be committed. Give mysqlTokenStore a pool with autocommit = 1.',
        );
    }
  });
  return {
    product: 'MySQL',
    createTable: [createTableSql(table)],
    statements: {
      get: `SELECT record FROM ${table} WHERE id = ? AND expires_at > UTC_TIMESTAMP(3)`,
      set: `REPLACE INTO ${table} (id, version, record, expires_at) VALUES (?, ?, ?, ${after})`,
      add: insert,
      deleteExpired: `DELETE FROM ${table} WHERE id = ? AND expires_at <= UTC_TIMESTAMP(3)`,
      update: `UPDATE ${table} SET version = ?, record = ?, expires_at = ${after}
        WHERE id = ? AND version = ? AND expires_at > UTC_TIMESTAMP(3)`,
      delete: `DELETE FROM ${table} WHERE id = ?`,
      deleteVersion: `DELETE FROM ${table} WHERE id = ? AND version = ?`,
      insertLease: insert,
      replaceLease: `UPDATE ${table} SET version = ?, record = ?, expires_at = ${after} WHERE id = ? AND
        (expires_at <= UTC_TIMESTAMP(3)
          OR expires_at > DATE_ADD(UTC_TIMESTAMP(3), INTERVAL 2 * version * 1000 MICROSECOND))`,
      findLease: `SELECT 1 FROM ${table} WHERE id = ? AND record = ? AND expires_at > UTC_TIMESTAMP(3)`,
      release: `DELETE FROM ${table} WHERE id = ? AND record = ?`,
      list: `SELECT id FROM ${table} WHERE id >= ? AND id < ? AND id NOT LIKE 'lock %' AND id NOT LIKE 'login:%' AND id NOT LIKE 'limit:%' AND id NOT LIKE 'frame:%'
        AND expires_at > UTC_TIMESTAMP(3) ORDER BY id LIMIT ${PAGE_ROWS}`,
      sweep: `DELETE FROM ${table} WHERE expires_at < UTC_TIMESTAMP(3) LIMIT ${SWEEP_ROWS}`,
    },
    run: async (sql, values) => {
      // Bytes in place of texts: no character set, collation or SQL mode of the connection changes them.
      const bytes = values.map((value) => (typeof value === 'string' ? Buffer.from(value) : value));
      await checkSettings();
      return await send(sql, bytes).catch((error: unknown) => {
        throw READ_ONLY.includes(fieldOf(error, 'errno')) ? readOnly() : error;
      });
    },
    remedyFor: (error) => {
      const errno = fieldOf(error, 'errno');
      if (errno === TABLE_MISSING) return 'create';
      return LOST.includes(errno) ? 'retry' : undefined;
    },
  };
}

function readOnly(): TokenStoreError {
  return new TokenStoreError(
    'The connections of the pool are read-only: no grant can be saved. Give mysqlTokenStore a pool of the primary with transaction_read_only = OFF.',
  );
}

/** Parses what mysql2 resolves to: rows or a header, and the fields. */
function resultOf(answer: unknown): SqlResult {
  const [result]: readonly unknown[] = Array.isArray(answer) ? answer : [];
  if (Array.isArray(result)) return { rows: result, changed: 0 };
  const isHeader = typeof result === 'object' && result !== null && 'affectedRows' in result;
  if (!isHeader) throw optionError('pool', 'expected a pool of mysql2, whose queries resolve to rows or a header');
  return { rows: [], changed: Number(result.affectedRows) };
}

function createTableSql(table: string): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  id VARBINARY(1100) NOT NULL PRIMARY KEY,
  version BIGINT NOT NULL,
  record MEDIUMBLOB NOT NULL,
  expires_at DATETIME(3) NOT NULL,
  INDEX expires_at (expires_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
`;
}

function quoted(name: readonly string[]): string {
  return name.map((part) => `\`${part}\``).join('.');
}
