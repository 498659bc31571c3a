import { parametersOf } from '../session/visit.js';

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
  for (const [name, value] of parametersOf(url)) {
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
