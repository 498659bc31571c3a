import { randomUUID } from 'node:crypto';
import { readOptions, withMethods } from '../checks.js';
import { type ListenForChanges, watchOver } from '../databases/change-feed.js';
import { sqlTokenStore, tableName } from '../databases/sql-token-store.js';
import { type ListedTokenStore, leaseSeconds, type TokenStore, ttlSeconds } from '../stores/token-store.js';
import { pause } from '../waiting.js';
import { channelOf, createTable, type PostgresPoolLike, postgresDatabase } from './postgres-database.js';

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
 * Returns a token store in PostgreSQL, with all methods: processes and hosts that share the database refresh a
 * grant once between them. One table holds grants and locks. A query rejects after 5 s, including the wait for a
 * connection of the pool. A lock occupies no connection.
 *
 * `watch` listens (`LISTEN`) on a separate connection, created the way the pool creates its own. A client instead of a pool
 * has no `watch`. PgBouncer in transaction mode drops notifications: deletions by other processes then take up to
 * `cache.ttl` to apply, and a process warning (`ERR_NO_NOTIFICATIONS`) says so.
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
): ListedTokenStore & Pick<TokenStore, 'watch'> {
  withMethods<PostgresPoolLike>('a pool of pg', ['query'])('pool', pool);
  const { table, ...times } = readOptions('postgresTokenStore', options, {
    table: tableName,
    ttl: ttlSeconds,
    lease: leaseSeconds,
  });
  const listen = listenOn(pool, channelOf(table));
  return { ...sqlTokenStore(postgresDatabase(pool, table), times), ...(listen && { watch: watchOver(listen) }) };
}

/** How long a notification may take, in milliseconds. */
const HEARD_MS = 5_000;

function warnNoNotifications(): void {
  process.emitWarning(
    'postgresTokenStore: no notification of PostgreSQL arrives, most likely because the pool leads to PgBouncer in transaction mode. What another process deletes or imports holds here only after cache.ttl (30 s unless set). To have it hold at once, give the store a pool that leads to PostgreSQL itself, or to PgBouncer in session mode.',
    { code: 'ERR_NO_NOTIFICATIONS' },
  );
}

/** The part of a client of pg that is used to hear of changes. */
interface PostgresClient {
  on(event: string, listener: (message: { readonly payload?: string | undefined }) => void): unknown;
  connect(): Promise<unknown>;
  query(text: string): Promise<unknown>;
  end(): Promise<unknown>;
  unref?(): void;
}

/** Returns what listens to a channel by a client that is made as the pool makes its own. `undefined` for anything but a pool. */
function listenOn(pool: PostgresPoolLike, channel: string): ListenForChanges | undefined {
  if (!('Client' in pool && 'options' in pool && typeof pool.Client === 'function')) return undefined;
  const Client = pool.Client as new (options: unknown) => PostgresClient;
  let hasWarned = false;
  return async ({ tell, lose, signal }) => {
    const client = new Client(pool.options);
    let isHeard = false;
    for (const event of ['error', 'end']) client.on(event, lose);
    // No id of a grant. Hearing another process proves nothing: its message may come while a proxy still has LISTEN's answer to pass on.
    const probe = ` ${randomUUID()}`;
    client.on('notification', ({ payload }) => {
      if (payload === probe) isHeard = true;
      else tell(payload ?? '');
    });
    signal.addEventListener('abort', () => void client.end().catch(() => undefined));
    await client.connect();
    // An application that ends its pool, but does not close the strategy, can still exit.
    client.unref?.();
    await client.query(`LISTEN "${channel}"`);
    // Sent through the pool: a proxy may pass on only what the listening connection itself sends.
    void pool
      .query('SELECT pg_notify($1, $2)', [channel, probe])
      .then(() => pause(HEARD_MS, { signal, unref: true }))
      .then(() => {
        if (!isHeard && !hasWarned) warnNoNotifications();
        hasWarned ||= !isHeard;
      })
      // The pool fails or is ended, or the connection is: that says nothing of notifications.
      .catch(() => undefined);
    return () => client.query('SELECT 1');
  };
}
