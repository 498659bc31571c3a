import { inspect } from 'node:util';
import { ApiError } from 'passport-oauth-app';

const DUMP = { depth: 10, showHidden: true, maxStringLength: null, maxArrayLength: null, getters: false } as const;

/** Own properties that are documented to hold what the service sent, and that neither `inspect` nor JSON shows by default. */
const DOCUMENTED: ReadonlySet<string> = new Set(['data', 'headers']);

/** All that a log could make of a value: as text, inspected with hidden properties, as JSON, and down its chain of causes. */
export function shownOf(value: unknown): string {
  if (value instanceof ApiError)
    return [String(value), inspect(value, { depth: 10 }), ...shownOfError(value)].join('\n');
  const shown = [inspect(value, DUMP), asText(value), asJson(value)];
  if (value instanceof Error) shown.push(...shownOfError(value));
  return shown.join('\n');
}

function shownOfError(error: Error): string[] {
  const own = Reflect.ownKeys(error)
    .filter((key) => !(error instanceof ApiError && DOCUMENTED.has(String(key))))
    .map((key) => `${String(key)}: ${key === 'cause' ? shownOf(error.cause) : inspect(Reflect.get(error, key), DUMP)}`);
  return [error.message, String(error.stack), asJson(error), ...own];
}

function asText(value: unknown): string {
  try {
    return String(value);
  } catch {
    return 'an object without a prototype';
  }
}

function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    return 'a value that refers to itself';
  }
}
