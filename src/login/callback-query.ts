import { asRouted } from '../session/visit.js';

/** The parameters of a callback. `malformed` is answered with 400 before anything is looked up. */
export type CallbackQuery = { readonly kind: 'malformed' } | CallbackAnswer;

/** What the service answers in a callback: a code, or an error. */
export type CallbackAnswer = { readonly state: string | undefined; readonly issuer: string | undefined } & (
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'error'; readonly error: string; readonly description: string | undefined }
);

/** Maximum length of each parameter of RFC 6749, 4.1.2 and 4.1.2.1, and of RFC 9207. */
const MAX_LENGTH = {
  code: 4096,
  state: 512,
  error: 2048,
  error_description: 4096,
  error_uri: 2048,
  iss: 2048,
} as const;

/** Any of these makes a request a callback. The other parameters only add to them, and may be empty. */
const DECISIVE: ReadonlySet<string> = new Set(['code', 'state', 'error']);

/** Longer descriptions are cut off. */
const MAX_DESCRIPTION_LENGTH = 500;

/** Visible ASCII and space (VSCHAR of RFC 6749, appendix A). */
const PRINTABLE_ASCII = /^[\x20-\x7e]+$/;

/** Replaces an error that is not visible ASCII. It is not an error code itself. */
const UNREGISTERED_ERROR = 'unregistered error';

/**
 * Parses the query of a callback from the raw URL: frameworks turn repeated and bracketed parameters into lists and
 * objects, and Connect parses nothing.
 *
 * @param url Path and query.
 * @returns `undefined` if no parameter, well-formed or not, makes the request a callback
 * @see RFC 6749, 4.1.2; service.md, 4.1
 */
export function readCallbackQuery(url: string): CallbackQuery | undefined {
  const found: { -readonly [Name in keyof typeof MAX_LENGTH]?: string } = {};
  let isCallback = false;
  let isMalformed = false;
  for (const [name, value] of queryParameters(url)) {
    const [stem = ''] = name.split('[', 1);
    const isParameter = Object.hasOwn(MAX_LENGTH, stem);
    const isDecisive = DECISIVE.has(stem);
    isCallback ||= isDecisive;
    // Bracketed forms of these parameters, and attempts at prototype pollution.
    isMalformed ||= value === '__proto__' || name.includes('__proto__') || (isParameter && stem !== name);
    if (!isParameter || isMalformed) continue;
    const known = name as keyof typeof MAX_LENGTH;
    isMalformed = found[known] !== undefined || (isDecisive && value === '') || value.length > MAX_LENGTH[known];
    if (!isDecisive || PRINTABLE_ASCII.test(value)) found[known] = value;
    // Some services send a sentence as the error. NUL and broken UTF-8 are not text.
    else if (known === 'error' && !/[\0\ufffd]/.test(value)) found.error = UNREGISTERED_ERROR;
    else isMalformed = true;
  }
  if (!isCallback) return undefined;
  const { code, error, state, iss: issuer } = found;
  if (isMalformed || (code === undefined) === (error === undefined)) return { kind: 'malformed' };
  if (code !== undefined) return { kind: 'code', code, state, issuer };
  const description = found.error_description?.slice(0, MAX_DESCRIPTION_LENGTH);
  return { kind: 'error', error: error ?? '', description, state, issuer };
}

/** Returns the parameters of a URL's query in their order. Most hold no escapes and need no parser. */
export function queryParameters(url: string): Iterable<readonly [name: string, value: string]> {
  const [, ...rest] = url.split('?');
  const query = rest.join('?');
  if (!/^[!-$&-*,->@-~]*$/.test(query)) return new URLSearchParams(query);
  const pairs: [string, string][] = [];
  for (const part of query.split('&')) {
    const equals = part.indexOf('=');
    if (part !== '') pairs.push(equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)]);
  }
  return pairs;
}

/** A `callbackURL` that is the same for all requests. */
export const ABSOLUTE_URL: RegExp = /^https?:/i;

/** Returns the routed path of a `callbackURL`. A relative one is resolved against the path of the request. */
export function routedPathOf(callbackURL: string, path: string): string {
  // A request line may hold a whole URL.
  return asRouted(new URL(callbackURL, `http://relative.invalid${path.startsWith('/') ? path : '/'}`).pathname);
}
