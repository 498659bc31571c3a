import { createHash } from 'node:crypto';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { type PendingLogin, PendingLogins } from '../../src/login/pending-logins.js';
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

const USUAL = 'https://app.example/usual';
const frame = { challenge: 'challenge', grantId: undefined };
const plain = { ...anonymous, redirectUri: USUAL, returnTo: undefined, scope: undefined, frame: undefined };

test.for<[what: string, changes: Partial<PendingLogin>]>([
  ['the usual redirect URL', {}],
  ['another one', { redirectUri: https.redirectUri }],
  ['a redirect URL of http that names https', { redirectUri: 'http://localhost/callback?x=https:' }],
  ['a page', { returnTo: '/projects' }],
  ['a user', { userMark: 'mark' }],
  ['a user, and another redirect URL', { userMark: 'mark', redirectUri: https.redirectUri }],
  ['a connection', { isConnection: true }],
  ['no page of the service', { isSilent: true }],
  ['more scopes', { isStepUp: true, scope: 'glossary' }],
  ['no scopes', { scope: '' }],
  ['its scopes, user and redirect URL', { scope: 'tm', userMark: 'mark', redirectUri: https.redirectUri }],
  ['a frame', { frame }],
  ['a frame that is logged in, and its scopes', { frame: { ...frame, grantId: 'grant' }, scope: 'tm' }],
  ['a frame, its user and another redirect URL', { frame, userMark: 'mark', redirectUri: https.redirectUri }],
])('a login with %s is found as it has begun', ([, changes]) => {
  const login = { ...plain, ...changes };
  for (const pkce of [false, true]) {
    const { state, codeChallenge, cookies } = create().begin(requestWith(), login, pkce);
    expect(cookies).toHaveLength(1);
    expect(cookies[0]).toMatch(/; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax/);
    expect(cookies[0]?.startsWith('__Host-')).toBe(login.redirectUri.startsWith('https:'));
    const found = create().find(requestWith(pairOf(cookies[0])), state);
    const codeVerifier = pkce ? expect.stringMatching(/^[\w-]{43}$/) : undefined;
    expect(found).toEqual({ ...login, codeVerifier, expiresAt: now + 600_000, endCookie: expect.any(String) });
    const challenge = createHash('sha256')
      .update(found?.codeVerifier ?? '')
      .digest('base64url');
    expect(codeChallenge).toBe(pkce ? challenge : undefined);
  }
});

test('the cookie of a usual login has no more characters than it needs', () => {
  const lengthOf = (changes: Partial<PendingLogin>) =>
    pairOf(create().begin(requestWith(), { ...plain, ...changes }, false).cookies[0]).length;
  expect(lengthOf({})).toBe('__Host-oauth-app.login.1234567890123456=12345678.'.length + 47);
  expect(lengthOf({ userMark: 'mark' }) - lengthOf({})).toBe(9);
});

test('a login of another strategy is told from own and unknown ones', async () => {
  const { state, cookie } = await begin();
  const of = (...cookies: string[]) => create().isOfAnother(requestWith(...cookies), state);
  expect(create({ strategyName: 'other' }).isOfAnother(requestWith(cookie), state)).toBe(true);
  expect(of('x=1', cookie.replace('oauth-app.', 'other.'))).toBe(true);
  expect([of(), of(cookie), of(cookie.replace('__Host-', '')), of('x=1')]).toEqual([false, false, false, false]);
  expect(of((await begin(create({ strategyName: 'other' }))).cookie)).toBe(false);
  expect(create().isOfAnother(new IncomingMessage(new Socket()), state)).toBe(false);
});
