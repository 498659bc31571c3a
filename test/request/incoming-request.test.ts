import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parametersOf } from '../../src/request/incoming-request.js';

test('reads the parameters of any URL as URLSearchParams does', () => {
  const part = fc.constantFrom(
    ...['a', 'b', 'code', '=', '&', '&&', '==', '?', '#', '/', ';', '[x]', '__proto__'],
    ...['%', '%41', '%zz', '%e4', '+', ' ', 'ä', '\u00a0', '\0', '\ud800', '"', '\\', '~'],
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 20 }),
      fc.constantFrom('/callback?', '/callback', '?', ''),
      (parts, start) => {
        const url = start + parts.join('');
        const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : '';
        expect([...parametersOf(url)]).toEqual([...new URLSearchParams(query)]);
      },
    ),
    { numRuns: 2000 },
  );
});
