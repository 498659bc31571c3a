/** Paths of plain segments, by far the most: nothing to encode, nothing to guard against. */
const PLAIN = /^\/?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?$/;

/** Characters that stand in a path as they are (RFC 3986, 3.3), and `%`, whose escapes are checked apart. */
const TO_ENCODE = /[^\w.~!$&'()*+,;=:@/%-]+/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const FORBIDDEN = /[\u0000-\u001f\u007f\\]/;

/** Nobody encodes a path more often than this but to get it past a guard. */
const MAX_DECODINGS = 5;

/**
 * The path of an API request below `/api/v2`, with a leading slash and percent-encoded where that is needed.
 *
 * What it lets through stays below `/api/v2` of the same host, however often the service decodes it.
 *
 * @param path `projects/7` or `/projects/7`. Values in it should have gone through `encodeURIComponent`.
 * @throws TypeError for an absolute URL, `//host`, an empty or dot segment in any encoding, a backslash, a control
 *   character, a `?` or `#`, a broken escape or a lone surrogate. Its message does not quote the path.
 */
export function apiPath(path: unknown): string {
  if (typeof path !== 'string') throw new TypeError(`path: expected a string, got ${describe(path)}`);
  if (!PLAIN.test(path)) return guardedPath(path);
  return path.startsWith('/') ? path : `/${path}`;
}

function guardedPath(path: string): string {
  const rooted = path.startsWith('/') ? path : `/${path}`;
  refuse(path === '' || rooted.includes('//'), 'has an empty segment');
  refuse(/^[a-z][a-z\d+.-]*:/i.test(path), 'is an absolute URL');
  refuse(/[?#]/.test(path), 'has a ? or #; give the query in the option `query`, and encode values');
  const encoded = encode(rooted);
  checkEveryDecoding(encoded);
  return encoded;
}

function encode(path: string): string {
  refuse(/%(?![\da-f]{2})/i.test(path), 'has a percent sign that starts no escape; encode values');
  try {
    return path.replace(TO_ENCODE, encodeURIComponent);
  } catch {
    throw refusal('has a lone surrogate');
  }
}

function checkEveryDecoding(encoded: string): void {
  refuse(!isUtf8(encoded), 'has an escape that is not UTF-8');
  let text = encoded;
  for (let decodings = 0; decodings <= MAX_DECODINGS; decodings++) {
    refuse(FORBIDDEN.test(text), 'has a backslash or a control character');
    refuse(text.split('/').some(isDotSegment), 'has a dot segment');
    const decoded = decodeOnce(text);
    if (decoded === text) return;
    text = decoded;
  }
  throw refusal('is encoded several times over');
}

/** Some servers take `..;name` for `..`, and a URL parser drops the space at the end of what was decoded for it. */
function isDotSegment(segment: string): boolean {
  const name = segment.split(';', 1)[0]?.trim();
  return name === '.' || name === '..';
}

function isUtf8(encoded: string): boolean {
  try {
    decodeURIComponent(encoded);
    return true;
  } catch {
    return false;
  }
}

/** Byte by byte: only ASCII matters to the checks, and a second decoding need not be valid UTF-8. */
function decodeOnce(text: string): string {
  return text.replace(/%([\da-f]{2})/gi, (_escape, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function refuse(condition: boolean, reason: string): void {
  if (condition) throw refusal(reason);
}

function refusal(reason: string): TypeError {
  return new TypeError(`path: it ${reason}; expected a path below /api/v2, for example /projects/7`);
}

function describe(value: unknown): string {
  return value === null ? 'null' : typeof value;
}
