import { inspect } from 'node:util';
import { EmulatorError } from './emulator-error.js';

/**
 * Refuses an option or argument.
 *
 * @param option - Path of it as the caller wrote it, for example `users[0].id`.
 * @param expected - Completes the sentence "… must be".
 * @throws {EmulatorError} Always, with the code `ERR_EMULATOR_OPTION`.
 */
export function refuse(option: string, expected: string, value: unknown): never {
  throw new EmulatorError(`${option} must be ${expected}, but it is ${shown(option, value)}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option,
  });
}

function shown(option: string, value: unknown): string {
  if (value === undefined) return 'missing';
  if (/secret|key|cert/i.test(option)) return `a value of type ${typeof value} that is not shown here`;
  const text = inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 100 });
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

/**
 * The value as a record, once it is known to be a plain object with no other keys than these.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is anything else, or has a key that is not known.
 */
export function record(option: string, value: unknown, keys: readonly string[]): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) refuse(option, 'an object', value);
  const unknown = Object.keys(value).find((key) => !keys.includes(key));
  if (unknown === undefined) return value;
  throw new EmulatorError(`${option} has the unknown key "${unknown}". Known are: ${keys.join(', ')}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option: unknown,
  });
}

/** Whether the value is an object with keys: no array, no function, not null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the value is not a string of one character at least. */
export function text(option: string, value: unknown, expected = 'a non-empty string'): string {
  return typeof value === 'string' && value !== '' ? value : refuse(option, expected, value);
}

/** @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the value is no whole number from `min` to `max`. */
export function integer(option: string, value: unknown, min: number, max: number): number {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  return fits ? value : refuse(option, `a whole number from ${min} to ${max}`, value);
}

/** @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the value is not a list, or has no item although it must. */
export function list(option: string, value: unknown, { min = 0 }: { readonly min?: number } = {}): readonly unknown[] {
  if (Array.isArray(value) && value.length >= min) return value;
  return refuse(option, min > 0 ? 'a list with at least one item' : 'a list', value);
}

/** @throws {EmulatorError} `ERR_EMULATOR_OPTION` if the value is not one of the choices. */
export function choice<const T extends string>(option: string, value: unknown, choices: readonly T[]): T {
  const found = choices.find((candidate) => candidate === value);
  return found ?? refuse(option, `one of ${choices.map((candidate) => `'${candidate}'`).join(', ')}`, value);
}
