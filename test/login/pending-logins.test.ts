import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { PendingLogins } from '../../src/login/pending-logins.js';
import { Secret } from '../../src/redaction.js';
import { threats } from '../support/threats.js';

let now = 1_700_000_000_000;
const create = (change: { strategyName?: string; service?: string; clientSecret?: [Secret] } = {}) =>
  new PendingLogins({
    strategyName: 'oauth-app',
    service: 'service',
    callbackURL: 'https://app.example/usual',
    clientSecret: [new Secret('secret')],
    clock: () => now,
    ...change,
  });

const anonymous = { isConnection: false, isSilent: false, isStepUp: false, userMark: '' };
const https = { ...anonymous, redirectUri: 'https://app.example/callback', returnTo: '/projects' };
const http = { ...anonymous, redirectUri: 'http://localhost/callback', returnTo: undefined };

/** A request of a browser with these cookies. */
function requestWith(...cookies: string[]): IncomingMessage {
  const req = new IncomingMessage(new Socket());
  req.headers.cookie = cookies.join('; ');
  return req;
}

/** Name and value of a Set-Cookie line. */
const pairOf = (line = '') => line.split(';')[0] ?? '';

async function begin(logins = create(), login: typeof https | typeof http = https) {
  const { state, cookies } = await logins.begin(requestWith(), login, false);
  return { state, cookie: pairOf(cookies[0]), line: cookies[0] };
}

test.each([0, 100, 300, 1_000, 2_040])(
  'cookies of sixteen logins that lead to pages of %i characters stay below 8 KB',
  async (length) => {
    const logins = create();
    const login = { ...https, returnTo: length === 0 ? undefined : `/${'p'.repeat(length - 1)}` };
    let jar: string[] = [];
    for (let tab = 0; tab < 16; tab++) {
      const { cookies } = logins.begin(requestWith(...jar), login, true);
      const ended = cookies.filter((line) => line.includes('Max-Age=0')).map((line) => line.split('=')[0]);
      jar = [...jar.filter((pair) => !ended.includes(pair.split('=')[0])), pairOf(cookies[0])];
      expect(jar.join('; ').length).toBeLessThan(7_900);
    }
    expect(jar).toHaveLength(12);
  },
);

describe('a pending login', () => {
  test('is found by its state and its cookie, in any process that has the client secret', async () => {
    const { state, cookie } = await begin();
    expect(await create().find(requestWith(cookie), state)).toEqual({
      ...https,
      codeVerifier: undefined,
      expiresAt: now + 600_000,
      endCookie: `${cookie.replace(/=.*/, '=')}; Max-Age=0; Path=/; HttpOnly; SameSite=Lax; Secure`,
    });
  });

  test('is found by a host whose clock is a little behind, and not after a clock was set back by more', async () => {
    const { state, cookie } = await begin();
    const began = now;
    for (const [behindMs, isFound] of [
      [400, true],
      [60_000, true],
      [60_001, false],
    ] as const) {
      now = began - behindMs;
      expect((await create().find(requestWith(cookie), state)) !== undefined).toBe(isFound);
    }
    now = began;
  });

  test.each([
    ['strategy', { strategyName: 'other' }],
    ['service', { service: 'other' }],
    ['client secret', { clientSecret: [new Secret('other')] as [Secret] }],
  ])('is not found by another %s', threats(6), async (_what, change) => {
    const { state, cookie } = await begin();
    const renamed = cookie.replace('oauth-app.login', 'other.login');
    expect(await create(change).find(requestWith(cookie, renamed), state)).toBeUndefined();
  });

  test('of https is not found in a cookie that any sibling host could plant', async () => {
    const { state, cookie } = await begin();
    expect(cookie).toMatch(/^__Host-/);
    expect(await create().find(requestWith(cookie.replace('__Host-', '')), state)).toBeUndefined();
  });

  test('of http is not found in a cookie of https, so that neither stands for the other', async () => {
    const { state, cookie } = await begin(create(), http);
    expect(await create().find(requestWith(cookie), state)).toMatchObject({ redirectUri: http.redirectUri });
    expect(await create().find(requestWith(`__Host-${cookie}`), state)).toBeUndefined();
  });

  test.each([
    '',
    'x',
    '__proto__',
    'constructor',
    'A'.repeat(42),
    'A'.repeat(44),
    `${'A'.repeat(42)}=`,
    `${'A'.repeat(42)}\n`,
  ])('is not looked for by a state of another form: %j', async (state) => {
    expect(await create().find(requestWith((await begin()).cookie), state)).toBeUndefined();
  });
});

describe('the bound', () => {
  test('drops the oldest by age in any order of the cookies, and none of another strategy', async () => {
    const logins = create();
    const cookies: string[] = [];
    for (let count = 0; count < 12; count++) {
      now += 1000;
      cookies.push((await begin(logins)).cookie);
    }
    const [oldest = ''] = cookies;
    const others = Array.from({ length: 5 }, (_, index) => `other.login.${index}=0.x`);
    const { cookies: set } = await logins.begin(requestWith(...[...cookies].reverse(), ...others), https, false);
    expect(set.slice(1).map(pairOf)).toEqual([oldest.replace(/=.*/, '=')]);
  });

  test('holds with cookies that were not made here', async () => {
    const odd = [
      'oauth-app.login.=',
      'oauth-app.login.a',
      '__Host-oauth-app.login.bbbbbbbbbbbbbbbb=%FF',
      'oauth-app.login.c=zzzzzzzzzzzzzz.x',
    ];
    const junk = Array.from(
      { length: 40 },
      (_, index) => `__Host-oauth-app.login.${String(index).padStart(16, 'j')}=x`,
    );
    const { cookies } = await create().begin(requestWith(...odd, ...junk), https, false);
    expect(cookies.length).toBeGreaterThan(15);
    for (const cookie of cookies.slice(1))
      expect(cookie).toMatch(/^[^=\s;]+=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax(; Secure)?$/);
  });
});
