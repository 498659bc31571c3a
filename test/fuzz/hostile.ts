import fc from 'fast-check';

/** What guards have been got past with before. */
const BITS = [
  ...['/', '//', '\\', '.', '..', '/.', '/..', '..;', ';', ':', '@', '#', '?', '&', '=', '[', ']', '[]', ',', '|'],
  ...['"', "'"],
  ...['%', '%2e', '%2E', '%2f', '%5c', '%252e', '%252f', '%25', '%00', '%0d%0a', '%c0%ae', '%ff', '+', '%20', '%u002e'],
  ...['\t', '\n', '\r\n', '\0', ' ', '\x7f', '\u0080', '\u00a0', '\u2028', '\u202e', '\u3002', '\uff0e', '\uff0f'],
  ...['\ufeff'],
  ...['\ud800', '\udc00', '\u212a', '\u0130', '\u00df', '\u00ad', '\u200d', 'é', '😀', '｡'],
  ...['https:', 'http://', 'javascript:', 'data:', 'evil.example', 'localhost', '127.1', 'user:pass@', 'xn--'],
  ...['xn--a', '[::1]'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'code', 'state', 'error', 'access_denied'],
  ...['null', 'undefined', 'NaN', '-0', '1e300', '{}', '[]', 'true', '<script>', "' OR 1=1", 'api', 'v2', 'a', '0'],
] as const;

const bit = fc.constantFrom(...BITS);
/** Any code unit of UTF-16. fast-check's own units fill a map of all of them first. */
export const unit: fc.Arbitrary<string> = fc.nat(0xffff).map((code) => String.fromCharCode(code));

/** Texts made of such bits, of any code units (lone surrogates among them), and now and then a long one. */
export const hostileText: fc.Arbitrary<string> = fc.oneof(
  { arbitrary: fc.array(fc.oneof(bit, fc.string({ maxLength: 4 }), unit), { maxLength: 8 }).map(join), weight: 20 },
  { arbitrary: fc.string({ unit, maxLength: 30 }), weight: 4 },
  { arbitrary: fc.tuple(bit, fc.integer({ min: 1, max: 3000 })).map(([text, times]) => text.repeat(times)), weight: 1 },
);

/** Hostile texts behind one of these beginnings. */
export function hostileAfter(...starts: string[]): fc.Arbitrary<string> {
  return fc.tuple(fc.constantFrom(...starts), hostileText).map(join);
}

/** Anything that JSON can express, with hostile texts and the names of the wire in it. */
export function hostileJson(keys: readonly string[]): fc.Arbitrary<unknown> {
  const key = fc.oneof(fc.constantFrom(...keys, '__proto__', 'constructor', 'toString'), fc.string({ maxLength: 5 }));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', maxDepth: 4 },
      hostileText,
      fc.constantFrom(null, true, false, 0, -1, 7200, 1e300, 2 ** 53, '', '7200', 'bearer', 'Bearer'),
      fc.double(),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }).map(asOwnProperties),
    ),
  }));
  return value;
}

/** An object of these entries, `__proto__` among its own properties if it is there, as JSON.parse makes it. */
export function asOwnProperties(entries: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [name, value] of entries) {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

/** Base64url of a text, which may be no well-formed one. */
export function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

export function base64urlOfJson(value: unknown): string {
  return base64url(JSON.stringify(value) ?? '');
}

function join(parts: readonly string[]): string {
  return parts.join('');
}
