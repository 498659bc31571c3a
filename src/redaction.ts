/** Longest part of a foreign message that is passed on. */
const MAX_MESSAGE_LENGTH = 300;

/** Runs that may be a token or a key: what begins as a JWT does, or 20 characters and more without a break, and what dots join to them. */
const SECRET_LIKE = /eyJ[\w+/=~.-]+|[\w+/=~-]{20,}(?:\.[\w+/=~-]*)*/g;

/** User and password of a URL: drivers of databases quote the address that they were given. */
const USER_INFO = /\/\/[^\s/@]+@/g;

/** A text without what looks like a secret. To be called before the text is cut: half a secret may look like a word. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(USER_INFO, '//[…]@').replaceAll(SECRET_LIKE, '[…]');
}

/**
 * A copy of a foreign error that is fit to be kept as a `cause`: its name, its code if that is a plain identifier,
 * and its message with everything struck out that looks like a secret.
 *
 * Errors of HTTP clients, JSON parsers and database drivers quote what they choke on, and hang requests, sockets
 * and query parameters on themselves.
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
