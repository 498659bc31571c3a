import { randomBytes } from 'node:crypto';
import { ConfigurationError } from '../errors.js';

/** Escaped, for the 1,024 characters that a store is promised at most: a strategy's name takes 192. */
const MAX_ESCAPED_LENGTH = 800;

/** A new id that nobody can guess: 256 random bits, 43 characters of base64url. */
export function randomGrantId(): string {
  return randomBytes(32).toString('base64url');
}

/** Whether a value of the session can be one of {@link randomGrantId}'s. */
export function isRandomGrantId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{43}$/.test(value);
}

/**
 * An id that the application gave.
 *
 * @throws ConfigurationError unless it is a well-formed text of 1 to 800 characters, each as often as its escaping makes it
 */
export function checkedGrantId(value: unknown): string {
  if (typeof value === 'string' && isFitId(value)) return value;
  throw new ConfigurationError(
    `grantId: expected a text of 1 to ${MAX_ESCAPED_LENGTH} characters (escaped) that is the same for each request of the user, got ` +
      (typeof value === 'string' ? `a text of ${value.length} characters` : typeof value),
    { option: 'grantId' },
  );
}

function isFitId(value: string): boolean {
  if (value.length === 0 || value.length > MAX_ESCAPED_LENGTH || !value.isWellFormed()) return false;
  return encodeURIComponent(value).length <= MAX_ESCAPED_LENGTH;
}

/**
 * The id under which a store keeps the grant. Printable ASCII; ids of different strategies never meet, since
 * the escaping leaves no `+` in either part.
 */
export function storeId(strategy: string, grantId: string): string {
  return `${encodeURIComponent(strategy)}+${encodeURIComponent(grantId)}`;
}
