import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Chromium, hasChromium, startChromium } from '../support/chromium.js';
import { hold } from '../support/hold.js';
import { openAt, relative, testLogins } from '../support/login-in-browser.js';
import { hasNginx, startNginx } from '../support/nginx.js';
import { open } from '../support/one-world.js';
import { grantKeys } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import type { App } from '../support/world.js';

const approve = (page: Page) => page.getByRole('button', { name: /approve|allow/i }).click();
const textOf = async (page: Page) => (await page.textContent('body')) ?? '';

describe.skipIf(!hasChromium())('a login in Chromium', threats(56, 61, 62, 71, 76), () => {
  let chromium: Chromium;
  beforeAll(async () => {
    chromium = await startChromium();
  });
  afterAll(() => chromium?.close());

  async function visit() {
    const opened = await chromium.visit();
    onTestFinished(() => opened.close());
    return opened;
  }

  testLogins<Page>(async () => {
    const { page, tab } = await visit();
    return {
      tab,
      approve,
      follow: (each) => each.getByRole('link').click(),
      shows: async (each, url, text) => {
        await each.waitForURL(url);
        await each.getByText(text).waitFor();
      },
      cookies: () => page.context().cookies(),
      forget: (name) => page.context().clearCookies({ name }),
    };
  });

  test(
    'that SameSite=Strict would lose ends in an error that names the cause, with no grant',
    threats(60),
    async () => {
      const world = await open({ ...relative, session: { cookie: { sameSite: 'strict' } } });
      const origin = openAt(world);
      const { page } = await visit();
      await page.goto(`${origin}/page/a`);
      await approve(page);
      await page.waitForURL(`${origin}/callback**`);
      const message = expect.stringContaining('sameSite to lax');
      expect(JSON.parse(await textOf(page))).toMatchObject({ code: 'ERR_SESSION_COOKIE', message });
      expect([world.tokenRequests(), grantKeys(world)]).toEqual([[], []]);
    },
  );

  test('whose callback is opened again, and one whose slow callback is reloaded, end logged in', async () => {
    let release = () => {};
    // The service answers when the application has seen that the browser has dropped the first callback: before, nobody could tell
    // that the response is lost.
    const before = (app: App) =>
      app.use('/callback', (_req, res, next) => {
        res.once('close', () => release());
        next();
      });
    const world = await open({ ...relative, before });
    const origin = openAt(world);
    const { page } = await visit();
    await page.goto(`${origin}/page/slow`);
    let callback = '';
    page.on('request', (request) => {
      if (request.url().startsWith(`${origin}/callback`)) callback = request.url();
    });
    release = hold(world.service, 'token');
    // The navigation does not end before the reload drops it.
    approve(page).catch(() => {});
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    await page.goto(callback);
    expect(page.url()).toBe(`${origin}/page/slow`);
    expect(world.tokenRequests()).toHaveLength(1);
    await page.goto(callback);
    expect(page.url()).toBe(`${origin}/`);
    await page.goto(`${origin}/page/after`);
    expect(await textOf(page)).toContain('/page/after');
  });

  test.skipIf(!hasNginx())("whose page is long succeeds behind nginx' default buffers", threats(74), async () => {
    const world = await open(relative);
    const nginx = await startNginx(world.url);
    onTestFinished(() => nginx.stop());
    const origin = `http://localhost:${nginx.port}`;
    world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${origin}/callback`] });
    const { page } = await visit();
    for (const [length, isReached] of [
      [500, true],
      [900, true],
      [1_300, true],
      [1_500, false],
      [2_000, false],
    ] as const) {
      for (const character of ['x', '%C3%A9']) {
        await page.context().clearCookies();
        const path = `/page/${character.repeat((length - 8) / character.length)}?a=1`;
        const answer = await page.goto(origin + path);
        expect([length, answer?.status()]).toEqual([length, 200]);
        await approve(page);
        await page.waitForURL((url) => url.origin === origin);
        expect(await textOf(page)).not.toContain('502');
        expect(isReached ? [path] : [path, '/']).toContain(new URL(page.url()).href.slice(origin.length));
      }
    }
  });
});
