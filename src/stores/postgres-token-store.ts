import { readOptions, withMethods } from '../checks.js';
import { leaseSeconds } from './lease-lock.js';
import { createTable, type PostgresPoolLike, postgresDatabase } from './postgres-database.js';
import { sqlTokenStore, tableName } from './sql-token-store.js';
import { type TokenStore, ttlSeconds } from './token-store.js';

export type { PostgresPoolLike } from './postgres-database.js';

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
   * Seconds after which the lock of a holder that died is free again, 1 to 600. At least the strategy's `timeout` and 5 s
   * more, or a slow refresh outlives its lock: the strategy warns of a shorter one. Default: 30.
   */
  readonly lease?: number | undefined;
}

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
