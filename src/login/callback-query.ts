import { queryOf } from '../request/incoming-request.js';

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery =
  | { readonly kind: 'code'; readonly code: string; readonly state: string | undefined }
  | { readonly kind: 'error'; readonly error: string; readonly state: string | undefined }
  | { readonly kind: 'malformed' };

/** Longest value of each parameter of RFC 6749, 4.1.2 and 4.1.2.1 that is read. Descriptions are the sender's words: they are ignored. */
const MAX_LENGTH = { code: 4096, state: 512, error: 2048 } as const;

type Name = keyof typeof MAX_LENGTH;

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A). */
const VISIBLE_ASCII = /^[\x20-\x7e]+$/;

/** Stands for an error that is not visible ASCII: nothing of its text is used. */
const UNREGISTERED_ERROR = 'unregistered_error';

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
    if (found.has(name) || value === '' || value.length > MAX_LENGTH[name]) return MALFORMED;
    if (VISIBLE_ASCII.test(value)) found.set(name, value);
    // Some services send a sentence as the error. NUL and broken UTF-8 are not text.
    else if (name === 'error' && !/[\0\ufffd]/.test(value)) found.set(name, UNREGISTERED_ERROR);
    else return MALFORMED;
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
