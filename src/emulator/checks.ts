import { inspect } from 'node:util';

/** Code of an `EmulatorError`. Refusals of the emulated service are HTTP responses, not errors. */
export type EmulatorErrorCode =
  | 'ERR_EMULATOR_OPTION'
  | 'ERR_EMULATOR_PRODUCTION'
  | 'ERR_EMULATOR_PORT'
  | 'ERR_EMULATOR_APPROVAL';

/** The emulator was misused or could not start. The message says what was expected, what came, and what to do. */
export class EmulatorError extends Error {
  override readonly name = 'EmulatorError';
  /** Stable identifier. */
  readonly code: EmulatorErrorCode;
  /** Name of the invalid option or argument, if there is one. */
  readonly option: string | undefined;

  constructor(
    message: string,
    details: { readonly code: EmulatorErrorCode; readonly option?: string; readonly cause?: unknown },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = details.code;
    this.option = details.option;
  }
}

/**
 * Refuses an option or argument.
 *
 * @param option - Its path as the caller wrote it, for example `users[0].id`.
 * @param expected - Completes the sentence "… must be".
 * @throws {EmulatorError} Always, with the code `ERR_EMULATOR_OPTION`.
 */
export function refuse(option: string, expected: string, value: unknown): never {
  const text = inspect(value, { depth: 0, breakLength: Number.POSITIVE_INFINITY, maxStringLength: 100 });
  let shown = text.length > 120 ? `${text.slice(0, 120)}…` : text;
  if (/secret|key|cert/i.test(option)) shown = `a value of type ${typeof value} that is not shown here`;
  if (value === undefined) shown = 'missing';
  throw new EmulatorError(`${option} must be ${expected}, but it is ${shown}.`, {
    code: 'ERR_EMULATOR_OPTION',
    option,
  });
}

/**
 * Returns the value as a record.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is not an object, or has a key other than `keys`.
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

/** Returns true for an object with keys: not an array, a function or null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Returns the value as a non-empty string.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is anything else.
 */
export function text(option: string, value: unknown, expected = 'a non-empty string'): string {
  return typeof value === 'string' && value !== '' ? value : refuse(option, expected, value);
}

/**
 * Returns the value as a whole number.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is not one from `min` to `max`.
 */
export function integer(option: string, value: unknown, min: number, max: number): number {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max;
  return fits ? value : refuse(option, `a whole number from ${min} to ${max}`, value);
}

/**
 * Returns the value as a list.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is not an array, or has fewer than `min` items.
 */
export function list(option: string, value: unknown, { min = 0 }: { readonly min?: number } = {}): readonly unknown[] {
  if (Array.isArray(value) && value.length >= min) return value;
  return refuse(option, min > 0 ? 'a list with at least one item' : 'a list', value);
}

/**
 * Returns the value as one of the choices.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` if it is none of them.
 */
export function choice<const T extends string>(option: string, value: unknown, choices: readonly T[]): T {
  const found = choices.find((candidate) => candidate === value);
  return found ?? refuse(option, `one of ${choices.map((candidate) => `'${candidate}'`).join(', ')}`, value);
}
