import { field } from './field.js';

const MAX_LENGTH = 300;

/** Entries of a list of errors that are shown. */
const MAX_ENTRIES = 3;

/** Runs that may be a secret or a part of one, in whatever encoding. */
const SECRET_LIKE = /[\w+/=~%-]{32,}/g;

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is struck out
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]+/g;

/**
 * What the service itself says about a refused request, in the two shapes found in the field:
 * `{ error: { message, code } }` and `{ errors: [{ error: { key, errors: [{ code, message }] } }] }`.
 *
 * @param accessToken Struck out, as a whole and in its parts: services echo what they choke on
 * @returns One line of at most 300 characters; `undefined` where the data has neither shape
 */
export function serviceMessage(data: unknown, accessToken: string): string | undefined {
  const text = singleError(data) ?? listOfErrors(data);
  if (text === undefined) return undefined;
  const line = withoutToken(text, accessToken).replace(CONTROLS, ' ').replace(SECRET_LIKE, '[…]').trim();
  return line === '' ? undefined : line.slice(0, MAX_LENGTH);
}

function singleError(data: unknown): string | undefined {
  const error = field(data, 'error');
  const message = field(error, 'message');
  return typeof message === 'string' ? withCode(message, field(error, 'code')) : undefined;
}

function listOfErrors(data: unknown): string | undefined {
  const entries = listOf(field(data, 'errors')).flatMap((entry) => {
    const error = field(entry, 'error');
    const key = field(error, 'key');
    return listOf(field(error, 'errors')).map((one) => keyed(key, one));
  });
  return entries.length === 0 ? undefined : entries.slice(0, MAX_ENTRIES).join('; ');
}

function keyed(key: unknown, error: unknown): string {
  const message = field(error, 'message');
  const text = withCode(typeof message === 'string' ? message : '', field(error, 'code'));
  return typeof key === 'string' ? `${key}: ${text}` : text;
}

function withCode(message: string, code: unknown): string {
  return typeof code === 'string' || typeof code === 'number' ? `${message} (${code})` : message;
}

/** A JWT is struck out part by part: its signature alone must not be shown either. */
function withoutToken(text: string, accessToken: string): string {
  const parts = [accessToken, ...accessToken.split('.')].filter((part) => part.length >= 8);
  return parts.reduce((rest, part) => rest.replaceAll(part, '[…]'), text);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, MAX_ENTRIES) : [];
}
