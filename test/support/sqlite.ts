import { createRequire } from 'node:module';
import type { SqliteDatabaseLike } from 'passport-oauth-app/sqlite';
import { isInstalled } from './service-process.js';

/** A database of one of the packages that are supported. */
export interface SqliteDatabase extends SqliteDatabaseLike {
  close(): void;
}

const require = createRequire(import.meta.url);

const names = ['better-sqlite3', 'node:sqlite'].filter(canLoad);

/**
 * Opens a file with each package that is there: better-sqlite3, which is not among the dev dependencies since its
 * installation compiles (`npm install --no-save better-sqlite3`), and node:sqlite from Node 22.5 on.
 */
export const sqlitePackages: readonly (readonly [string, (file: string) => SqliteDatabase])[] = names.map(
  (name) => [name, (file) => open(name, file)] as const,
);

/** Whether one of the packages is there; see {@link isInstalled}. For `describe.skipIf(!hasSqlite())`. */
export const hasSqlite = (): boolean => isInstalled('better-sqlite3 or node:sqlite', names[0]);

function open(name: string, file: string): SqliteDatabase {
  const loaded = require(name);
  return name === 'node:sqlite' ? new loaded.DatabaseSync(file) : new loaded(file);
}

function canLoad(name: string): boolean {
  try {
    require(name);
    return true;
  } catch {
    return false;
  }
}
