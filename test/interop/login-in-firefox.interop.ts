import type { Browser, BrowserContext, Page } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openAt, relative, testLogins } from '../support/login-in-browser.js';
import { open } from '../support/one-world.js';
import { grantKeys } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { approve, hasFirefox, isAt, openPage, startFirefox, textWith } from './firefox.js';

// What test/flow/login-in-chromium.test.ts does, apart from the proxy and the slow callback.
describe.skipIf(!hasFirefox())('a login in Firefox', threats(56, 61, 62, 71, 76), () => {
  let firefox: Browser;
  let profile: BrowserContext;
  beforeAll(async () => {
    firefox = await startFirefox();
  });
  afterAll(() => firefox?.close());
  beforeEach(async () => {
    profile = await firefox.createBrowserContext();
    return () => profile.close();
  });

  testLogins<Page>(async () => ({
    tab: () => openPage(profile),
    approve,
    follow: (tab) => tab.locator('a').click(),
    shows: async (tab, url, text) => {
      await textWith(tab, text);
      await isAt(tab, url);
    },
    cookies: () => profile.cookies(),
    forget: async (name) => profile.deleteCookie(...(await profile.cookies()).filter((each) => each.name === name)),
  }));

  test('that SameSite=Strict loses ends in an error that names the cause', threats(60), async () => {
    const world = await open({ ...relative, session: { cookie: { sameSite: 'strict' } } });
    const page = await openPage(profile);
    await page.goto(`${openAt(world)}/page/a`);
    // Firefox does not say that the callback comes from another site, where the consent page sends no referrer: the rounds are counted.
    for (let round = 1; round <= 4 && world.errors.length === 0; round++) {
      await approve(page);
      await until(() => expect(world.tokenRequests()).toHaveLength(round));
      await until(() => {
        const asked = world.service.requests.filter(
          ({ method, path }) => method === 'GET' && path.endsWith('/authorize'),
        );
        expect(world.errors.length + asked.length).toBe(round + 1);
      });
    }
    await textWith(page, 'ERR_LOGIN_LOOP');
    expect(world.errors.map(({ message }) => message)).toEqual([expect.stringContaining('SameSite=Strict')]);
  });

  test('whose callback is opened again ends logged in', async () => {
    const world = await open(relative);
    const origin = openAt(world);
    const page = await openPage(profile);
    let callback = '';
    page.on('request', (request) => {
      if (request.url().startsWith(`${origin}/callback`)) callback = request.url();
    });
    await page.goto(`${origin}/page/before`);
    await approve(page);
    await isAt(page, `${origin}/page/before`);
    await page.goto(callback);
    await isAt(page, `${origin}/`);
    expect(world.tokenRequests()).toHaveLength(1);
    await page.goto(`${origin}/page/after`);
    await textWith(page, '/page/after');
  });

  test('that is declined ends with no grant', async () => {
    const world = await open(relative);
    const page = await openPage(profile);
    await page.goto(`${openAt(world)}/page/a`);
    await page.locator('button[value="decline"]').click();
    await textWith(page, 'Unauthorized');
    expect(grantKeys(world)).toEqual([]);
  });
});
