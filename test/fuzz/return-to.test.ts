import fc from 'fast-check';
import { test } from 'vitest';
import { safeReturnTo } from '../../src/session/return-to.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileAfter } from './hostile.js';

const BASES = ['https://app.example/login', 'http://localhost:3000/a/b?c#d'].map((base) => new URL(base));

test(
  'a page to return to stays on the origin for any input, and reading it twice changes nothing',
  threats(17),
  async () => {
    const value = fc.oneof(
      { arbitrary: hostileAfter('', '/', '/a/', '/a/..', '/./', '/%2e%2e/'), weight: 20 },
      { arbitrary: fc.anything(), weight: 1 },
    );
    await holds('pages to return to', 0.15, [value], (given) => {
      const path = safeReturnTo(given);
      if (!/^\/(?![/\\])[\x21-\x7e]*$/.test(path) || path.length > 2048) throw new Error('no path of this origin');
      for (const base of BASES) {
        if (new URL(path, base).origin !== base.origin) throw new Error('another origin');
      }
      // A filter on the way, or the browser's own clean-up, may strike out tabs and line breaks, or turn backslashes round.
      const cleaned = path.replaceAll(/[\t\r\n]/g, '').replaceAll('\\', '/');
      if (new URL(cleaned, BASES[0]).origin !== BASES[0]?.origin) throw new Error('another origin once it is cleaned');
      if (safeReturnTo(path) !== path) throw new Error('not stable');
    });
  },
);
