import { ConfigurationError } from '../errors.js';

/** Longest name of a table: PostgreSQL's 63 bytes, less what the name of the index adds. */
const MAX_NAME_LENGTH = 52;

/** A table as SQL names it. */
export interface TableName {
  /** Quoted, with its schema if one was given. */
  readonly table: string;
  /** Quoted name of the index that finds what has expired. */
  readonly index: string;
}

/**
 * The table's name, quoted: it becomes part of SQL texts, where parameters cannot stand.
 *
 * @throws {ConfigurationError} naming `table` if it is not one name, or a schema and a name with a dot between; each
 *   of letters, digits and underscores, not beginning with a digit, 52 at most. Case counts.
 */
export function tableOption(owner: string, value: unknown): TableName {
  if (value === undefined) return quoted(['passport_oauth_app_grants']);
  const parts = typeof value === 'string' ? value.split('.') : [];
  if (parts.length >= 1 && parts.length <= 2 && parts.every(isName)) return quoted(parts);
  const message = `${owner}: "table" must be a name, or a schema and a name with a dot between, each of letters, digits and underscores, ${MAX_NAME_LENGTH} at most.`;
  throw new ConfigurationError(message, { option: 'table' });
}

/** The statements that make the table; they may run any number of times. */
export function createTableSql({ table, index }: TableName): string {
  return `CREATE TABLE IF NOT EXISTS ${table} (
  id text PRIMARY KEY,
  version bigint NOT NULL,
  record text NOT NULL,
  expires_at timestamptz NOT NULL
);
CREATE INDEX IF NOT EXISTS ${index} ON ${table} (expires_at);
`;
}

function isName(part: string): boolean {
  return part.length <= MAX_NAME_LENGTH && /^[A-Za-z_][A-Za-z0-9_]*$/.test(part);
}

function quoted(parts: readonly string[]): TableName {
  return { table: parts.map((part) => `"${part}"`).join('.'), index: `"${parts.at(-1)}_expires_at"` };
}
