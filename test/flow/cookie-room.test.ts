import { requireAuthorization } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { addStrategy } from '../support/add-strategy.js';
import type { Page } from '../support/browser.js';
import { browser, logIn, open, visit, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { threats } from '../support/threats.js';
import type { Handler, WorldOptions } from '../support/world.js';

/** Two more strategies, with login routes of their own. */
const threeStrategies: WorldOptions = {
  routes: (app, world) => {
    for (const name of ['second', 'third']) {
      addStrategy(world, name);
      app.get(`/login-${name}`, world.passport.authenticate(name) as Handler);
    }
  },
};

describe('the Cookie header', threats(61), () => {
  test('stays below 8 KB with three strategies and many tabs, and the last login is good', async () => {
    await open(threeStrategies);
    for (let tab = 0; tab < 12; tab++) {
      for (const login of ['/login', '/login-second', '/login-third']) {
        const page = await visit(`${login}?returnTo=/${'p'.repeat(tab * 100)}`);
        expect(page.status).toBe(302);
        expect(browser.cookieHeader(world.url).length).toBeLessThan(8_000);
      }
    }
    expect((await visit(await world.begin(browser))).status).toBe(302);
  });

  test('stays below 8 KB beside large cookies of other software', async () => {
    await open();
    for (let count = 0; count < 6; count++) browser.cookies(world.url).set(`analytics-${count}`, 'a'.repeat(1_000));
    for (let tab = 0; tab < 14; tab++) {
      const callback = await world.begin(browser, {}, `/login?returnTo=/page-${tab}?${'q'.repeat(400)}`);
      expect(browser.cookieHeader(world.url).length).toBeLessThan(8_000);
      if (tab === 13) expect((await visit(callback)).status).toBe(302);
    }
  });

  test('keeps the pages of eight tabs of 500 characters beside the cookies of a usual application', async () => {
    await open({ strategy: { pkce: true } });
    browser.cookies(world.url).set('connect.sid', 's'.repeat(100));
    browser.cookies(world.url).set('theme', 'dark'.repeat(200));
    const pages = Array.from({ length: 8 }, (_, tab) => `/page-${tab}?q=`.padEnd(500, 'x'));
    const callbacks: string[] = [];
    for (const page of pages) {
      callbacks.push(await world.begin(browser, {}, `/login?${new URLSearchParams({ returnTo: page })}`));
    }
    for (const [tab, callback] of callbacks.entries()) {
      expect((await visit(callback)).headers.get('location')).toBe(pages[tab]);
    }
  });

  test('of an https application: cookies that a sibling host has planted end no genuine login', async () => {
    const callbackURL = 'https://app.example.net/callback';
    await open({ strategy: { callbackURL } });
    world.register(callbackURL);
    const first = await rawRequest(world.url, '/login');
    const [genuine = ''] = first.headers['set-cookie']?.[0]?.split(';') ?? [];
    const planted = Array.from({ length: 40 }, (_, index) => `oauth-app.login.${`${index}`.padStart(16, 'a')}=0.x`);
    const cookie = [genuine, ...planted].join('; ');
    const second = await rawRequest(world.url, '/login', { headers: { cookie } });
    expect(second.headers['set-cookie']?.filter((line) => line.includes('Max-Age=0'))).toEqual([]);
    const { search } = new URL(await world.service.approve(String(first.headers.location)));
    expect((await rawRequest(world.url, `/callback${search}`, { headers: { cookie } })).status).toBe(302);
  });

  test('stays below 8 KB where a page asks for many scopes and is remembered as well', async () => {
    const scope = Array.from({ length: 12 }, (_, area) => `https://service.example/scopes/area-${area}.readonly`);
    await open({ routes: (app) => app.get('/areas', requireAuthorization({ login: '/login', scope })) });
    await logIn();
    browser.cookies(world.url).set('analytics', 'a'.repeat(6_300));
    const page = await visit(`/areas?q=${'q'.repeat(1_200)}`);
    expect(page.headers.get('location')).toMatch(/^\/login\?returnTo=/);
    expect([...browser.cookies(world.url).keys()].some((name) => name.includes('.step-up.'))).toBe(true);
    expect(browser.cookieHeader(world.url).length).toBeLessThan(8_000);
  });

  test('has no room left for the page of a guarded route: the page leads to /, and the header stays small', async () => {
    await open();
    browser.cookies(world.url).set('large', 'a'.repeat(7_000));
    await visit(`/projects?${'q'.repeat(1_500)}`, { headers: { accept: 'text/html' } });
    expect(browser.cookieHeader(world.url).length).toBeLessThan(8_000);
    const page = await visit(await world.begin(browser));
    expect([page.status, page.headers.get('location')]).toEqual([302, '/']);
  });
});

describe('the headers of one answer', threats(74), () => {
  const lengthOf = ({ headers }: Page) =>
    [...headers].reduce((sum, [name, value]) => sum + name.length + value.length + '\r\n: '.length, 0);

  test.for([
    ['a plain page', (length: number) => `/projects?q=${'x'.repeat(length)}`],
    ['a page of escaped characters', (length: number) => `/projects?q=${'%C3%A9'.repeat(length / 6)}`],
  ] as const)(
    'stay below 3.5 KB at each step of a login that comes from %s of 2,000 characters',
    async ([, pageOf]) => {
      await open();
      for (const length of [600, 1_200, 1_800, 2_000]) {
        const guarded = await visit(pageOf(length));
        const begun = await visit(new URL(String(guarded.headers.get('location')), world.url).href);
        const ended = await visit(await world.service.approve(String(begun.headers.get('location'))));
        for (const page of [guarded, begun, ended]) {
          expect(page.status).toBe(302);
          expect(lengthOf(page)).toBeLessThan(3_500);
        }
        expect([pageOf(length), '/']).toContain(ended.headers.get('location'));
        await visit('/logout', { method: 'POST' });
      }
    },
  );

  test('stay below 3.5 KB where a page of 2,000 characters asks for many scopes', async () => {
    const scope = Array.from({ length: 20 }, (_, area) => `https://service.example/scopes/area-${area}.readonly`);
    await open({ routes: (app) => app.get('/areas', requireAuthorization({ login: '/login', scope })) });
    await logIn();
    const page = await visit(`/areas?q=${'q'.repeat(2_000)}`);
    expect(page.headers.getSetCookie().some((line) => line.includes('.step-up.'))).toBe(true);
    expect([page.status, lengthOf(page) < 3_500]).toEqual([302, true]);
  });

  test('stay below 3.5 KB where a sibling host has planted hundreds of cookies', async () => {
    await open();
    const planted = Array.from({ length: 350 }, (_, index) => `oauth-app.login.${`${index}`.padStart(16, 'a')}=0.x`);
    const answer = await rawRequest(world.url, `/login?returnTo=/${'p'.repeat(1_200)}`, {
      headers: { cookie: planted.join('; ') },
    });
    expect(answer.status).toBe(302);
    const lines = [answer.headers.location, ...(answer.headers['set-cookie'] ?? [])];
    expect(lines.join('\r\n').length).toBeLessThan(3_000);
  });

  test('keep the page of one tab, of 1,300 characters, beside the cookie that this answer ends', async () => {
    await open({ strategy: { pkce: true } });
    const page = `/projects?q=${'x'.repeat(1_288)}`;
    const guarded = await visit(page);
    const callback = await world.begin(browser, {}, String(guarded.headers.get('location')));
    expect((await visit(callback)).headers.get('location')).toBe(page);
  });
});
