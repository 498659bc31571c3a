import { type Lease, leaseLock, leaseOption } from './lease-lock.js';
import { type PostgresPoolLike, queries, type Run } from './postgres-queries.js';
import { createTableSql, type TableName, tableOption } from './postgres-table.js';
import { refuseUnknownOptions, requireMethods, ttlOption } from './store-options.js';
import { parseGrant, serializeGrant } from './stored-grant.js';
import type { StoredGrant, TokenStore } from './token-store.js';

export type { PostgresPoolLike } from './postgres-queries.js';

/** Options of {@link postgresTokenStore}. */
export interface PostgresTokenStoreOptions {
  /**
   * The table's name, with its schema before a dot if it is not to be looked for in the search path. Letters, digits
   * and underscores; case counts. Default: `passport_oauth_app_grants`.
   */
  readonly table?: string | undefined;
  /** Seconds that a grant is kept after it was last written, 1 to ten years. Default: 2,592,000 (30 days). */
  readonly ttl?: number | undefined;
  /**
   * Seconds after which the lock of a holder that died is free again, 1 to 600. Must be longer than the longest
   * refresh: twice the strategy's `timeout`, since a request that never left is tried once more. Default: 30.
   */
  readonly lease?: number | undefined;
}

const OWNER = 'postgresTokenStore';

/** Milliseconds between two deletions of what has expired, for each store; and rows deleted at a time. */
const SWEEP_EVERY_MS = 60_000;
const SWEEP_ROWS = 1000;

/**
 * The SQL that makes the table of {@link postgresTokenStore}, for a migration of your own. Without it the table is
 * made when it is first missed, for which the role needs the right to create one. May run any number of times.
 *
 * @throws {ConfigurationError} naming `table`
 */
export function postgresMigration(options: { readonly table?: string | undefined } = {}): string {
  refuseUnknownOptions('postgresMigration', options, ['table']);
  return createTableSql(tableOption('postgresMigration', options.table));
}

/**
 * A token store in PostgreSQL, with all five methods: processes and hosts that share the database refresh a grant
 * once between them. One table holds grants and locks; rows whose time is over count as absent, and are deleted in
 * passing. A query that takes longer than 5 s, the wait for a connection included, rejects.
 *
 * The lock is a row that ends by itself and not an advisory lock. An advisory lock would keep a connection for as
 * long as its work runs, while that work asks the same pool for another one: as many locks as the pool has
 * connections, and nothing goes on. Nor would it hold through a proxy that pools transactions. The price is that a
 * holder which died is waited for until its lease ends.
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
  requireMethods(OWNER, 'pool', pool, { what: 'a pool of pg', methods: ['query'] });
  refuseUnknownOptions(OWNER, options, ['table', 'ttl', 'lease']);
  const name = tableOption(OWNER, options.table);
  const ttl = ttlOption(OWNER, options.ttl);
  const leaseSeconds = leaseOption(OWNER, options.lease);
  const run = queries(pool, name);
  const sweep = sweeper(run, name);
  return {
    ...grantQueries(run, name, ttl, sweep),
    lock: leaseLock(leaseQueries(run, name, leaseSeconds), leaseSeconds * 1000),
  };
}

// Times are the database's throughout: processes on several hosts have no other clock in common.

function grantQueries(
  run: Run,
  { table }: TableName,
  ttl: number,
  sweep: () => void,
): Omit<Required<TokenStore>, 'lock'> {
  const get = `SELECT record FROM ${table} WHERE id = $1 AND expires_at > now()`;
  const set = `INSERT INTO ${table} (id, version, record, expires_at) VALUES ($1, $2, $3, now() + $4 * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, record = excluded.record, expires_at = excluded.expires_at`;
  const update = `UPDATE ${table} SET version = $2, record = $3, expires_at = now() + $4 * interval '1 second'
    WHERE id = $1 AND version = $5 AND expires_at > now() RETURNING id`;
  const values = (id: string, grant: StoredGrant): unknown[] => [id, grant.version, serializeGrant(grant), ttl];
  return {
    get: async (id) => grantIn(await run('read', get, [id])),
    set: async (id, grant) => {
      await run('save', set, values(id, grant));
      sweep();
    },
    delete: async (id) => void (await run('delete', `DELETE FROM ${table} WHERE id = $1`, [id])),
    update: async (id, grant, version) => {
      const changed = await run('update', update, [...values(id, grant), version]);
      sweep();
      return changed.length === 1;
    },
  };
}

function leaseQueries(run: Run, { table }: TableName, leaseSeconds: number): Lease {
  // A statement may wait for another one on the same row, and now() would tell when it began to wait.
  const take = `INSERT INTO ${table} AS held (id, version, record, expires_at)
    VALUES ($1, 0, $2, clock_timestamp() + $3 * interval '1 second')
    ON CONFLICT (id) DO UPDATE SET record = excluded.record, expires_at = clock_timestamp() + $3 * interval '1 second'
    WHERE held.expires_at <= clock_timestamp() RETURNING id`;
  const release = `DELETE FROM ${table} WHERE id = $1 AND record = $2`;
  return {
    take: async (id, owner) => (await run('lock', take, [lockId(id), owner, leaseSeconds])).length === 1,
    release: async (id, owner) => void (await run('unlock', release, [lockId(id), owner])),
  };
}

/** A grant id holds no white space, so no grant ever has this one. */
function lockId(id: string): string {
  return `lock ${id}`;
}

function grantIn([row]: readonly unknown[]): StoredGrant | undefined {
  if (typeof row !== 'object' || row === null || !('record' in row)) return undefined;
  return parseGrant(String(row.record));
}

/** Deletes some of what has expired, once a minute at most, while nobody waits for it. */
function sweeper(run: Run, { table }: TableName): () => void {
  const sweep = `DELETE FROM ${table} WHERE id IN
    (SELECT id FROM ${table} WHERE expires_at < now() LIMIT ${SWEEP_ROWS} FOR UPDATE SKIP LOCKED)`;
  let sweptAt = Number.NEGATIVE_INFINITY;
  return () => {
    if (performance.now() - sweptAt < SWEEP_EVERY_MS) return;
    sweptAt = performance.now();
    // What cannot be deleted now is deleted a minute later; to readers it is gone already.
    run('sweep', sweep, []).catch(() => undefined);
  };
}
