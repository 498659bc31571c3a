const MAX_LENGTH = 2048;

/** Control characters and white space, which browsers drop or read as ends, and the backslash, which they read as a slash. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const UNSAFE = /[\x00-\x20\x7f\\]/;

/**
 * A path of this origin to go back to after login: `value` if it is one, else `/`.
 *
 * Whatever a browser could take for another origin is refused, in the form that it has after dot segments are
 * resolved as well.
 */
export function safeReturnTo(value: unknown): string {
  if (typeof value !== 'string' || value.length > MAX_LENGTH || !value.startsWith('/') || UNSAFE.test(value))
    return '/';
  if (!URL.canParse(value, 'http://here.invalid')) return '/';
  const { origin, pathname, search, hash } = new URL(value, 'http://here.invalid');
  const path = pathname + search + hash;
  // Percent-encoded, a text may be nine times as long as it was.
  return origin === 'http://here.invalid' && !path.startsWith('//') && path.length <= MAX_LENGTH ? path : '/';
}
