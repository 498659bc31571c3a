/** The part of SQLite's engine, compiled to WebAssembly, that tests use. */
declare module 'sql.js/dist/sql-wasm-inline.js' {
  type Value = string | number | null;
  interface Statement {
    bind(values: readonly Value[]): boolean;
    step(): boolean;
    getAsObject(): Readonly<Record<string, Value>>;
    reset(): void;
  }
  interface Database {
    prepare(sql: string): Statement;
    getRowsModified(): number;
  }
  export default function initSqlJs(): Promise<{ readonly Database: new () => Database }>;
}
