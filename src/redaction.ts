/** A secret in memory that no log, inspection or serialization shows. */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the secret itself. To be handed on at once, never to be stored in a plain property. */
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

/** Longest part of a foreign message that is kept. */
const MAX_MESSAGE_LENGTH = 300;

/** Shorter parts of a known secret are words that a message needs. */
export const MIN_PART_LENGTH = 8;

/** Runs that may be a token or a key: a JWT, or 20 characters and more without a break, and what dots join to them. */
const SECRET_LIKE = /eyJ[\w+/=~.%-]+|[\w+/=~%-]{20,}(?:\.[\w+/=~%-]*)*/g;

/** User and password of a URL: database drivers quote the address that they were given. */
const USER_INFO = /\/\/[^\s/@]+@/g;

/**
 * Returns the text with everything replaced that is or looks like a secret. Call it before the text is cut: half a
 * secret may look like a word.
 *
 * @param known Secrets that the text may quote: replaced as a whole, and in the parts that dots separate (the signature
 *   of a JWT must not be shown on its own)
 */
export function withoutSecrets(text: string, known: readonly string[] = []): string {
  const parts = known.flatMap((secret) => [
    secret,
    ...secret.split('.').filter((part) => part.length >= MIN_PART_LENGTH),
  ]);
  // The longest first: a secret may be the beginning of another one, whose rest would be shown.
  return parts
    .filter((part) => part !== '')
    .sort((one, other) => other.length - one.length)
    .reduce((rest, part) => rest.replaceAll(part, '[…]'), text)
    .replaceAll(USER_INFO, '//[…]@')
    .replaceAll(SECRET_LIKE, '[…]');
}

/**
 * Returns a copy of a foreign error that is fit to be kept as a `cause`: its name, its code if that is a plain
 * identifier, and its message without secrets.
 *
 * Errors of HTTP clients, JSON parsers and database drivers quote what they choke on, and carry requests, sockets and
 * query parameters as properties.
 */
export function safeCause(fault: unknown): Error {
  const { name, code, message } = describe(fault);
  const cause = new Error(withoutSecrets(message).slice(0, MAX_MESSAGE_LENGTH));
  Object.defineProperty(cause, 'stack', { value: `${name}: ${cause.message}` });
  Object.defineProperty(cause, 'name', { value: name });
  return code === undefined ? cause : Object.assign(cause, { code });
}

function describe(fault: unknown): { name: string; code: string | undefined; message: string } {
  if (!(fault instanceof Error)) return { name: 'Error', code: undefined, message: `a ${typeof fault} was thrown` };
  const code: unknown = 'code' in fault ? fault.code : undefined;
  return {
    name: /^\w{1,64}$/.test(fault.name) ? fault.name : 'Error',
    code: typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : undefined,
    // A SyntaxError of JSON.parse quotes the text that it could not parse.
    message: fault instanceof SyntaxError ? 'not valid JSON' : String(fault.message),
  };
}
