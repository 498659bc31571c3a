/** Parameters by name; a name that came more than once has all of its values. */
export type Query = Readonly<Record<string, string | readonly string[]>>;

/**
 * The parameters of a query string or of a form body.
 *
 * @param text - Without the question mark.
 * @returns `undefined` if the percent-encoding is broken: a value that cannot be read cannot be returned unchanged either.
 * @see https://url.spec.whatwg.org/#application/x-www-form-urlencoded
 */
export function readQuery(text: string): Query | undefined {
  const found = new Map<string, string | readonly string[]>();
  try {
    for (const pair of text.split('&')) {
      if (pair !== '') add(found, pair);
    }
  } catch {
    return undefined;
  }
  // Makes own properties of all names, of `__proto__` too.
  return Object.fromEntries(found);
}

/** The one value of a parameter; `undefined` if it is absent or came more than once. */
export function single(query: Query, name: string): string | undefined {
  const value = Object.hasOwn(query, name) ? query[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

function add(found: Map<string, string | readonly string[]>, pair: string): void {
  const mark = pair.indexOf('=');
  const name = decoded(mark < 0 ? pair : pair.slice(0, mark));
  const value = mark < 0 ? '' : decoded(pair.slice(mark + 1));
  const before = found.get(name);
  found.set(name, before === undefined ? value : typeof before === 'string' ? [before, value] : [...before, value]);
}

function decoded(text: string): string {
  return text.includes('%') || text.includes('+') ? decodeURIComponent(text.replaceAll('+', ' ')) : text;
}
