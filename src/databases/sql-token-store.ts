import { optionError, type Reader } from '../checks.js';
import { TokenStoreError } from '../errors.js';
import { safeCause } from '../redaction.js';
import { type ListedTokenStore, parseGrant, ttlMsOf } from '../stores/token-store.js';
import { pause, withTimeout } from '../waiting.js';
import { type Lease, leaseLock } from './lease-lock.js';

/** Result of one statement. */
export interface SqlResult {
  readonly rows: readonly unknown[];
  /** Number of rows that were inserted, updated or deleted. */
  readonly changed: number;
}

/** A database, and a token store's statements in its dialect. Each statement is its own transaction. */
export interface SqlDatabase {
  /** Name of the product, for messages. */
  readonly product: string;
  /** Create the table. May run any number of times. */
  readonly createTable: readonly string[];
  /** The statements; their parameters, in order, in brackets. Durations are in milliseconds. */
  readonly statements: {
    /** Selects `record` of a row that has not expired: [id]. */
    readonly get: string;
    /** Inserts or replaces a row: [id, version, record, ttl]. */
    readonly set: string;
    /** Inserts a row if there is none: [id, version, record, ttl]. */
    readonly add: string;
    /** Deletes a row that has expired: [id]. */
    readonly deleteExpired: string;
    /** Updates a row of this version that has not expired: [version, record, ttl, id, version now]. */
    readonly update: string;
    /** Deletes a row: [id]. */
    readonly delete: string;
    /** Deletes a row of this version: [id, version]. */
    readonly deleteVersion: string;
    /** Inserts a lease if there is none: [id, lease, owner, lease]. */
    readonly insertLease: string;
    /** Replaces an expired lease: [lease, owner, lease, id]. */
    readonly replaceLease: string;
    /** Selects the lease of this owner if it has not ended: [id, owner]. */
    readonly findLease: string;
    /** Deletes the lease of this owner: [id, owner]. */
    readonly release: string;
    /** Deletes up to {@link SWEEP_ROWS} of the rows that have expired: []. */
    readonly sweep: string;
    /** Selects `id` of the first {@link PAGE_ROWS} rows in a range of ids, by their bytes: grants that have not expired: [from, to]. */
    readonly list: string;
  };
  /** Runs one statement. The first one also throws where the settings of the connections would let nothing be saved. */
  run(statement: string, values: readonly (string | number)[]): Promise<SqlResult>;
  /**
   * Returns what helps after an error: `create` the table, `retry` at once (lost to a concurrent statement), or `wait` and
   * retry (the database is locked). `undefined` if nothing does.
   */
  remedyFor(error: unknown): 'create' | 'retry' | 'wait' | undefined;
  /** What may keep the database locked, for the message of a statement that waited in vain. */
  readonly lockedHint?: string;
}

/** Number of ids that one statement lists. */
export const PAGE_ROWS = 1000;

/** Number of expired rows that one statement deletes. */
export const SWEEP_ROWS = 1000;

/** Pause between two of these while there are more, in milliseconds, so that other statements can run. */
const SWEEP_PAUSE_MS = 50;

/** How long one statement may take, in milliseconds, including the wait for a connection of the pool. */
const STATEMENT_MS = 5000;

/** Maximum number of attempts of a statement that loses against concurrent ones. */
const MAX_ATTEMPTS = 5;

/** Pause of a statement that waits for a locked database, in milliseconds. */
const PAUSE_MS = 10;

/** Interval between two deletions of all expired rows, for each store, in milliseconds. */
const SWEEP_INTERVAL_MS = 60_000;

/** Longest name of a table: PostgreSQL's 63 bytes, less the suffix of the index. */
const MAX_NAME_LENGTH = 52;

/**
 * Reads the option `table`: a name, or a schema and a name. Returns the parts. They become part of SQL, where
 * parameters cannot stand.
 */
export const tableName: Reader<readonly string[]> = (option, value) => {
  if (value === undefined) return ['passport_oauth_app_grants'];
  const parts = typeof value === 'string' ? value.split('.') : [];
  const isName = (part: string): boolean => part.length <= MAX_NAME_LENGTH && /^[A-Za-z_][A-Za-z0-9_]*$/.test(part);
  if (parts.length >= 1 && parts.length <= 2 && parts.every(isName)) return parts;
  throw optionError(
    option,
    `expected a name, or a schema and a name with a dot between, each of letters, digits and underscores, ${MAX_NAME_LENGTH} at most`,
  );
};

/**
 * Returns a token store over one table, which holds grants and leases. Expired rows count as absent, and are deleted
 * once a minute in passing, a thousand at a time. All times are the database's: processes on several hosts have no other clock in common.
 *
 * A lease is a row that ends by itself, not a lock of the database. Such a lock would occupy a connection while the
 * work asks the same pool for another one: with as many locks as connections, nothing goes on. Nor would it hold
 * through a proxy that pools transactions. The price: others wait for a holder that died until its lease ends. The row
 * of a lease has the lease's length as its version: one that seems to last more than twice as long shows that the
 * clock was set back, and counts as ended.
 */
export function sqlTokenStore(
  database: SqlDatabase,
  { ttl, lease }: { readonly ttl: number; readonly lease: number },
): ListedTokenStore {
  const { statements } = database;
  const run = runStatement.bind(undefined, database);
  // A grant id holds no white space, so it never equals the id of a lease.
  const leaseId = (id: string): string => `lock ${id}`;
  const leaseMs = Math.ceil(lease * 1000);
  let sweptAt = Number.NEGATIVE_INFINITY;
  const sweep = async (): Promise<void> => {
    if (performance.now() - sweptAt < SWEEP_INTERVAL_MS) return;
    for (let changed = SWEEP_ROWS; changed >= SWEEP_ROWS; ) {
      sweptAt = performance.now();
      // Expired rows are absent to readers, so a failure can wait for the next time.
      changed = await run('sweep', statements.sweep, []).then(
        (result) => result.changed,
        () => 0,
      );
      if (changed >= SWEEP_ROWS) await pause(SWEEP_PAUSE_MS, { unref: true });
    }
  };
  const leases: Required<Lease> = {
    take: async (id, owner) => {
      const values = [leaseMs, owner, leaseMs];
      // A statement that waits in the database takes the lease after its caller, and a release, have gone by.
      const undo = (): void => void leases.release(id, owner).catch(() => undefined);
      const { changed } = await run('lock', statements.insertLease, [leaseId(id), ...values], undo);
      return changed > 0 || (await run('lock', statements.replaceLease, [...values, leaseId(id)], undo)).changed > 0;
    },
    isHeld: async (id, owner) => (await run('check', statements.findLease, [leaseId(id), owner])).rows.length > 0,
    release: async (id, owner) => void (await run('unlock', statements.release, [leaseId(id), owner])),
  };
  return {
    get: async (id) => {
      const [row] = (await run('read', statements.get, [id])).rows;
      const isRow = typeof row === 'object' && row !== null && 'record' in row;
      return isRow ? parseGrant(String(row.record)) : undefined;
    },
    set: async (id, grant) => {
      await run('save', statements.set, [id, grant.version, JSON.stringify(grant), ttlMsOf(id, ttl)]);
      void sweep();
    },
    delete: async (id, version) => {
      if (version === undefined) await run('delete', statements.delete, [id]);
      else await run('delete', statements.deleteVersion, [id, version]);
    },
    update: async (id, grant, version) => {
      const values = [grant.version, JSON.stringify(grant), ttlMsOf(id, ttl), id, version];
      const { changed } = await run('update', statements.update, values);
      void sweep();
      return changed > 0;
    },
    add: async (id, grant) => {
      const add = () => run('save', statements.add, [id, grant.version, JSON.stringify(grant), ttlMsOf(id, ttl)]);
      if ((await add()).changed > 0) return true;
      await run('delete', statements.deleteExpired, [id]);
      return (await add()).changed > 0;
    },
    lock: leaseLock(leases, leaseMs),
    list: async function* (prefix = '') {
      // Ids are printable ASCII without white space: a space is below each of their characters, DEL above.
      for (let from: string | undefined = prefix; from !== undefined; ) {
        const { rows }: SqlResult = await run('list', statements.list, [from, `${prefix}\x7f`]);
        const ids: readonly string[] = rows.map((row) => String(Reflect.get(Object(row), 'id')));
        yield* ids;
        from = ids.length < PAGE_ROWS ? undefined : `${ids.at(-1)} `;
      }
    },
  };
}

/** How many errors a query builder and its driver may wrap around the database's. */
const MAX_WRAPPERS = 3;

/** Returns a field of the database's error, which query builders wrap: as `cause`, Sequelize as `parent`. */
export function fieldOf(error: unknown, field: string): unknown {
  let inner: unknown = error;
  for (let wrappers = 0; wrappers <= MAX_WRAPPERS && typeof inner === 'object' && inner !== null; wrappers += 1) {
    const value: unknown = Reflect.get(inner, field);
    if (value !== undefined) return value;
    inner = Reflect.get(inner, 'cause') ?? Reflect.get(inner, 'parent');
  }
  return undefined;
}

/**
 * Runs a statement within the time limit.
 *
 * @param onLate Called if the database performs it after the limit.
 * @throws TokenStoreError for every failure
 */
async function runStatement(
  database: SqlDatabase,
  verb: string,
  statement: string,
  values: readonly (string | number)[],
  onLate?: () => void,
): Promise<SqlResult> {
  const late = new AbortController();
  let hint = '';
  const timeout = (): TokenStoreError => {
    late.abort();
    return new TokenStoreError(`${database.product} did not ${verb} a grant within ${STATEMENT_MS} ms.${hint}`);
  };
  const onWait = (): void => {
    if (database.lockedHint !== undefined) hint = ` ${database.lockedHint}`;
  };
  const running = runWithRemedies(database, statement, values, late.signal, onWait);
  if (onLate) {
    void running.then(
      () => late.signal.aborted && onLate(),
      () => undefined,
    );
  }
  try {
    return await withTimeout(running, STATEMENT_MS, timeout);
  } catch (error) {
    if (error instanceof TokenStoreError) throw error;
    throw new TokenStoreError(`${database.product} could not ${verb} a grant.`, { cause: safeCause(error) });
  }
}

async function runWithRemedies(
  database: SqlDatabase,
  statement: string,
  values: readonly (string | number)[],
  late: AbortSignal,
  onWait: () => void,
): Promise<SqlResult> {
  for (let attempts = 1; ; ) {
    try {
      return await database.run(statement, values);
    } catch (error) {
      const remedy = database.remedyFor(error);
      // The caller of a late statement has gone on, and a late write would undo what was written since.
      if (remedy === undefined || attempts === MAX_ATTEMPTS || late.aborted) throw error;
      if (remedy === 'wait') {
        onWait();
        await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (1 + Math.random())));
      } else attempts += 1;
      if (late.aborted) throw error;
      if (remedy === 'create') for (const each of database.createTable) await createOnce(database, each);
    }
  }
}

/** Runs a statement that creates something; ignores the error of one that another process has created just now. */
async function createOnce(database: SqlDatabase, statement: string): Promise<void> {
  try {
    await database.run(statement, []);
  } catch (error) {
    if (database.remedyFor(error) !== 'create') throw error;
  }
}
