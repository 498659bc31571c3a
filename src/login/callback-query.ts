import { queryOf } from '../request/incoming-request.js';

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery =
  | { readonly kind: 'code'; readonly code: string; readonly state: string | undefined }
  | { readonly kind: 'error'; readonly error: string; readonly state: string | undefined }
  | { readonly kind: 'malformed' };

/** Longest value of each parameter of RFC 6749, 4.1.2 and 4.1.2.1 that is read. Descriptions are the sender's words: they are ignored. */
const MAX_LENGTH = { code: 4096, state: 512, error: 128 } as const;

type Name = keyof typeof MAX_LENGTH;

const MALFORMED: CallbackQuery = { kind: 'malformed' };

/** Returns true if a query has a parameter of a callback, well-formed or not. @param url Path and query. */
export function hasCallbackParameters(url: string): boolean {
  return [...queryOf(url).keys()].some(isAboutCallback);
}

/**
 * Reads the query of a callback from the request's URL itself: frameworks turn repeated and bracketed parameters into
 * lists and objects, and Connect parses nothing.
 *
 * @param url Path and query.
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(url: string): CallbackQuery {
  const found = new Map<Name, string>();
  for (const [name, value] of queryOf(url)) {
    if (value === '__proto__' || isForged(name)) return MALFORMED;
    if (!isKnown(name)) continue;
    if (found.has(name) || !isWellFormed(value, MAX_LENGTH[name])) return MALFORMED;
    found.set(name, value);
  }
  const [code, error, state] = [found.get('code'), found.get('error'), found.get('state')];
  if (code !== undefined && error === undefined) return { kind: 'code', code, state };
  if (error !== undefined && code === undefined) return { kind: 'error', error, state };
  return MALFORMED;
}

function isAboutCallback(name: string): boolean {
  return isKnown(name.split('[', 1)[0] ?? '');
}

/** Returns true for bracketed forms of our parameters, and for any name that reaches for a prototype. */
function isForged(name: string): boolean {
  return name.includes('__proto__') || (name.includes('[') && isAboutCallback(name));
}

function isKnown(name: string): name is Name {
  return Object.hasOwn(MAX_LENGTH, name);
}

/** Returns true for visible ASCII and space (VSCHAR of RFC 6749, appendix A), at least one character. */
function isWellFormed(value: string, maxLength: number): boolean {
  return value.length <= maxLength && /^[\x20-\x7e]+$/.test(value);
}
