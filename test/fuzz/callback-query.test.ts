import fc from 'fast-check';
import { test } from 'vitest';
import { hasCallbackParameters, readCallbackQuery } from '../../src/login/callback-request.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileText } from './hostile.js';

const name = fc.oneof(
  fc.constantFrom('code', 'state', 'error', 'error_description', 'code[]', 'state[x]'),
  hostileText,
);
const value = fc.oneof(fc.constantFrom('abc', 'access_denied', 'A'.repeat(43)), hostileText);
const encode = (text: string) => encodeURIComponent(text.toWellFormed());
const query = fc
  .array(fc.tuple(name, value, fc.boolean()), { maxLength: 6 })
  .map((pairs) =>
    pairs.map(([left, right, raw]) => (raw ? `${left}=${right}` : `${encode(left)}=${encode(right)}`)).join('&'),
  );

test(
  'any callback query is read without an error, as visible ASCII of bounded length or not at all',
  threats(2),
  async () => {
    await holds('callback queries', 0.2, [fc.constantFrom('/callback?', '?', '//?', ''), query], (path, text) => {
      const url = path + text;
      const read = readCallbackQuery(url);
      if (read.kind === 'malformed') return;
      const said = read.kind === 'code' ? read.code : read.error;
      for (const part of [said, read.state ?? 'none']) {
        if (!/^[\x20-\x7e]{1,4096}$/.test(part)) throw new Error('a value that is not visible ASCII came through');
      }
      if (!hasCallbackParameters(url)) throw new Error('a callback was read where none was seen');
      const given = new URLSearchParams(url.slice(url.indexOf('?') + 1));
      for (const key of ['code', 'state', 'error']) {
        if (given.getAll(key).length > 1) throw new Error('a repeated parameter came through');
      }
    });
  },
);
