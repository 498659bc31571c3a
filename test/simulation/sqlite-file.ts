import initSqlJs, { type Statement, type Value } from 'sql.js/dist/sql-wasm-inline.js';
import { EPOCH } from './machine.js';
import { KEY_PREFIX, type Keyspace, type Row } from './store.js';

const { Database } = await initSqlJs();

/** The table of `sqliteTokenStore`. */
const TABLE = 'passport_oauth_app_grants';

/** The file of the trial before: its memory is not JavaScript's, and nobody else frees it. */
let former: InstanceType<typeof Database> | undefined;

/** What a statement gives. */
export interface Outcome {
  readonly rows: readonly Readonly<Record<string, Value>>[];
  readonly changes: number;
}

/** A file of SQLite that all processes have opened: SQLite's own engine, whose clock is that of the simulation. */
export class SqliteFile implements Keyspace {
  readonly #database: InstanceType<typeof Database>;
  readonly #statements = new Map<string, Statement>();
  readonly #now: () => number;
  #hasTable = false;

  /** @param now Milliseconds of simulated time. */
  constructor(now: () => number) {
    former?.close();
    this.#database = new Database();
    former = this.#database;
    this.#now = now;
  }

  read(key: string): Row | undefined {
    if (!this.#hasTable) return undefined;
    const id = key.slice(KEY_PREFIX.length);
    const [row] = this.execute(`SELECT record, expires_at FROM ${TABLE} WHERE id = ?`, [id]).rows;
    const until = Number(row?.expires_at) - EPOCH;
    return row && until > this.#now() ? { value: observedValue(id, String(row.record)), until } : undefined;
  }

  write(key: string, row: Row | undefined): void {
    const id = key.slice(KEY_PREFIX.length);
    if (row === undefined) this.execute(`DELETE FROM ${TABLE} WHERE id = ?`, [id]);
    else {
      const { version, owner } = JSON.parse(row.value) as { readonly version?: number; readonly owner?: string };
      const values = [id, version ?? 30_000, owner ?? row.value, row.until + EPOCH];
      this.execute(`INSERT OR REPLACE INTO ${TABLE} (id, version, record, expires_at) VALUES (?, ?, ?, ?)`, values);
    }
  }

  /** Runs one statement. @throws Error as SQLite does */
  execute(sql: string, values: readonly Value[]): Outcome {
    const { now } = Date;
    // The engine's clock, while it runs: it asks the global one.
    Date.now = () => EPOCH + this.#now();
    try {
      const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
      this.#statements.set(sql, statement);
      statement.bind(values);
      const rows: Readonly<Record<string, Value>>[] = [];
      while (statement.step()) rows.push(statement.getAsObject());
      statement.reset();
      this.#hasTable ||= sql.startsWith('CREATE TABLE');
      return { rows, changes: this.#database.getRowsModified() };
    } finally {
      Date.now = now;
    }
  }
}

/** Returns a record as the observer reads it: that of a lease is its owner's name. */
function observedValue(id: string, record: string): string {
  return id.startsWith('lock ') ? JSON.stringify({ owner: record }) : record;
}

/** Returns what a statement does, as the observer calls it, and for which key. */
export function operationOf(sql: string, values: readonly unknown[]): { readonly op: string; readonly key: string } {
  const verb = sql.slice(0, 6).toLowerCase();
  const id = String((verb === 'update' ? values[3] : values[0]) ?? '');
  const key = KEY_PREFIX + id;
  if (id.startsWith('lock ')) return { op: { select: 'check', delete: 'release' }[verb] ?? 'take', key };
  return { op: { select: 'get', insert: 'set' }[verb] ?? verb, key };
}
