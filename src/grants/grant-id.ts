import { randomBytes } from 'node:crypto';
import { ConfigurationError } from '../errors.js';

/** Limit for an escaped id. A store gets at most 1,024 characters, of which a strategy's name takes up to 192. */
const MAX_ESCAPED_LENGTH = 800;

/** Returns a new unguessable id: 256 random bits, 43 characters of base64url. */
export function randomGrantId(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns true if a value of the session can come from {@link randomGrantId}. */
export function isRandomGrantId(value: unknown): value is string {
  return typeof value === 'string' && /^[\w-]{43}$/.test(value);
}

/**
 * Returns an id of the application, checked.
 *
 * @throws ConfigurationError unless it is a well-formed text of 1 to 800 characters after escaping
 */
export function checkedGrantId(value: unknown): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= MAX_ESCAPED_LENGTH && value.isWellFormed()) {
    if (encodeURIComponent(value).length <= MAX_ESCAPED_LENGTH) return value;
  }
  throw new ConfigurationError(
    `grantId: expected a text of 1 to ${MAX_ESCAPED_LENGTH} characters (escaped) that is the same for each request of the user, got ` +
      (typeof value === 'string' ? `a text of ${value.length} characters` : typeof value),
    { option: 'grantId' },
  );
}
