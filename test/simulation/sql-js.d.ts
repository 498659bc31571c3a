/** The part of SQLite's engine, compiled to WebAssembly, that the simulation uses. */
declare module 'sql.js/dist/sql-wasm-inline.js' {
  type Value = string | number | null;
  interface Statement {
    bind(values: readonly Value[]): boolean;
    step(): boolean;
    getAsObject(): Readonly<Record<string, Value>>;
    reset(): void;
  }
  interface Database {
    exec(sql: string): unknown;
    prepare(sql: string): Statement;
    getRowsModified(): number;
    close(): void;
  }
  export default function initSqlJs(): Promise<{ readonly Database: new () => Database }>;
}
