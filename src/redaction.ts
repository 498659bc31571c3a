/** A secret in memory that no log, inspection or serialization shows. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the secret itself. Never store it in a plain property. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return '[secret]';
  }

  toJSON(): string {
    return '[secret]';
  }
}

/** Shorter parts of a known secret may be ordinary words. */
export const MIN_PART_LENGTH = 8;

/** Text that may be a token or a key: a JWT, or 20 characters and more without a break, and what dots join to them. */
const SECRET_LIKE = /eyJ[\w+/=~.%-]+|[\w+/=~%-]{20,}(?:\.[\w+/=~%-]*)*/g;

/** User and password of a URL, which database drivers quote. */
const USER_INFO = /\/\/[^\s/@]+@/g;

/**
 * Replaces all that is or looks like a secret. Call it before the text is cut: half a secret may look like a word.
 *
 * @param known Secrets that the text may quote, whole or in the parts between dots: a JWT's signature is secret too.
 */
export function withoutSecrets(text: string, known: readonly string[] = []): string {
  const parts = known.flatMap((secret) => [
    secret,
    ...secret.split('.').filter((part) => part.length >= MIN_PART_LENGTH),
  ]);
  // The longest first: the rest of a secret that begins with another one would be shown.
  return parts
    .filter((part) => part !== '')
    .sort((one, other) => other.length - one.length)
    .reduce((rest, part) => rest.replaceAll(part, '[…]'), text)
    .replaceAll(USER_INFO, '//[…]@')
    .replaceAll(SECRET_LIKE, '[…]');
}

/** Longest message of a cause, in characters. */
const MAX_MESSAGE_LENGTH = 300;

/** What may be the name or code of an error. */
const NAME_OR_CODE = /^\w{1,64}$/;

/**
 * Copies an error of other code for use as a `cause`: its name, its code and its message without secrets. HTTP clients, JSON
 * parsers and database drivers quote what they read, and carry requests, sockets and query parameters as properties.
 */
export function safeCause(fault: unknown): Error {
  if (!(fault instanceof Error)) return causeOf('Error', `a ${typeof fault} was thrown`, undefined);
  const name = NAME_OR_CODE.test(fault.name) ? fault.name : 'Error';
  // A SyntaxError of JSON.parse quotes the text that it could not parse.
  const message = fault instanceof SyntaxError ? 'not valid JSON' : String(fault.message);
  return causeOf(name, message, Reflect.get(fault, 'code'));
}

function causeOf(name: string, message: string, code: unknown): Error {
  const cause = new Error(withoutSecrets(message).slice(0, MAX_MESSAGE_LENGTH));
  Object.defineProperty(cause, 'stack', { value: `${name}: ${cause.message}` });
  Object.defineProperty(cause, 'name', { value: name });
  return typeof code === 'string' && NAME_OR_CODE.test(code) ? Object.assign(cause, { code }) : cause;
}
