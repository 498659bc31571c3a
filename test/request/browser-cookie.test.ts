import { parse } from 'cookie';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseCookies, safeReturnTo } from '../../src/request/browser-cookie.js';

test('a browser stays on this origin for any value', { meta: { threats: [17] } }, () => {
  const part = fc.oneof(
    fc.constantFrom(
      ...['/', '//', '\\', '.', '..', '/.', '/..', '%2e', '%2f', '%5c', '\t', '\n', ' ', ':', '@', '#', '?', ';'],
    ),
    fc.constantFrom('evil.example', 'https:', 'javascript:', 'data:', '\0', '\u3002', '\uff0f', '\u2028', '\ud800'),
    fc.string({ unit: 'binary' }),
  );
  fc.assert(
    fc.property(fc.array(part), fc.constantFrom('', '/'), (parts, start) => {
      const path = safeReturnTo(start + parts.join(''));
      expect(path).toMatch(/^\/(?!\/)[\x21-\x7e]*$/);
      expect(path).not.toMatch(/[\\\s]/);
      for (const base of ['https://app.example/login', 'http://localhost:3000/a/b']) {
        expect(new URL(path, base).origin).toBe(new URL(base).origin);
      }
    }),
    { numRuns: 2000 },
  );
});

test('is the same when it is made safe twice', () => {
  fc.assert(
    fc.property(fc.webPath(), (path) => {
      const once = safeReturnTo(`/${path}`);
      expect(safeReturnTo(once)).toBe(once);
    }),
  );
});

test('a Cookie header is parsed as Express parses it', () => {
  // What the grammar turns on, and what `trim` would take for a space. As Node hands a header over: Latin-1.
  const part = fc.constantFrom(
    ...['=', ';', '; ', ' ', '\t', '"', '%', '%41', '%e4', '%C3%A4', '\u00a0', 'ä', 'a', 'b', '__proto__'],
  );
  const header = fc.array(part, { minLength: 2, maxLength: 30 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(header, (text) => {
      expect({ ...parseCookies(text) }).toEqual({ ...parse(text) });
    }),
    { numRuns: 2000 },
  );
});
