/** What a callback says. `malformed` is to be answered with 400, before anything is looked up. */
export type CallbackQuery =
  | { readonly kind: 'code'; readonly code: string; readonly state: string | undefined }
  | { readonly kind: 'error'; readonly error: string; readonly state: string | undefined }
  | { readonly kind: 'malformed' };

/** The parameters of RFC 6749, 4.1.2 and 4.1.2.1 that are read. Descriptions are the sender's words: they never are. */
const LONGEST = { code: 4096, state: 512, error: 128 } as const;

type Name = keyof typeof LONGEST;

const MALFORMED: CallbackQuery = { kind: 'malformed' };

/** Whether a query has anything of a callback about it. @param url Path and query. */
export function hasCallbackParameters(url: string): boolean {
  return parameters(url).some(([name]) => isAboutCallback(name));
}

/**
 * Reads the query of a callback.
 *
 * Taken from the request's URL itself: frameworks parse repeated and bracketed parameters into lists and objects,
 * and Connect parses nothing.
 *
 * @param url Path and query.
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(url: string): CallbackQuery {
  const found = new Map<Name, string>();
  for (const [name, value] of parameters(url)) {
    if (value === '__proto__' || isForged(name)) return MALFORMED;
    if (!isKnown(name)) continue;
    if (found.has(name) || !isWellFormed(value, LONGEST[name])) return MALFORMED;
    found.set(name, value);
  }
  return interpret(found.get('code'), found.get('error'), found.get('state'));
}

function interpret(code: string | undefined, error: string | undefined, state: string | undefined): CallbackQuery {
  if (code !== undefined && error === undefined) return { kind: 'code', code, state };
  if (error !== undefined && code === undefined) return { kind: 'error', error, state };
  return MALFORMED;
}

function parameters(url: string): readonly [string, string][] {
  const start = url.indexOf('?');
  return start < 0 ? [] : [...new URLSearchParams(url.slice(start + 1))];
}

function isAboutCallback(name: string): boolean {
  return isKnown(name.split('[', 1)[0] ?? '');
}

/** Bracketed forms of our parameters, and whatever reaches for a prototype. */
function isForged(name: string): boolean {
  return name.includes('__proto__') || (name.includes('[') && isAboutCallback(name));
}

function isKnown(name: string): name is Name {
  return Object.hasOwn(LONGEST, name);
}

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A), at least one character. NUL and broken UTF-8 fall through. */
function isWellFormed(value: string, longest: number): boolean {
  return value.length <= longest && /^[\x20-\x7e]+$/.test(value);
}
