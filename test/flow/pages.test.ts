import { requireAuthorization } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import type { Browser } from '../support/browser.js';
import { browser, open, openAtCallback, visit, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';
import { type App, type Handler, sendJson, type WorldOptions } from '../support/world.js';

const html = { headers: { accept: 'text/html' } };

/** Guards all pages but the public ones. */
const guard = (app: App, login = '/login') => {
  const check = requireAuthorization({ login }) as Handler;
  const isPublic = /^\/(?:login|callback|declined|whoami|sign-in|auth)/;
  app.use((req, res, next) => (isPublic.test(req.url ?? '') ? next() : check(req, res, next)));
};
const guarded: WorldOptions = { routes: (app) => guard(app) };

const locationOf = async (browser: Browser, callback: string) =>
  (await browser.visit(callback)).headers.get('location');

describe('each page that is opened without a login comes back after it', threats(56), () => {
  test('with eight tabs at once, each to its own page of up to 500 characters', async () => {
    await open(guarded);
    const pages = Array.from({ length: 8 }, (_, tab) => `/page-${tab}?q=`.padEnd(500, `${tab}`));
    const redirects = await Promise.all(pages.map((page) => visit(page, html)));
    const callbacks: string[] = [];
    for (const { headers } of redirects) {
      callbacks.push(await world.begin(browser, {}, String(headers.get('location'))));
    }
    for (const [tab, callback] of callbacks.entries()) expect(await locationOf(browser, callback)).toBe(pages[tab]);
  });

  test('and a page that is too long leads to /, never to the page of another tab', async () => {
    await open(guarded);
    const long = `/long?${'%C3%A9'.repeat(330)}`;
    const other = await visit('/other', html);
    expect(other.status).toBe(302);
    const last = await visit(`${long}${'x'.repeat(200)}`, html);
    expect(last.status).toBe(302);
    // As a link to the login route would, without the parameter: the cookie of /other is gone.
    expect(await locationOf(browser, await world.begin(browser))).toBe('/');
    const callback = await world.begin(browser, {}, String(other.headers.get('location')));
    expect(await locationOf(browser, callback)).toBe('/other');
  });

  test('through a page of the application that links to the login route', async () => {
    await open({
      routes: (app) => {
        guard(app, '/sign-in?lang=en#form');
        app.get('/sign-in', (req, res) => sendJson(res, { returnTo: Reflect.get(req, 'query').returnTo }));
      },
    });
    const redirect = await visit('/reports', html);
    expect(redirect.headers.get('location')).toBe('/sign-in?lang=en&returnTo=%2Freports#form');
    expect((await visit(String(redirect.headers.get('location')))).json()).toEqual({ returnTo: '/reports' });
    expect(await locationOf(browser, await world.begin(browser))).toBe('/reports');
  });

  test('with a backslash in its query', async () => {
    await open(guarded);
    const { headers } = await rawRequest(world.url, '/search?path=C:\\temp');
    const callback = await world.begin(browser, {}, String(headers.location));
    expect(await locationOf(browser, callback)).toBe('/search?path=C:%5Ctemp');
  });

  test('below a prefix that a trusted proxy strips', async () => {
    await open({ before: (app) => app.set('trust proxy', 'loopback'), ...guarded });
    const forwarded = { headers: { 'x-forwarded-prefix': '/shop/', accept: 'text/html' } };
    const redirect = await visit('/cart?x=1', forwarded);
    expect(redirect.headers.get('location')).toBe('/login?returnTo=%2Fshop%2Fcart%3Fx%3D1');
    for (const prefix of ['//evil.example', 'https://evil.example', '/a b', '/..//evil.example']) {
      const { headers } = await rawRequest(world.url, '/cart', { headers: { 'x-forwarded-prefix': prefix } });
      expect(new URL(String(headers.location), 'http://app.example').searchParams.get('returnTo')).toMatch(/^\/(?!\/)/);
    }
  });

  test('regardless of X-Forwarded-Prefix unless a proxy is trusted', async () => {
    await open(guarded);
    const { headers } = await rawRequest(world.url, '/cart', { headers: { 'x-forwarded-prefix': '/shop' } });
    expect(headers.location).toBe('/login?returnTo=%2Fcart');
  });

  test('after a decline, and after a failed exchange', async () => {
    await open({ ...guarded, authenticate: { failureRedirect: '/declined' } });
    const { headers } = await visit('/reports', html);
    const login = String(headers.get('location'));
    expect(await locationOf(browser, await world.begin(browser, { decline: true }, login))).toBe('/declined');
    const again = await world.begin(browser);
    world.service.fail('token', { status: 500 });
    expect((await visit(again)).status).toBe(503);
    expect(await locationOf(browser, await world.begin(browser))).toBe('/reports');
  });

  test('in its own application, where two share a host and its cookies', async () => {
    const [first, second] = [await open(guarded), await open(guarded)];
    await visit(`${first.url}/of-first`, html);
    // Browsers do not tell ports apart.
    for (const [name, value] of browser.cookies(first.url)) browser.cookies(second.url).set(name, value);
    expect(await locationOf(browser, await second.begin(browser))).toBe('/');
    expect(await locationOf(browser, await first.begin(browser))).toBe('/of-first');
  });
});

test('a prefetched page takes no place of the page that the user asked for', threats(62), async () => {
  await open(guarded);
  await visit('/wanted', html);
  const prefetch = { headers: { accept: 'text/html', 'sec-purpose': 'prefetch' } };
  expect((await visit('/guessed', prefetch)).status).toBe(302);
  expect(await locationOf(browser, await world.begin(browser))).toBe('/wanted');
});

describe('a prefetch of the login route', threats(62), () => {
  test.for(['prefetch', 'prefetch;prerender', 'prefetch;anonymous-client-ip'])(
    'by "%s" begins no login, sets no cookie, and leaves the page to return to',
    async (purpose) => {
      await open(guarded);
      await visit('/wanted', html);
      const answer = await visit('/login', { headers: { 'sec-purpose': purpose } });
      expect([answer.status, answer.json().code]).toEqual([503, 'ERR_PREFETCH']);
      expect(answer.headers.get('set-cookie')).toBeNull();
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(await locationOf(browser, await world.begin(browser))).toBe('/wanted');
    },
  );

  test('twenty times over ends no genuine login', async () => {
    const callback = await openAtCallback();
    for (let time = 0; time < 20; time++) {
      await visit('/login', { headers: { 'sec-purpose': 'prefetch' } });
    }
    expect((await visit(callback)).status).toBe(302);
  });
});
