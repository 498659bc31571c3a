import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { createTableSql, type TableName } from './postgres-table.js';
import { withTimeout } from './time-limit.js';

/** What is used of a pool of pg: single queries. A client of pg, or of a proxy that pools transactions, does too. */
export interface PostgresPoolLike {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Milliseconds that one query may take, the wait for a connection of the pool included. */
const QUERY_MS = 5000;

/** How often a statement is tried that lost against another one (under an isolation above READ COMMITTED). */
const MAX_TRIES = 5;

/** serialization_failure, deadlock_detected */
const LOST_AGAINST_ANOTHER: readonly unknown[] = ['40001', '40P01'];

/** unique_violation of the catalogue, duplicate_table, duplicate_object: another process made the table just now. */
const MADE_MEANWHILE: readonly unknown[] = ['23505', '42P07', '42710'];

const UNDEFINED_TABLE = '42P01';

/**
 * Runs one statement and resolves to its rows.
 *
 * @param verb what it does to a grant, for the message of the TokenStoreError that comes of every failure
 */
export type Run = (verb: string, text: string, values: unknown[]) => Promise<readonly unknown[]>;

/** Runs statements on `pool`, each a transaction of its own; makes the table when a statement misses it. */
export function queries(pool: PostgresPoolLike, name: TableName): Run {
  return async (verb, text, values) => {
    const late = (): TokenStoreError =>
      new TokenStoreError(`PostgreSQL did not ${verb} a grant within ${QUERY_MS} ms.`);
    try {
      return await withTimeout(attempts(pool, name, text, values), QUERY_MS, late);
    } catch (error) {
      if (error instanceof TokenStoreError) throw error;
      throw new TokenStoreError(`PostgreSQL could not ${verb} a grant.`, { cause: safeCause(error) });
    }
  };
}

async function attempts(
  pool: PostgresPoolLike,
  name: TableName,
  text: string,
  values: unknown[],
): Promise<readonly unknown[]> {
  const deadline = performance.now() + QUERY_MS;
  for (let tries = 1; ; tries += 1) {
    try {
      return (await pool.query(text, values)).rows;
    } catch (error) {
      const remedy = remedyFor(error);
      // Nobody waits for what is late, and a late write would undo what was written in between.
      if (remedy === undefined || tries === MAX_TRIES || performance.now() >= deadline) throw error;
      if (remedy === 'create') await createTable(pool, name);
    }
  }
}

function remedyFor(error: unknown): 'create' | 'retry' | undefined {
  const code = codeOf(error);
  if (code === UNDEFINED_TABLE) return 'create';
  return LOST_AGAINST_ANOTHER.includes(code) ? 'retry' : undefined;
}

async function createTable(pool: PostgresPoolLike, name: TableName): Promise<void> {
  try {
    await pool.query(createTableSql(name));
  } catch (error) {
    // IF NOT EXISTS does not help against a process that makes the table at the same moment.
    if (!MADE_MEANWHILE.includes(codeOf(error))) throw error;
  }
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}
