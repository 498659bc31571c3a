import type { SessionOptions } from 'express-session';
import { describe, expect, test } from 'vitest';
import type { Page } from '../support/browser.js';
import { browser, open, projects, visit, world } from '../support/one-world.js';
import { ForgetfulBrowser, roundsOf } from '../support/rounds.js';
import { tellOutcome } from '../support/tell-outcome.js';
import { threats } from '../support/threats.js';
import type { WorldOptions } from '../support/world.js';

const LAX = {};
const NONE = { sameSite: 'none' } as const;
const PARTITIONED = { sameSite: 'none', partitioned: true } as const;

const withCookie = (cookie: SessionOptions['cookie']): WorldOptions => ({ session: { ...(cookie ? { cookie } : {}) } });

/** The attributes of the package's own cookies in an answer. */
const attributes = ({ headers }: Page) =>
  headers
    .getSetCookie()
    .filter((line) => line.startsWith('oauth-app.'))
    .map((line) => line.replace(/^[^;]*; Max-Age=\d+; Path=\/; HttpOnly; /, ''));

const frame = (dest = 'iframe') => ({ 'sec-fetch-dest': dest, 'sec-fetch-mode': 'navigate' });
const foreign = { ...frame(), 'sec-fetch-site': 'cross-site' };

describe('cookies of a login', threats(94), () => {
  test.for([
    ['Lax', LAX, 'SameSite=Lax'],
    ['Lax, where it is partitioned', { partitioned: true }, 'SameSite=Lax'],
    ['None', NONE, 'SameSite=None; Secure'],
    ['None and Partitioned', PARTITIONED, 'SameSite=None; Secure; Partitioned'],
  ] as const)('follow a session that is %s', async ([, cookie, expected]) => {
    await open(withCookie(cookie));
    const visits = [await projects(), await visit('/login'), await visit(await world.begin(browser))];
    for (const page of visits) {
      expect(attributes(page).length).toBeGreaterThan(0);
      expect(new Set(attributes(page))).toEqual(new Set([expected]));
    }
  });
});

describe('a login in a frame', threats(93, 94), () => {
  const headers = [
    ...['iframe', 'frame', 'embed', 'object'].map((dest) => ({ ...frame(dest), 'sec-fetch-site': 'cross-site' })),
    { ...frame(), 'sec-fetch-site': 'same-origin', 'sec-fetch-storage-access': 'none' },
  ];

  test.for([
    ['Lax', LAX, true],
    ['None', NONE, true],
    ['Partitioned and Lax', { partitioned: true }, true],
    ['Partitioned', PARTITIONED, false],
  ] as const)('of another site with a session that is %s', async ([, cookie, isRefused]) => {
    await open(withCookie(cookie));
    for (const each of headers) {
      const page = await visit('/login', { headers: each });
      if (!isRefused) expect(page.status).toBe(302);
      else
        expect([page.status, page.json()]).toMatchObject([
          500,
          { code: 'ERR_SESSION_COOKIE', message: expect.stringContaining('cookie.partitioned') },
        ]);
      expect(attributes(page)).toHaveLength(isRefused ? 0 : 1);
    }
  });

  test('of its own site, and one in a tab, need no other session', async () => {
    await open();
    for (const each of [
      { ...frame(), 'sec-fetch-site': 'same-origin' },
      { ...frame(), 'sec-fetch-site': 'same-site' },
      { ...frame('document'), 'sec-fetch-site': 'cross-site' },
    ])
      expect((await visit('/login', { headers: each })).status).toBe(302);
  });

  test('whose callback has lost its cookie names the frame, and whether the browser blocks cookies', async () => {
    await open({
      ...withCookie(PARTITIONED),
      callback: tellOutcome,
    });
    const callback = await world.begin(browser);
    const messageIn = async (given: Record<string, string>) =>
      (await new ForgetfulBrowser().visit(callback, { headers: given })).json().info.message;
    expect(await messageIn({ ...foreign, 'sec-fetch-storage-access': 'none' })).toContain('this browser blocks');
    expect(await messageIn({ ...foreign, 'sec-fetch-storage-access': 'active' })).toContain('browsers may block');
    const inactive = { 'sec-fetch-dest': 'frame', 'sec-fetch-storage-access': 'inactive' };
    expect(await messageIn(inactive)).toContain('this browser blocks');
    expect(await messageIn({ 'sec-fetch-dest': 'document' })).not.toContain('frame');
    expect(await messageIn({ 'sec-fetch-storage-access': 'none' })).not.toContain('frame');
    const long = 'a'.repeat(64);
    for (const cookie of ['sid=1; a=2;  sid =3; a', `${long}=1; sid=1; sid=2; b=1`])
      expect(await messageIn({ ...foreign, cookie })).toContain('two cookies named sid,');
    for (const name of [long, '__Host-a.%b'])
      expect(await messageIn({ ...foreign, cookie: `${name}=1; ${name}=2` })).toContain(`two cookies named ${name},`);
    for (const none of ['a=1; b=2', 'ab; ab', '=1; =1', `${long}a=1; ${long}a=2`, '<b=1; <b=2', 'b<=1; b<=2'])
      expect(await messageIn({ ...foreign, cookie: none })).not.toContain('two cookies');
  });

  test.for([
    ['a frame whose cookies are blocked', { ...foreign, 'sec-fetch-storage-access': 'none' }, 'this browser blocks'],
    ['a frame', foreign, 'browsers may block'],
    [
      'a cookie under a former name',
      { cookie: 'connect.sid=old; a=b; connect.sid=new' },
      'two cookies named connect.sid',
    ],
  ] as const)('that comes back again and again names %s', async ([, given, cause]) => {
    await open(withCookie(PARTITIONED));
    const { name, value } = await roundsOf(world);
    const jar = browser.cookies(world.url).set(name, value);
    const callback = await world.begin(browser);
    const own = [...jar].map((pair) => pair.join('='));
    const cookie = [...('cookie' in given ? [given.cookie] : []), ...own].join('; ');
    const page = await browser.visit(callback, { headers: { ...given, cookie } });
    expect(page.json()).toMatchObject({ code: 'ERR_LOGIN_LOOP', message: expect.stringContaining(cause) });
  });
});
