import type { HttpResponse } from '../http/message.js';
import { MIN_PART_LENGTH, withoutSecrets } from '../redaction.js';
import { UTF8 } from './claims.js';

/** What an answer without a usable token says, without the secrets of the request. */
export interface Refusal {
  /** The field `error`, else `code`, `errorType`, `errorCode`, `status` or `category`: the first string, also inside `error` or `errors`. */
  readonly error: string | undefined;
  /** The field `error_description`, else `message`, `detail` or `reason`. */
  readonly description: string | undefined;
  /** The status of the response. */
  readonly status: number;
  /** The parsed JSON, or the first 1,000 characters of any other body. */
  readonly body: unknown;
}

/** Returns true if a refusal of a refresh means that the refresh token is dead. */
export type EndsGrant = (refusal: Refusal) => boolean;

/** Stands for an error that is missing or not shown. */
export const UNRECOGNIZED = 'unrecognized_error';

const MAX_SHOWN_LENGTH = 200;
const MAX_BODY_LENGTH = 1_000;

/** Maximum nesting of a refusal. Deeper values are dropped. */
const MAX_REFUSAL_LEVELS = 32;

/** The errors of RFC 6749, 5.2. */
const REGISTERED_ERROR = /^(?:invalid_(?:request|client|grant|scope)|unauthorized_client|unsupported_grant_type)$/;

/** Other words for them. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  // Of GitHub: https://docs.github.com/apps/oauth-apps/maintaining-oauth-apps/troubleshooting-oauth-app-access-token-request-errors
  ['bad_refresh_token', 'invalid_grant'],
  ['incorrect_client_credentials', 'invalid_client'],
]);

const IDENTIFIER = /^[a-z][a-z0-9_.-]{0,63}$/i;

const ERROR_FIELDS = ['error', 'code', 'errorType', 'errorCode', 'status', 'category'] as const;
const DESCRIPTION_FIELDS = ['error_description', 'message', 'detail', 'reason'] as const;

/**
 * Reads an answer without tokens: JSON of any shape, a form, text, HTML or nothing.
 *
 * @param secrets Values that were sent. They are removed, whatever encoding the service repeats them in.
 */
export function readRefusal({ status, body: bytes }: HttpResponse, secrets: readonly string[]): Refusal {
  const text = UTF8.decode(bytes);
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    // A form, text or HTML.
  }
  const sources = json === undefined ? [formFields(text)] : nestedErrors(json);
  // At the top level, a `type` is an address (RFC 9457).
  const word = firstText(sources, ERROR_FIELDS) ?? firstText(sources.slice(1), ['type']);
  const forms = formsOf(secrets);
  return {
    error: errorIdentifier(word, forms) ?? shownText(word, forms),
    description: shownText(firstText(sources, DESCRIPTION_FIELDS), forms),
    status,
    body: json === undefined ? without(forms, text).slice(0, MAX_BODY_LENGTH) : cleaned(json, forms, status < 300),
  };
}

/** Returns the error of a refusal if it is an identifier, for a message. */
export function identifierOf({ error }: Refusal): string {
  return error !== undefined && IDENTIFIER.test(error) ? error : UNRECOGNIZED;
}

/** Returns a condition for the option `endsGrant` that matches a refusal, and the next one of its kind. */
export function matchingCondition({ error, description, status, body }: Refusal): string {
  const condition = error === undefined ? `status === ${status}` : `error === ${literal(error)}`;
  if (description) {
    // A number, such as a date or an id, or a secret differs each time.
    const [same = ''] = description.split(/\d{4}|\[…\]/, 1);
    const isWhole = same === description && same.length < MAX_SHOWN_LENGTH;
    const part = literal(same);
    return `${condition} && ${isWhole ? `description === ${part}` : `description?.startsWith(${part})`}`;
  }
  const isShort = error === undefined && typeof body === 'string' && /^[\x20-\x7e]{0,80}$/.test(body);
  return isShort ? `${condition} && body === ${literal(body)}` : condition;
}

/** Returns the body of a refusal in one line for a log. */
export function shownBody({ body }: Refusal): string {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return shownText(text, []) || 'an empty body';
}

function literal(text: string): string {
  return `'${text.replaceAll(/['\\]/g, String.raw`\$&`)}'`;
}

/** Returns the values that may describe a refusal: the body, its `error` and its `errors`; of a list, the first entry. */
function nestedErrors(json: unknown): readonly unknown[] {
  const { error, errors }: Readonly<Record<string, unknown>> = Object(json);
  return [json, error, errors].map((value) => (Array.isArray(value) ? value[0] : value));
}

function firstText(sources: readonly unknown[], names: readonly string[]): string | undefined {
  for (const source of sources) {
    if (typeof source === 'string' && names === ERROR_FIELDS) return source;
    const fields: Readonly<Record<string, unknown>> = Object(source);
    for (const name of names) {
      const value = fields[name];
      if (typeof value === 'string' && value !== '') return value;
    }
  }
  return undefined;
}

/** Reads a form body, as some services send it. Any other text has no fields. */
function formFields(text: string): unknown {
  return /(?:^|&)error=/.test(text) && !/\s/.test(text.trim()) ? Object.fromEntries(new URLSearchParams(text)) : {};
}

/** Returns a text of the service without secrets and control characters. */
function shownText(value: string | undefined, forms: readonly string[]): string | undefined {
  if (value === undefined) return undefined;
  // Secrets first: they may contain characters that are removed. `…` marks their place.
  const visible = withoutSecrets(value, forms).replaceAll(/[^\x20-\x7e…]+/g, ' ');
  // And again: a line break may have split one.
  return withoutSecrets(visible, forms).slice(0, MAX_SHOWN_LENGTH).trim();
}

/** Returns the service's `error` if it is an identifier, as all registered ones are: any other text may quote anything. */
function errorIdentifier(word: string | undefined, forms: readonly string[]): string | undefined {
  if (word === undefined) return undefined;
  // These decide about a grant, so they count even if a short secret happens to be a part of the word.
  const registered = ALIASES.get(word) ?? word;
  if (REGISTERED_ERROR.test(registered)) return registered;
  // A run of 25 characters is a token.
  const isSafe = IDENTIFIER.test(word) && !/[a-z0-9]{25}/i.test(word) && !forms.some((form) => word.includes(form));
  return isSafe ? word : undefined;
}

/** Returns the forms in which a service may repeat secrets, longest first: escaped for a URL, a form or JSON, or in parts. */
function formsOf(secrets: readonly string[]): readonly string[] {
  const forms = secrets.flatMap((secret) => {
    const json = JSON.stringify(secret).slice(1, -1);
    const escaped = [encodeURIComponent(secret.toWellFormed()), `${new URLSearchParams([['', secret]])}`.slice(1)];
    return [
      ...[secret, json, json.replaceAll('/', String.raw`\/`), ...escaped],
      // Without padding, which may be missing.
      ...(['base64', 'base64url'] as const).map((code) => Buffer.from(secret).toString(code).replace(/=+$/, '')),
      // .NET servers escape in lower case.
      ...escaped.map((text) => text.replaceAll(/%../g, (code) => code.toLowerCase())),
      // No escaping changes these.
      ...secret.split(/\W+/).filter((part) => part.length >= MIN_PART_LENGTH),
    ];
  });
  return [...new Set(forms)].filter((form) => form !== '').sort((one, other) => other.length - one.length);
}

function without(forms: readonly string[], text: string): string {
  return forms.reduce((rest, form) => rest.replaceAll(form, '[…]'), text);
}

const TOKEN_NAME = /^(?:access|refresh|id)_token$/;

/** Returns a copy of parsed JSON without secrets, in keys too. @param isSuccess True if it may contain new tokens */
function cleaned(value: unknown, forms: readonly string[], isSuccess: boolean, level = 0): unknown {
  if (typeof value === 'string') return without(forms, value);
  if (typeof value !== 'object' || value === null) return value;
  if (level === MAX_REFUSAL_LEVELS) return undefined;
  if (Array.isArray(value)) return value.map((entry) => cleaned(entry, forms, isSuccess, level + 1));
  const entries = Object.entries(value).map(([name, field]: [string, unknown]) => {
    const isToken = isSuccess && typeof field === 'string' && field !== '' && TOKEN_NAME.test(name);
    return [without(forms, name), isToken ? '[…]' : cleaned(field, forms, isSuccess, level + 1)];
  });
  return Object.fromEntries(entries);
}
