import type { Dispatcher } from 'undici';
import { ConfigurationError } from './errors.js';
import { Secret } from './redaction.js';
import type { TokenStore } from './stores/token-store.js';

/** What express-session and Passport keep on a session, or find there by its prototype. */
const RESERVED_NAMES = new Set([
  ...Object.getOwnPropertyNames(Object.prototype),
  ...[
    'cookie',
    'destroy',
    'id',
    'messages',
    'passport',
    'prototype',
    'regenerate',
    'reload',
    'req',
    'resetMaxAge',
    'returnTo',
    'save',
    'touch',
  ],
]);

const MAX_URL_LENGTH = 2048;

/** What `read` makes of a value; `undefined` where the option was left out. */
export function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}

/** The value of an option that must be there. */
export function required(option: string, value: unknown): unknown {
  if (value === undefined || value === null) throw wrong(option, `is required, got ${String(value)}`);
  return value;
}

/** An object of options. */
export function record(option: string, value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw wrong(option, `expected an object, got ${kindOf(value)}`);
  }
  return value as Readonly<Record<string, unknown>>;
}

/** Refuses options that nobody reads: most often they are misspelt. */
export function onlyKnown(given: Readonly<Record<string, unknown>>, known: readonly string[], where: string): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const twin = known.find((key) => key.toLowerCase() === unknown.toLowerCase());
  throw wrong(
    unknown,
    `is not an option of ${where}; ${twin ? `did you mean ${twin}?` : `the options are ${known.join(', ')}`}`,
  );
}

/** A text that is not empty. The value never shows in the message: it may be the secret. */
export function text(option: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value;
  const hint = value === undefined ? '. Is the environment variable set?' : '';
  throw wrong(option, `expected a text that is not empty, got ${kindOf(value)}${hint}`);
}

/** A boolean. */
export function flag(option: string, value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw wrong(option, `expected true or false, got ${kindOf(value)}`);
}

/** A function; what it takes and gives is not looked at. */
export function fn<T>(option: string, value: unknown): T {
  if (typeof value === 'function') return value as T;
  throw wrong(option, `expected a function, got ${kindOf(value)}`);
}

/** A number within bounds, both included. */
export function number(option: string, value: unknown, least: number, most: number, unit: string): number {
  if (typeof value === 'number' && value >= least && value <= most) return value;
  throw wrong(option, `expected a number of ${unit} from ${least} to ${most}, got ${shown(value)}`);
}

/** A whole number within bounds, both included. */
export function integer(option: string, value: unknown, least: number, most: number, unit: string): number {
  if (Number.isInteger(number(option, value, least, most, unit))) return value as number;
  throw wrong(option, `expected a whole number of ${unit}, got ${shown(value)}`);
}

/** Passport's name for the strategy; it is a key of the session and part of cookie names. */
export function strategyName(value: unknown): string {
  if (typeof value === 'string' && /^[\x20-\x7e]{1,64}$/.test(value) && !RESERVED_NAMES.has(value)) return value;
  throw wrong(
    'name',
    'expected 1 to 64 printable ASCII characters, and no name that sessions use themselves (such as passport)',
  );
}

/** Scope names of visible ASCII without quotes and backslashes (RFC 6749, 3.3), separated by single spaces. */
export function scope(option: string, value: unknown): string {
  const names = typeof value === 'string' ? value.split(' ').filter((name) => name !== '') : value;
  if (Array.isArray(names) && names.length > 0 && names.every(isScopeName)) return names.join(' ');
  throw wrong(option, `expected at least one scope, as 'project tm' or ['project', 'tm'], got ${kindOf(value)}`);
}

/** A redirect URL: absolute with http or https, or relative; without a fragment (RFC 6749, 3.1.2). */
export function callbackUrl(option: string, value: unknown): string {
  const url = text(option, value);
  const isAbsolute = /^[a-z][a-z0-9+.-]*:/i.test(url);
  if (url.length > MAX_URL_LENGTH || !/^[\x21-\x7e]+$/.test(url) || !URL.canParse(url, 'http://relative.invalid')) {
    throw wrong(option, `expected a URL of at most ${MAX_URL_LENGTH} visible ASCII characters`);
  }
  if (url.includes('#')) throw wrong(option, 'expected a URL without a fragment');
  if ((isAbsolute && !/^https?:\/\/[^/]/i.test(url)) || /^[/\\]{2}/.test(url)) {
    throw wrong(option, 'expected an http or https URL, or a path such as /callback');
  }
  return url;
}

/** One secret or several. */
export function secrets(option: string, value: unknown): readonly Secret[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  if (all.length > 0 && all.every((entry) => typeof entry === 'string' && entry !== '')) {
    return Object.freeze(all.map((entry) => new Secret(String(entry))));
  }
  throw wrong(
    option,
    'expected a text, or a list of texts that are not empty; 32 random bytes in base64 are a good one',
  );
}

/** A token store: its three methods, and the other two where they are there. */
export function tokenStore(option: string, value: unknown): TokenStore {
  const store = record(option, value);
  const missing = ['get', 'set', 'delete'].filter((method) => typeof store[method] !== 'function');
  const odd = ['update', 'lock'].filter((method) => store[method] !== undefined && typeof store[method] !== 'function');
  if (missing.length + odd.length === 0) return value as TokenStore;
  throw wrong(
    option,
    `expected a TokenStore, with the methods get, set and delete; ${[...missing, ...odd].join(', ')} is no function. ` +
      'Of a session store, sessionTokenStore(store) makes one.',
  );
}

/** An undici dispatcher: anything with a `dispatch` method. */
export function dispatcher(option: string, value: unknown): Dispatcher {
  if (typeof value === 'object' && value !== null && 'dispatch' in value && typeof value.dispatch === 'function') {
    return value as Dispatcher;
  }
  throw wrong(option, `expected an undici Dispatcher, such as new ProxyAgent(…), got ${kindOf(value)}`);
}

function isScopeName(value: unknown): boolean {
  return typeof value === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value);
}

function kindOf(value: unknown): string {
  if (value === '') return 'an empty text';
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}

function shown(value: unknown): string {
  return typeof value === 'number' ? String(value) : kindOf(value);
}

function wrong(option: string, what: string): ConfigurationError {
  return new ConfigurationError(`${option}: ${what}`, { option });
}
