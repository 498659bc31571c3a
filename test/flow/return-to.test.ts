import { describe, expect, test } from 'vitest';
import { requireAuthorization } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { browser, open, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { type App, type Framework, sendJson, type WorldOptions } from '../support/world.js';

/** What no login may lead to, as it would stand in a session. */
const hostile: readonly [string, unknown][] = [
  ['another host', '//evil.example'],
  ['another host, by three slashes', '///evil.example'],
  ['another host, by a backslash', '/\\evil.example'],
  ['another host, by backslashes', '\\\\evil.example'],
  ['another host, behind a tab', '/\t/evil.example'],
  ['another host, behind a line feed', '/\n/evil.example'],
  ['another host, behind a dot', '/.//evil.example'],
  ['another host, behind dots', '/a/..//evil.example'],
  ['another host, behind encoded dots', '/a/%2e%2e//evil.example'],
  ['another host, behind a leading space', ' //evil.example'],
  ['an absolute URL', 'https://evil.example/'],
  ['an absolute URL without slashes', 'https:evil.example'],
  ['a script', 'javascript:alert(1)'],
  ['data', 'data:text/html,<script>alert(1)</script>'],
  ['a relative path', 'projects'],
  ['a header', '/x\r\nSet-Cookie: admin=1'],
  ['NUL', '/x\0y'],
  ['an empty text', ''],
  ['a list', ['/projects', '//evil.example']],
  ['an object', { toString: '//evil.example' }],
  ['a number', 7],
  ['a text of 100 kB', `/${'a'.repeat(100_000)}`],
  ['a text that is long once it is percent-encoded', `/${'é'.repeat(1500)}`],
];

/** What they may lead to. */
const fine: readonly [string, string][] = [
  ['/projects', '/projects'],
  ['/projects?x=//evil.example&y=%20', '/projects?x=//evil.example&y=%20'],
  ['/a/../projects', '/projects'],
  ['/projects#part', '/projects#part'],
  ['/%2f%2fevil.example', '/%2f%2fevil.example'],
  ['/ünï', '/%C3%BCn%C3%AF'],
];

const atOnce = (value: unknown): WorldOptions => ({
  routes: (app) =>
    app.get('/remember', (req, res) => {
      Object.assign(req.session, { returnTo: value });
      sendJson(res, {});
    }),
});

describe('under Express', () => {
  const target = async (browser: Browser, login?: string) => {
    const page = await browser.visit(await world.begin(browser, {}, login));
    expect(page.status).toBe(302);
    return page.headers.get('location');
  };

  test.each(hostile)('a returnTo in the session of %s leads to /', threats(17), async (_what, value) => {
    await open({ ...atOnce(value), authenticate: { successReturnToOrRedirect: '/' } });
    await visit('/remember');
    expect(await target(browser)).toBe('/');
  });

  test.each(fine)('a returnTo of %s in the session survives, and leads there', async (value, expected) => {
    await open({ ...atOnce(value), authenticate: { successReturnToOrRedirect: '/home' } });
    await visit('/remember');
    expect(await target(browser)).toBe(expected);
    expect((await whoami()).session).not.toHaveProperty('returnTo');
  });

  test.each(hostile.filter(([, value]) => typeof value === 'string' && value.length < 10_000))(
    'a returnTo in the query of the login route of %s leads to /',
    threats(17),
    async (_what, value) => {
      await open();
      expect(await target(new Browser(), `/login?returnTo=${encodeURIComponent(String(value))}`)).toBe('/');
    },
  );

  test.each([
    ['twice', 'returnTo=/projects&returnTo=//evil.example'],
    ['as a list', 'returnTo[]=//evil.example'],
    ['nested', 'returnTo[x]=//evil.example'],
    ['as a list of two', 'returnTo[0]=/a&returnTo[1]=//evil.example'],
  ])('a returnTo in the query of the login route that comes %s leads to /', threats(17), async (_what, query) => {
    await open();
    expect(await target(new Browser(), `/login?${query}`)).toBe('/');
  });

  test.each(fine)('a returnTo of %s in the query of the login route leads there', async (value, expected) => {
    await open();
    expect(await target(new Browser(), `/login?returnTo=${encodeURIComponent(value)}`)).toBe(expected);
  });

  test('each tab goes back to its own page', async () => {
    await open();
    const first = await world.begin(browser, {}, '/login?returnTo=/a');
    const second = await world.begin(browser, {}, '/login?returnTo=/b');
    expect((await visit(second)).headers.get('location')).toBe('/b');
    expect((await visit(first)).headers.get('location')).toBe('/a');
  });
});

const everywhere = (app: App) => {
  const guard = requireAuthorization({ login: '/login' });
  app.use((req, res, next) =>
    req.url?.startsWith('/login') || req.url?.startsWith('/callback') ? next() : guard(req, res, next),
  );
};

describe.each<Framework>(['express', 'connect'])('requireAuthorization under %s', (framework) => {
  /** Asks for a page byte for byte as written, is sent to log in, and logs in; where the login leads to. */
  const pageAfterLogin = async (path: string, follows: boolean) => {
    const answer = await rawRequest(world.url, path);
    expect([answer.status, answer.headers.location]).toEqual([302, expect.stringMatching(/^\/login\?returnTo=%2F/)]);
    const browser = new Browser();
    for (const line of answer.headers['set-cookie'] ?? []) {
      const [name = '', value = ''] = line.split(';')[0]?.split('=') ?? [];
      browser.cookies(world.url).set(name, value);
    }
    // By the cookie: a page that links to the login route leaves the parameter out.
    const page = await browser.visit(await world.begin(browser, {}, follows ? answer.headers.location : '/login'));
    return page.headers.get('location') ?? page.json().returnTo;
  };
  const guarded: WorldOptions = {
    framework,
    authenticate: framework === 'connect' ? {} : { successReturnToOrRedirect: '/' },
    routes: (app) => {
      // Connect has no redirect: what Passport would have followed is told.
      if (framework === 'connect')
        app.use('/callback', (req, res) => sendJson(res, { returnTo: Reflect.get(req.session, 'returnTo') }));
      everywhere(app);
    },
  };

  test.each([
    ['/secret', '/secret'],
    ['/secret?a=1&b=%20;,"', '/secret?a=1&b=%20;,%22'],
    ['/%C3%BC%2f%5c', '/%C3%BC%2f%5c'],
  ])('leads back to the page %s', async (path, expected) => {
    await open(guarded);
    for (const follows of [true, false]) expect(await pageAfterLogin(path, follows)).toBe(expected);
  });

  test.each([
    ...['//evil.example', '//evil.example/%2e%2e', '/\\evil.example', '/.//evil.example', '/a/..//evil.example'],
    ...['/a/%2e%2e//evil.example', 'http://evil.example/'],
  ])('leads to / from the request path %s', threats(17), async (path) => {
    await open(guarded);
    for (const follows of [true, false]) expect(await pageAfterLogin(path, follows)).toBe('/');
  });

  test('leaves nothing in the session store while nobody has logged in', async () => {
    await open(guarded);
    for (let count = 0; count < 20; count++) await rawRequest(world.url, `/secret-${count}`);
    expect(stored(world)).toEqual([]);
  });

  test('a cookie that was planted leads nowhere else', async () => {
    await open(guarded);
    for (const planted of ['//evil.example', '%2F%2Fevil.example', '%5C%5Cevil', 'https%3A%2F%2Fevil.example']) {
      const browser = new Browser();
      const [cookie = ''] = (await rawRequest(world.url, '/secret')).headers['set-cookie'] ?? [];
      expect(cookie).toMatch(/^oauth-app\.return-to\.[\w-]{11}=\/secret;/);
      browser.cookies(world.url).set(cookie.slice(0, cookie.indexOf('=')), planted);
      const page = await browser.visit(await world.begin(browser));
      expect(page.headers.get('location') ?? page.json().returnTo).toBe('/');
    }
  });
});
