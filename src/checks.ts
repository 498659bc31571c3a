import { IncomingMessage } from 'node:http';
import { ConfigurationError } from './errors.js';
import { safeCause } from './redaction.js';

/** Returns the checked value of an option. @throws ConfigurationError "OPTION: expected …, got …" */
export type Reader<T> = (option: string, value: unknown) => T;

/** An option that may be left out: its reader and its default. */
export interface Optional<T> {
  readonly read: Reader<T>;
  readonly fallback: T;
}

/** A reader for each required option, and a default too for each other one. Options without an entry are refused as unknown. */
export type Readers<T> = { readonly [Option in keyof T]-?: Reader<T[Option]> | Optional<T[Option]> };

/** A loopback host in the form of `URL.hostname` (RFC 6761, 6.3; RFC 1122, 3.2.1.3; RFC 4291, 2.5.3). */
export const LOOPBACK_HOST: RegExp = /(^|\.)localhost$|^127(\.\d{1,3}){3}$|^\[::1\]$/;

/** Returns true for an https URL, and for an http one of a loopback host. */
export function isSecureUrl({ protocol, hostname }: URL): boolean {
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOST.test(hostname));
}

/**
 * Returns true for one lower-case label of a host name: at most 63 letters, digits and inner hyphens (RFC 1123, 2.1). No URL has
 * an `xn--` label that encodes no name (RFC 5891, 4.4).
 */
export function isDnsLabel(label: string): boolean {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) return false;
  return !label.startsWith('xn--') || URL.canParse(`https://${label}.invalid`);
}

/**
 * Reads an object of options.
 *
 * @param where What has the options, for the message about an unknown one.
 * @param parent The option that holds the object, if one does: messages then say `refresh.leeway` for `leeway`.
 * @throws ConfigurationError that names the wrong, missing or unknown one
 */
export function readOptions<T extends object>(where: string, given: unknown, readers: Readers<T>, parent?: string): T {
  // As `app.use(oauthErrors)` calls it.
  if (given instanceof IncomingMessage)
    throw optionError('options', `expected an object of options, got a request: mount what ${where} returns`);
  const values = record(parent ?? 'options', given);
  const path = parent === undefined ? '' : `${parent}.`;
  const known = Object.keys(readers);
  const unknown = Object.keys(values).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    const twin = known.find((option) => option.toLowerCase() === unknown.toLowerCase());
    const options = known.length === 0 ? 'it has none' : `the options are ${known.join(', ')}`;
    const hint = twin === undefined ? options : `did you mean ${twin}?`;
    throw optionError(path + unknown, `is not an option of ${where}; ${hint}`);
  }
  const rows: [option: string, row: Reader<unknown> | Optional<unknown>][] = Object.entries(readers);
  const read = rows.map(([option, row]) => {
    const value = values[option];
    if (typeof row === 'function') return [option, row(path + option, value)];
    return [option, value === undefined ? row.fallback : row.read(path + option, value)];
  });
  return Object.fromEntries(read) as T;
}

/** Reads an option that is itself an object of options, all of which have a default. */
export function group<T extends object>(readers: Readers<T>): Optional<T> {
  return {
    read: (option, value) => readOptions(option, value, readers, option),
    fallback: readOptions('', {}, readers),
  };
}

/** Makes an option optional. */
export function withDefault<T, D extends T | undefined>(fallback: D, read: Reader<T>): Optional<T | D> {
  return { read, fallback };
}

/** Returns true for an object that is not a list. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads an object. */
export function record(option: string, value: unknown): Readonly<Record<string, unknown>> {
  if (isRecord(value)) return value;
  throw optionError(option, `expected an object, got ${kindOf(value)}`);
}

/** Reads a required option. Its error asks about the environment variable of its name: an unset one is the usual cause. */
export function requiredOption<T>(read: Reader<T>): Reader<T> {
  return (option, value) => {
    try {
      return read(option, value);
    } catch (error) {
      const isMissing = value === undefined || value === '';
      if (!isMissing || !(error instanceof ConfigurationError)) throw error;
      const variable = option.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
      throw new ConfigurationError(`${error.message}. Is the environment variable ${variable} set?`, { option });
    }
  };
}

/** Reads a non-empty string. Its error never shows the value: it may be the client secret. */
export function text(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  throw optionError(option, `expected a non-empty string, got ${kindOf(value)}`);
}

/** Reads a boolean. */
export function boolean(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw optionError(option, `expected true or false, got ${kindOf(value)}`);
}

/** Reads a function. Its signature is taken on trust. */
export function fn<T>(option: string, value: unknown): T {
  if (typeof value === 'function') return value as T;
  throw optionError(option, `expected a function, got ${kindOf(value)}`);
}

type RangeReader = (min: number, max: number, unit: string) => Reader<number>;

/** Reads a number from `min` to `max`. */
export const number: RangeReader = rangeReader('a number', Number.isFinite);

/** Reads an integer from `min` to `max`. */
export const integer: RangeReader = rangeReader('an integer number', Number.isInteger);

function rangeReader(kind: string, isOfKind: (value: unknown) => boolean): RangeReader {
  return (min, max, unit) => (option, value) => {
    if (typeof value === 'number' && isOfKind(value) && value >= min && value <= max) return value;
    throw optionError(option, `expected ${kind} of ${unit} from ${min} to ${max}, got ${numberOrKind(value)}`);
  };
}

/**
 * Reads an object that has methods.
 *
 * @param expected What the message calls it: "an express-session store".
 * @param others Methods that it may lack.
 */
export function withMethods<T>(
  expected: string,
  methods: readonly string[],
  others: readonly string[] = [],
): Reader<T> {
  return (option, value) => {
    if (typeof value !== 'object' || value === null)
      throw optionError(option, `expected ${expected}, got ${kindOf(value)}`);
    const missing = [...methods, ...others].filter((name) => {
      const member: unknown = Reflect.get(value, name);
      return typeof member !== 'function' && !(member === undefined && others.includes(name));
    });
    if (missing.length === 0) return value as T;
    throw optionError(option, `expected ${expected}, got an object without the method ${missing.join(', ')}`);
  };
}

/** Reads the prefix of a store's keys. It may become part of a file name. */
export function keyPrefix(option: string, value: unknown): string {
  if (typeof value === 'string' && /^[!-.0-[\]-~]{1,64}$/.test(value)) return value;
  throw optionError(option, 'expected 1 to 64 printable ASCII characters without white space, "/" and "\\"');
}

/** Property names of a session that express-session, Passport and `Object.prototype` use. */
const RESERVED_NAMES = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  ...['cookie', 'destroy', 'id', 'messages', 'passport', 'prototype', 'regenerate', 'reload', 'req', 'resetMaxAge'],
  ...['returnTo', 'save', 'touch', 'session', 'flash'],
]);

/** Reads Passport's name for the strategy. It becomes a key of the session and part of cookie names. */
export function strategyName(option: string, value: unknown): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,64}$/.test(value) && !RESERVED_NAMES.has(value)) return value;
  throw optionError(
    option,
    'expected 1 to 64 printable ASCII characters, and not a name that sessions use themselves (such as passport)',
  );
}

/** Returns true for visible ASCII without quotes and backslashes (RFC 6749, 3.3). */
export function isScopeName(name: unknown): boolean {
  return typeof name === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(name);
}

/** Reads scope names and joins them with spaces. `''` and `[]` are for services without scopes. */
export function scope(option: string, value: unknown): string {
  if (value === '' || (Array.isArray(value) && value.length === 0)) return '';
  const names = typeof value === 'string' ? value.split(' ').filter((name) => name !== '') : value;
  if (Array.isArray(names) && names.length > 0 && names.every(isScopeName)) return names.join(' ');
  throw optionError(
    option,
    `expected scopes as 'project tm' or ['project', 'tm'], or [] for a service that has none, got ${kindOf(value)}`,
  );
}

const MAX_URL_LENGTH = 2048;

/** Reads a redirect URL: absolute with http or https, or relative; without a fragment (RFC 6749, 3.1.2), user and password. */
export function callbackUrl(option: string, value: unknown): string {
  const url = text(option, value);
  const parsed = URL.canParse(url, 'http://relative.invalid') ? new URL(url, 'http://relative.invalid') : undefined;
  // URL parsers take a backslash for a slash.
  if (url.length > MAX_URL_LENGTH || !/^[!-[\]-~]+$/.test(url) || !parsed) {
    const expected = `expected a URL of at most ${MAX_URL_LENGTH} visible ASCII characters without backslashes`;
    throw optionError(option, expected);
  }
  if (url.includes('#') || parsed.username !== '' || parsed.password !== '')
    throw optionError(option, 'expected a URL without a fragment, user and password');
  const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(url);
  if ((isAbsolute && !/^https?:\/\/[^/]/i.test(url)) || url.startsWith('//'))
    throw optionError(option, 'expected an http or https URL, or a path such as /callback');
  return url;
}

type ParametersReader = Reader<Readonly<Record<string, string>>>;

/** Reads further parameters of the authorization request, not those that the package sets (RFC 6749, 4.1.1; RFC 7636, 4.3). */
export const authorizationParams: ParametersReader = paramsReader([
  ...['client_id', 'client_secret', 'redirect_uri', 'response_type', 'scope', 'state'],
  ...['code_challenge', 'code_challenge_method'],
]);

/** Reads further parameters of token requests, not those that the package sets (RFC 6749, 4.1.3 and 6; RFC 7636, 4.5). */
export const tokenParams: ParametersReader = paramsReader([
  ...['grant_type', 'client_id', 'client_secret', 'redirect_uri', 'code', 'code_verifier', 'refresh_token'],
]);

function paramsReader(own: readonly string[]): ParametersReader {
  return (option, value) => {
    if (!isRecord(value)) throw optionError(option, 'expected an object of parameters, or a function that returns one');
    const params: Record<string, string> = {};
    for (const [name, text] of Object.entries(value)) {
      if (own.includes(name)) throw optionError(option, `expected no parameter of the package's own, got ${name}`);
      if (typeof text !== 'string') throw optionError(option, `expected a string for ${name}, got ${typeof text}`);
      params[name] = text;
    }
    return Object.freeze(params);
  };
}

/** Calls an application's function. @throws ConfigurationError if it throws, or returns a promise */
export function invoke<T>(option: string, expected: string, fn: () => T): T {
  let value: T;
  try {
    value = fn();
  } catch (error) {
    throw thrownError(option, expected, error);
  }
  return result(option, value);
}

/** Returns the error for an application's function that threw. @param expected What it should have returned. */
export function thrownError(option: string, expected: string, error: unknown): ConfigurationError {
  const message = `${option}: the function threw instead of returning ${expected}`;
  return new ConfigurationError(message, { option, cause: safeCause(error) });
}

/** Returns the result of an application's function that is not awaited. @throws ConfigurationError if it is a promise */
export function result<T>(option: string, value: T): T {
  if (typeof value !== 'object' || value === null || typeof Reflect.get(value, 'then') !== 'function') return value;
  // An unhandled rejection ends the process.
  Promise.resolve(value).catch(() => {});
  throw optionError(
    option,
    'expected a function that returns its result, got a promise: the function must not be async',
  );
}

/** Reads one of several words. */
export function oneOf<T extends string>(...words: readonly T[]): Reader<T> {
  return (option, value) => {
    const word = words.find((each) => each === value);
    if (word !== undefined) return word;
    throw optionError(option, `expected ${words.map((each) => `'${each}'`).join(' or ')}, got ${numberOrKind(value)}`);
  };
}

/** Returns the error for an option. @param problem "expected …, got …" */
export function optionError(option: string, problem: string): ConfigurationError {
  return new ConfigurationError(`${option}: ${problem}`, { option });
}

/** Names the type of a value, which may be a secret itself. */
export function kindOf(value: unknown): string {
  if (value === '') return 'an empty string';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : typeof value;
}

function numberOrKind(value: unknown): string {
  return typeof value === 'number' ? String(value) : kindOf(value);
}
