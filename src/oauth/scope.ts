/** A scope name: visible ASCII without quotes and backslashes (RFC 6749, 3.3). */
const SCOPE_NAME = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Maximum length of all granted scope names together, in characters: they are kept with each grant. */
const MAX_LENGTH = 8 * 1024;

/** Returns the names of a text of scopes, each once. Separated by white space, or by commas as some services do. */
export function scopeNames(text: string): readonly string[] {
  return [...new Set(text.split(/[\s,]+/).filter((name) => name !== ''))];
}

/**
 * Reads the `scope` of a token response: a text, or a list of names as some services send it. Returns `undefined` if the
 * response has none, or anything else: then the scopes that were asked for are granted.
 *
 * @see RFC 6749, 5.1
 */
export function grantedScope(value: unknown): readonly string[] | undefined {
  const text = Array.isArray(value) && value.every((name) => typeof name === 'string') ? value.join(' ') : value;
  if (typeof text !== 'string' || text.length > MAX_LENGTH) return undefined;
  const names = scopeNames(text);
  return names.every((name) => SCOPE_NAME.test(name)) ? names : undefined;
}
