import fc from 'fast-check';
import { test } from 'vitest';
import { BaseUrls, redirectTarget } from '../../src/api/base-urls.js';
import { apiPath } from '../../src/api/call-request.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileAfter } from './hostile.js';

const BASE = 'https://api.example.com/api/v2';

/** Everything that a URL makes of itself when servers and proxies decode it again and again. */
function decodings(path: string): string[] {
  const all = [path];
  for (let text = path, times = 0; times < 12; times++) {
    const next = text.replaceAll(/%([\da-f]{2})/gi, (_escape, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    if (next === text) break;
    all.push(next);
    text = next;
  }
  return all;
}

function checkStaysBelow(path: string): void {
  if (!/^\/[\x21-\x7e]*$/.test(path)) throw new Error('not visible ASCII');
  for (const decoded of decodings(path)) {
    const { origin, pathname, hash, search } = new URL(BASE + decoded.replaceAll(/[?#]/g, '_'));
    const isBelow = origin === 'https://api.example.com' && pathname.startsWith('/api/v2/');
    if (!isBelow || hash !== '' || search !== '') throw new Error('above /api/v2, or on another host');
  }
}

test(
  'a path of the API stays below /api/v2 of its host after any number of decodings, or is a TypeError that does not quote it',
  threats(25),
  async () => {
    await holds('API paths', 0.2, [hostileAfter('', '/', 'projects/', '/projects/7/', '/a%2f')], (given) => {
      let sent: string;
      try {
        sent = apiPath(given);
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        if (given.length > 40 && error.message.includes(given)) throw new Error('quoted');
        return;
      }
      checkStaysBelow(sent);
      if (/[?#\\]/.test(sent)) throw new Error('the path has an end within');
    });
  },
);

test('a redirect of the API is followed below /api/v2 of the same origin, or not at all', threats(26), async () => {
  const locations = hostileAfter(
    ...['', '/', '/api/v2/', 'https://api.example.com/api/v2/', '//', 'https://api.example.com@', './', '../'],
  );
  const call = { method: 'GET', redirect: 'follow' } as const;
  const base = new BaseUrls({ baseUrl: 'https://api.example.com' }).of({ organizationDomain: undefined });
  const statuses = fc.constantFrom(200, 301, 302, 307, 308);
  await holds('redirects of the API', 0.05, [locations, statuses], (location, status) => {
    const target = redirectTarget(call, { status, headers: { location } }, base, '/api/v2/projects');
    if (target === undefined) return;
    const [path = ''] = target.split('?', 1);
    if (!path.startsWith('/api/v2/') || status === 200) throw new Error('followed elsewhere');
    checkStaysBelow(path.slice('/api/v2'.length));
  });
});
