import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { PendingLogins } from '../../src/login/pending-logins.js';
import { Secret } from '../../src/redaction.js';

let now = 1_700_000_000_000;
const create = (change: { strategyName?: string; clientID?: string; clientSecret?: Secret } = {}) =>
  new PendingLogins({
    strategyName: 'oauth-app',
    clientID: 'id',
    clientSecret: new Secret('secret'),
    clock: () => now,
    ...change,
  });

const https = { redirectUri: 'https://app.example/callback', returnTo: '/projects' };
const http = { redirectUri: 'http://localhost/callback', returnTo: undefined };

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

it.each([0, 100, 300, 1_000, 2_040])(
  'cookies of sixteen logins that lead to pages of %i characters stay below 8 KB',
  async (length) => {
    const logins = create();
    const login = { ...https, returnTo: length === 0 ? undefined : `/${'p'.repeat(length - 1)}` };
    let jar: string[] = [];
    for (let tab = 0; tab < 16; tab++) {
      const { cookies } = logins.begin(requestWith(...jar), login, true);
      const ended = cookies.filter((line) => line.includes('Max-Age=0')).map((line) => line.split('=')[0]);
      jar = [...jar.filter((pair) => !ended.includes(pair.split('=')[0])), pairOf(cookies[0])];
      expect(jar.join('; ').length).toBeLessThan(7_700);
    }
    expect(jar).toHaveLength(12);
  },
);

describe('a pending login', () => {
  it('is found by its state and its cookie, in any process that has the client secret', async () => {
    const { state, cookie } = await begin();
    expect(await create().find(requestWith(cookie), state)).toEqual({
      ...https,
      codeVerifier: undefined,
      expiresAt: now + 600_000,
    });
  });

  it('is found by a host whose clock is a little behind, and not after a clock was set back by more', async () => {
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

  it.each([
    ['strategy', { strategyName: 'other' }],
    ['client', { clientID: 'other' }],
    ['client secret', { clientSecret: new Secret('other') }],
  ])('THREATS 6: is not found by another %s', async (_what, change) => {
    const { state, cookie } = await begin();
    const renamed = cookie.replace('oauth-app.login', 'other.login');
    expect(await create(change).find(requestWith(cookie, renamed), state)).toBeUndefined();
  });

  it('of https is not found in a cookie that any sibling host could plant', async () => {
    const { state, cookie } = await begin();
    expect(cookie).toMatch(/^__Host-/);
    expect(await create().find(requestWith(cookie.replace('__Host-', '')), state)).toBeUndefined();
  });

  it('of http is not found in a cookie of https, so that neither stands for the other', async () => {
    const { state, cookie } = await begin(create(), http);
    expect(await create().find(requestWith(cookie), state)).toMatchObject({ redirectUri: http.redirectUri });
    expect(await create().find(requestWith(`__Host-${cookie}`), state)).toBeUndefined();
  });

  it.each([
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

  it('THREATS 7: ends after ten minutes', async () => {
    const { state, cookie } = await begin();
    now += 599_999;
    expect(await create().find(requestWith(cookie), state)).toBeDefined();
    now += 1;
    expect(await create().find(requestWith(cookie), state)).toBeUndefined();
  });

  it('THREATS 5: is used once', async () => {
    const logins = create();
    const { state, cookie } = await begin(logins);
    const login = await logins.find(requestWith(cookie), state);
    if (!login) return expect.unreachable();
    expect([logins.use(state, login), logins.use(state, login)]).toEqual([true, false]);
    const ended = logins.ended(requestWith(cookie), state, login);
    expect(ended.map(pairOf)).toEqual([cookie.replace(/=.*/, '=')]);
    expect(ended[0]).toContain('Max-Age=0');
  });
});

it('THREATS 13: logins that nobody finishes cost no memory', async () => {
  const logins = create();
  for (let count = 0; count < 500; count++) await logins.begin(requestWith(), https, true);
  expect(logins.used).toBe(0);
});

describe('the bound', () => {
  it('drops the oldest by age, whatever the order of the cookies is, and none of another strategy', async () => {
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

  it('holds with cookies that were not made here', async () => {
    const odd = [
      'oauth-app.login.=',
      'oauth-app.login.a',
      '__Host-oauth-app.login.b=%FF',
      'oauth-app.login.c=zzzzzzzzzzzzzz.x',
    ];
    const junk = Array.from({ length: 40 }, (_, index) => `oauth-app.login.j${index}=x`);
    const { cookies } = await create().begin(requestWith(...odd, ...junk), https, false);
    expect(cookies.length).toBeGreaterThan(30);
    for (const cookie of cookies.slice(1))
      expect(cookie).toMatch(/^[^=\s;]+=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax(; Secure)?$/);
  });
});
