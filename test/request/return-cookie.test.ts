import fc from 'fast-check';
import { expect, test } from 'vitest';
import { safeReturnTo } from '../../src/request/return-cookie.js';

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
