import { ConfigurationError } from '../errors.js';

/** How long a grant is kept after it was last written, in seconds: 30 days. */
const DEFAULT_TTL_SECONDS = 30 * 24 * 60 * 60;

/** Ten years: beyond any use, and well inside what every store can count. */
const MAX_TTL_SECONDS = 10 * 365 * 24 * 60 * 60;

/**
 * Throws for an option that `owner` does not know: a misspelt `ttl` would otherwise go unnoticed for a month.
 *
 * @throws {ConfigurationError} naming the option
 */
export function refuseUnknownOptions(owner: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw new ConfigurationError(`${owner}: the options must be an object.`);
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const message = `${owner}: unknown option "${unknown}". Known: ${known.map((key) => `"${key}"`).join(', ')}.`;
  throw new ConfigurationError(message, { option: unknown });
}

/**
 * The time to live in seconds: `value`, or 30 days if that is `undefined`.
 *
 * @throws {ConfigurationError} naming `ttl` if it is no number from 1 to ten years
 */
export function ttlOption(owner: string, value: unknown): number {
  return secondsOption({ owner, option: 'ttl', value, otherwise: DEFAULT_TTL_SECONDS, max: MAX_TTL_SECONDS });
}

/** What {@link secondsOption} checks. */
export interface SecondsOption {
  /** The function that takes the option, for the message. */
  readonly owner: string;
  readonly option: string;
  readonly value: unknown;
  /** Seconds that stand in for `undefined`. */
  readonly otherwise: number;
  /** The most seconds allowed; the least is 1. */
  readonly max: number;
}

/**
 * A duration in seconds, from 1 to `max`; fractions are fine.
 *
 * @throws {ConfigurationError} naming the option
 */
export function secondsOption({ owner, option, value, otherwise, max }: SecondsOption): number {
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && value >= 1 && value <= max) return value;
  const got = typeof value === 'number' ? String(value) : typeof value;
  throw new ConfigurationError(`${owner}: "${option}" must be a number of seconds from 1 to ${max}, not ${got}.`, {
    option,
  });
}

/**
 * The text that stands before every key: `value`, or `otherwise` if that is `undefined`.
 *
 * @throws {ConfigurationError} naming `prefix` if it is not 1 to 64 printable ASCII characters without white space,
 *   slash or backslash (it may become part of a file name)
 */
export function prefixOption(owner: string, value: unknown, otherwise: string): string {
  if (value === undefined) return otherwise;
  if (typeof value === 'string' && /^[!-.0-[\]-~]{1,64}$/.test(value)) return value;
  const message = `${owner}: "prefix" must be 1 to 64 printable ASCII characters without white space, "/" and "\\".`;
  throw new ConfigurationError(message, { option: 'prefix' });
}

/**
 * `value` once it is known to have the methods named.
 *
 * @param expected what should have been given, for the message: "an express-session store"
 * @throws {ConfigurationError} naming the parameter and the methods that are missing
 */
export function requireMethods(owner: string, parameter: string, value: unknown, expected: Expected): void {
  const missing = expected.methods.filter((method) => !hasMethod(value, method));
  if (missing.length === 0) return;
  const message = `${owner}: ${parameter} must be ${expected.what}; it has no method ${missing.join(', ')}.`;
  throw new ConfigurationError(message, { option: parameter });
}

/** What {@link requireMethods} looks for. */
export interface Expected {
  readonly what: string;
  readonly methods: readonly string[];
}

function hasMethod(value: unknown, method: string): boolean {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, method) === 'function';
}
