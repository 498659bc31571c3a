import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { OAuthAppError } from '../../src/index.js';
import { Canaries } from '../security/canaries.js';
import { browser, open, visit } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { holds } from './fuzz.js';
import { hostileText } from './hostile.js';
import { RecordingDispatcher } from './recording-dispatcher.js';

/** As far as Node's own client sends it: visible characters of Latin-1 in the path, no control characters in headers. */
const target = (text: string) =>
  Buffer.from(text)
    .toString('latin1')
    .replaceAll(/[^\x21-\xff]/g, encodeURIComponent);
const header = (text: string) => text.replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, '');
const name = fc.constantFrom(
  ...['code', 'state', 'error', 'error_description', 'code[]', '__proto__[x]', 'state[__proto__]'],
);
const query = fc
  .array(fc.tuple(fc.oneof(name, hostileText), hostileText), { maxLength: 5 })
  .map((pairs) => target(pairs.map(([left, right]) => `${left}=${right}`).join('&')));
const path = fc.constantFrom(
  ...['/callback', '/callback/', '/CALLBACK', '/login', '//callback', '/callback/..', '/./callback'],
);
const method = fc.constantFrom('GET', 'GET', 'GET', 'HEAD', 'POST', 'PUT');
const cookie = fc.array(hostileText.map(header), { maxLength: 4 }).map((texts) => texts.join('; '));

test(
  'forged callbacks over HTTP end in a typed refusal: no request leaves, nothing is stored, and a pending login is still good',
  threats(3),
  async () => {
    const canaries = new Canaries();
    onTestFinished(() => canaries.stop());
    const dispatcher = new RecordingDispatcher([]);
    const world = await open({ strategy: { pkce: true, dispatcher } });
    canaries.hide('client secret', world.service.options.clientSecret);
    const login = await visit('/login');
    const state = new URL(login.headers.get('location') ?? '').searchParams.get('state') ?? '';
    const pending = browser.cookieHeader(world.url);
    const what = 'requests to the routes of login and callback, over HTTP';
    await holds(what, 0.003, [path, query, method, cookie, fc.boolean()], async (to, text, verb, cookies, hasLogin) => {
      // Of a genuine login, state and cookie never come together.
      const good = hasLogin
        ? { path: `${to}?${text}`, cookie: `${pending}; ${cookies}` }
        : { path: `${to}?${text}&state=${state}`, cookie: cookies };
      const answer = await rawRequest(world.url, good.path, { method: verb, headers: { cookie: good.cookie } });
      canaries.note('answer', `${JSON.stringify(answer.headers)}${answer.text}`);
      if (answer.status >= 500) throw new Error(`status ${answer.status}`);
      if (dispatcher.requests > 0) throw new Error('a request left');
    });
    for (const error of world.errors) expect(error).toBeInstanceOf(OAuthAppError);
    expect(stored(world)).toEqual([]);
    expect(world.service.requests).toEqual([]);
    expect((await visit(`/callback?error=access_denied&state=${state}`)).status).toBe(401);
    canaries.noteWorld(world);
    expect(canaries.findings()).toEqual([]);
  },
);
