/** Value of a query parameter. A date is sent in ISO 8601; `undefined` is left out. */
export type QueryValue = string | number | bigint | boolean | Date | undefined;

/** Query parameters: an object, also one typed by an interface. An array repeats its name. */
export type Query =
  | Readonly<Record<string, QueryValue | readonly QueryValue[]>>
  | (object & { readonly [Symbol.iterator]?: never });

/** Where a request goes. The base address depends on its credential. */
export interface RequestTarget {
  /** Encoded, with a leading slash. Below the API's base address, or the whole path if there is an `origin`. */
  readonly path: string;
  /** Empty, or with a leading `?`. */
  readonly query: string;
  /** The origin of a URL, which may have to be that of the API. */
  readonly origin?: string | undefined;
  /** True for `fetch`: the path may begin with the API path already, and redirects may lead anywhere on the origin. */
  readonly isWholeOrigin?: boolean;
}

/** Paths of plain segments, which most are: there is nothing to encode or to refuse. */
const PLAIN_PATH = /^\/?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?$/;

/** Characters that a path needs escapes for (RFC 3986, 3.3), without `%`, whose escapes are checked separately. */
const TO_ENCODE = /[^\w.~!$&'()*+,;=:@/%-]+/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\u0000-\u001f\u007f\\]/;

/** Only an attempt to get past the checks is encoded more often. */
const MAX_DECODINGS = 5;

/**
 * Returns the path of a request below the API's base address, with a leading slash, percent-encoded if needed. It stays
 * below that address, however often the service decodes it.
 *
 * @param path `projects/7` or `/projects/7`. Pass values in it through `encodeURIComponent`.
 * @throws TypeError for an absolute URL, `//host`, an empty or dot segment in any encoding, a backslash, a control
 *   character, a `?` or `#`, a broken escape or a lone surrogate. Its message does not quote the path.
 */
export function apiPath(path: unknown): string {
  if (typeof path !== 'string')
    throw new TypeError(`path: expected a string, got ${path === null ? 'null' : typeof path}`);
  const rooted = path.startsWith('/') ? path : `/${path}`;
  if (PLAIN_PATH.test(path)) return rooted;
  if (/^[a-z][a-z\d+.-]*:/i.test(path)) {
    throw new TypeError(
      'path: it is an absolute URL; expected a path below client.baseUrl, for example /projects/7. ' +
        'A URL of the API itself goes to client.fetch(url), a link to another host to the global fetch(url), without the token.',
    );
  }
  refuse(path === '' || rooted.includes('//'), 'has an empty segment');
  refuse(/[?#]/.test(path), 'has a ? or #; pass the query as the option `query`, and encode values');
  refuse(/%(?![\da-f]{2})/i.test(rooted), 'has a percent sign that starts no escape; encode values');
  refuse(!rooted.isWellFormed(), 'has a lone surrogate');
  const encoded = rooted.replace(TO_ENCODE, encodeURIComponent);
  try {
    decodeURIComponent(encoded);
  } catch {
    refuse(true, 'has an escape that is not UTF-8');
  }
  const texts = decodings(encoded);
  for (const text of texts) {
    refuse(FORBIDDEN.test(text), 'has a backslash or a control character');
    // Some servers take `..;name` for `..`, and URL parsers drop the space at the end of a decoded segment.
    const names = text.split('/').map((segment) => segment.split(';', 1)[0]?.trim());
    refuse(names.includes('.') || names.includes('..'), 'has a dot segment');
  }
  refuse(texts.length > MAX_DECODINGS + 1, 'is encoded several times over');
  return encoded;
}

/** Returns a path as it is, decoded once, twice and so on, until no escape is left or after six times. */
export function decodings(path: string): readonly string[] {
  const texts = [path];
  for (let text = path; texts.length <= MAX_DECODINGS + 1; texts.push(text)) {
    const before = text;
    // Byte by byte: the checks look for ASCII only, and a second decoding need not be valid UTF-8.
    text = before.replace(/%([\da-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (text === before) break;
  }
  return texts;
}

function refuse(condition: boolean, reason: string): void {
  if (condition)
    throw new TypeError(`path: it ${reason}; expected a path below client.baseUrl, for example /projects/7`);
}

/**
 * Returns the query of a request: empty, or with a leading `?`.
 *
 * @throws TypeError for objects, `null`, `NaN`, invalid dates and lone surrogates as values. Its message names the parameter,
 *   never its value.
 */
export function queryString(query: Query | URLSearchParams | undefined): string {
  if (query === undefined) return '';
  if (query instanceof URLSearchParams) return query.size === 0 ? '' : `?${query}`;
  if (typeof query !== 'object' || query === null || Symbol.iterator in query) {
    throw new TypeError('query: expected an object of parameters, or URLSearchParams');
  }
  const pairs = Object.entries(query).flatMap(([name, value]: [string, unknown]) =>
    (Array.isArray(value) ? value : [value])
      .filter((one: unknown) => one !== undefined)
      .map((one: unknown) => `${encodeParameter(name, name)}=${encodeParameter(name, one)}`),
  );
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

function encodeParameter(name: string, value: unknown): string {
  const isDate = value instanceof Date && Number.isFinite(value.getTime());
  const isText = typeof value === 'string' && value.isWellFormed();
  const isPlain = isText || typeof value === 'boolean' || typeof value === 'bigint' || Number.isFinite(value);
  if (isDate || isPlain) return encodeURIComponent(isDate ? value.toISOString() : String(value));
  const shown = /^[\w.[\]-]{1,64}$/.test(name) ? ` ${name}` : '';
  throw new TypeError(
    `query: expected strings, finite numbers, booleans, dates or arrays of these in the parameter${shown}`,
  );
}
