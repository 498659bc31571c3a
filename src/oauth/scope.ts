import { ConfigurationError } from '../errors.js';
import { safeCause } from '../redaction.js';

/** A scope name: visible ASCII without quotes and backslashes (RFC 6749, 3.3). */
const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Maximum length of all granted scope names together, in characters: they are kept with each grant. */
const MAX_LENGTH = 8 * 1024;

/** Returns the names of a text of scopes, each once. Separated by white space, or by commas as some services do. */
export function scopeNames(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
}

/** Maps the names of granted scopes to those by which the application knows them: aliases, and scopes that others imply. */
export type GrantedScopes = (names: string[]) => string[];

/**
 * Reads the `scope` of a token response: a text, or a list of names as some services send it. Returns `undefined` if the
 * response names none: then the scopes that were asked for are granted.
 *
 * @throws ConfigurationError if the application's function throws, or returns anything but a list of texts
 * @see RFC 6749, 5.1
 */
export function grantedScope(value: unknown, map?: GrantedScopes): readonly string[] | undefined {
  const text = Array.isArray(value) && value.every((name) => typeof name === 'string') ? value.join(' ') : value;
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return undefined;
  const names = scopeNames(text);
  if (names.length === 0 || !names.every((name) => SCOPE_NAME.test(name))) return undefined;
  if (!map) return names;
  let mapped: unknown;
  try {
    mapped = map([...names]);
  } catch (error) {
    throw failed('the function threw instead of returning names', safeCause(error));
  }
  if (!Array.isArray(mapped) || !mapped.every((name) => typeof name === 'string'))
    throw failed('expected a function that returns a list of texts');
  return [...new Set<string>(mapped)];
}

function failed(problem: string, cause?: Error): ConfigurationError {
  return new ConfigurationError(`grantedScopes: ${problem}`, { option: 'grantedScopes', cause });
}
