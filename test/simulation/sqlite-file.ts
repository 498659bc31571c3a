import initSqlJs, { type Statement, type Value } from 'sql.js/dist/sql-wasm-inline.js';

const { Database } = await initSqlJs();

/** SQLite's own engine, with a clock that a test sets: what each Node version and machine has. */
export class SqliteFile {
  readonly #database = new Database();
  readonly #statements = new Map<string, Statement>();
  readonly #now: () => number;

  /** @param now Epoch milliseconds. */
  constructor(now: () => number) {
    this.#now = now;
  }

  /** Runs one statement. @throws Error as SQLite does */
  execute(sql: string, values: readonly Value[]) {
    const { now } = Date;
    // The engine asks the global clock.
    Date.now = this.#now;
    try {
      const statement = this.#statements.get(sql) ?? this.#database.prepare(sql);
      this.#statements.set(sql, statement);
      statement.bind(values);
      const rows: Readonly<Record<string, Value>>[] = [];
      while (statement.step()) rows.push(statement.getAsObject());
      statement.reset();
      return { rows, changes: this.#database.getRowsModified() };
    } finally {
      Date.now = now;
    }
  }
}
