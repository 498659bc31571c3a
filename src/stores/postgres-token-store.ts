import { readOptions, withMethods } from '../checks.js';
import { leaseSeconds } from './lease-lock.js';
import { type SqlDatabase, sqlTokenStore, tableName } from './sql-token-store.js';
import { type TokenStore, ttlSeconds } from './token-store.js';

/** The part of a pool of pg that is used: single queries. A client of pg, or of a proxy that pools transactions, works too. */
export interface PostgresPoolLike {
  query(
    text: string,
    values?: unknown[],
  ): Promise<{ readonly rows: readonly unknown[]; readonly rowCount?: number | null }>;
}

/** Options of {@link postgresTokenStore}. */
export interface PostgresTokenStoreOptions {
  /**
   * Name of the table, with its schema in front of a dot if it is not in the search path. Letters, digits and
   * underscores; case-sensitive. Default: `passport_oauth_app_grants`.
   */
  readonly table?: string | undefined;
  /** Seconds that a grant is kept after its last write, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. Must exceed the longest refresh: twice
   * the strategy's `timeout`, since a request that never left is sent once more. Default: 30.
   */
  readonly lease?: number | undefined;
}

/** Number of expired rows that are deleted at a time. */
const SWEEP_ROWS = 1000;

/** serialization_failure, deadlock_detected: the statement lost against a concurrent one. */
const LOST: readonly unknown[] = ['40001', '40P01'];

/**
 * undefined_table; and, where another process creates the table at the same moment (IF NOT EXISTS does not prevent it),
 * unique_violation of the catalogue, duplicate_table and duplicate_object.
 */
const TABLE_MISSING_OR_MADE: readonly unknown[] = ['42P01', '23505', '42P07', '42710'];

/**
 * Returns the SQL that creates the table of {@link postgresTokenStore}, for a migration of the application. Without a
 * migration the store creates the table when it first misses it, for which its role needs the right to create tables.
 * The SQL may run any number of times.
 *
 * @throws {ConfigurationError} naming `table`
 */
export function postgresMigration(options: { readonly table?: string | undefined } = {}): string {
  const { table } = readOptions('postgresMigration', options, { table: tableName });
  return createTable(table).join('');
}

/**
 * Returns a token store in PostgreSQL, with all five methods: processes and hosts that share the database refresh a
 * grant once between them. One table holds grants and locks. A query rejects after 5 s, including the wait for a
 * connection of the pool. A lock occupies no connection.
 *
 * @param pool of pg; the application listens for its `error` events and ends it
 * @throws {ConfigurationError} if `pool` has no method `query`, or an option is wrong or unknown
 *
 * @example
 * const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
 * const strategy = new Strategy({ ...options, tokenStore: postgresTokenStore(pool) });
 */
export function postgresTokenStore(
  pool: PostgresPoolLike,
  options: PostgresTokenStoreOptions = {},
): Required<TokenStore> {
  withMethods<PostgresPoolLike>('a pool of pg', ['query'])('pool', pool);
  const { table, ...times } = readOptions('postgresTokenStore', options, {
    table: tableName,
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  return sqlTokenStore(postgresDatabase(pool, table), times);
}

function postgresDatabase(pool: PostgresPoolLike, name: readonly string[]): SqlDatabase {
  const table = quoted(name);
  const ms = `interval '1 millisecond'`;
  return {
    product: 'PostgreSQL',
    createTable: createTable(name),
    statements: {
      get: `SELECT record FROM ${table} WHERE id = $1 AND expires_at > now()`,
      set: `INSERT INTO ${table} (id, version, record, expires_at) VALUES ($1, $2, $3, now() + $4 * ${ms})
        ON CONFLICT (id) DO UPDATE
        SET version = excluded.version, record = excluded.record, expires_at = excluded.expires_at`,
      update: `UPDATE ${table} SET version = $1, record = $2, expires_at = now() + $3 * ${ms}
        WHERE id = $4 AND version = $5 AND expires_at > now() RETURNING id`,
      delete: `DELETE FROM ${table} WHERE id = $1`,
      deleteVersion: `DELETE FROM ${table} WHERE id = $1 AND version = $2`,
      insertLease: `INSERT INTO ${table} (id, version, record, expires_at)
        VALUES ($1, $2, $3, clock_timestamp() + $4 * ${ms}) ON CONFLICT (id) DO NOTHING RETURNING id`,
      // The statement may wait for another one on the same row, and now() is the time when it began to wait.
      replaceLease: `UPDATE ${table} SET version = $1, record = $2, expires_at = clock_timestamp() + $3 * ${ms}
        WHERE id = $4 AND (expires_at <= clock_timestamp() OR expires_at > clock_timestamp() + 2 * version * ${ms})
        RETURNING id`,
      release: `DELETE FROM ${table} WHERE id = $1 AND record = $2`,
      sweep: `DELETE FROM ${table} WHERE id IN
        (SELECT id FROM ${table} WHERE expires_at < now() LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED)`,
    },
    run: async (statement, values) => {
      const { rows } = await pool.query(statement, [...values]);
      return { rows, changed: rows.length };
    },
    remedyFor: (error) => {
      const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
      if (TABLE_MISSING_OR_MADE.includes(code)) return 'create';
      return LOST.includes(code) ? 'retry' : undefined;
    },
  };
}

function createTable(name: readonly string[]): readonly string[] {
  return [
    `CREATE TABLE IF NOT EXISTS ${quoted(name)} (
  id text PRIMARY KEY,
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
