import { requireAuthorization, Strategy } from 'passport-oauth-app';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest';
import { type Chromium, hasChromium, startChromium } from '../support/chromium.js';
import { test } from '../support/fixture.js';
import { hold } from '../support/hold.js';
import { hasNginx, startNginx } from '../support/nginx.js';
import { PlantPage } from '../support/rounds.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { type App, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

/** Answers each page below /page with its path, to users who are logged in. */
const pages = (app: App) =>
  app.use('/page', requireAuthorization({ login: '/login' }) as Handler, (req, res) =>
    sendJson(res, { page: Reflect.get(req, 'originalUrl') }),
  );

/** The application as another site than the service: browsers take localhost and 127.0.0.1 for two. */
function open(world: World): string {
  const origin = world.url.replace('127.0.0.1', 'localhost');
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${origin}/callback`] });
  return origin;
}

const approve = (page: Page) => page.getByRole('button', { name: /approve|allow/i }).click();
const textOf = async (page: Page) => (await page.textContent('body')) ?? '';

describe.skipIf(!hasChromium())('a login in Chromium', () => {
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

  const relative: WorldOptions = { strategy: { callbackURL: '/callback' }, routes: pages };

  test('leads each of four tabs that were opened at once back to its own page', threats(56), async ({ startWorld }) => {
    const origin = open(await startWorld(relative));
    const { page, tab } = await visit();
    const tabs = [page, await tab(), await tab(), await tab()];
    await Promise.all(tabs.map((each, index) => each.goto(`${origin}/page/${index}?of=tab`)));
    for (const each of tabs) {
      await approve(each);
      await each.waitForURL(`${origin}/page/**`);
    }
    expect(tabs.map((each) => each.url())).toEqual(tabs.map((_, index) => `${origin}/page/${index}?of=tab`));
    for (const [index, each] of tabs.entries()) expect(await textOf(each)).toContain(`/page/${index}?of=tab`);
  });

  test(
    'is not begun by a prefetch of its route, which leaves the page to return to',
    threats(62),
    async ({ startWorld }) => {
      const seen: (string | undefined)[] = [];
      const world = await startWorld({
        ...relative,
        before: (app) => {
          app.use('/login', (req, _res, next) => {
            seen.push(req.headers['sec-purpose'] as string | undefined);
            next();
          });
          app.use('/sign-in', (_req, res) => {
            res.setHeader('Content-Type', 'text/html');
            res.end('<link rel="prefetch" href="/login"><a href="/login">Log in</a>');
          });
        },
        routes: (app) =>
          app.use('/page', requireAuthorization({ login: '/sign-in' }) as Handler, (_req, res) => sendJson(res, {})),
      });
      const origin = open(world);
      const { page } = await visit();
      await page.goto(`${origin}/page/wanted`);
      await until(() => expect(seen).toEqual([expect.stringContaining('prefetch')]));
      const cookies = await page.context().cookies();
      expect(cookies.filter(({ name }) => name.includes('.login.'))).toEqual([]);
      await page.getByRole('link', { name: 'Log in' }).click();
      await approve(page);
      await page.waitForURL(`${origin}/page/wanted`);
    },
  );

  test('is not begun by scripts that fetch its route', threats(76), async ({ startWorld }) => {
    const origin = open(await startWorld(relative));
    const { page } = await visit();
    await page.goto(origin);
    for (const headers of [{}, { 'X-Sec-Purpose': 'prefetch' }]) {
      const fetched = page.evaluate(
        (init) => fetch('/login', { ...init, redirect: 'manual' }).then(({ type, status }) => [type, status]),
        { headers },
      );
      expect(await fetched).toEqual(['basic', 403]);
    }
    expect((await page.context().cookies()).filter(({ name }) => name.includes('.login.'))).toEqual([]);
  });

  test(
    'that SameSite=Strict would lose ends in an error that names the cause, with no grant',
    threats(60),
    async ({ startWorld }) => {
      const world = await startWorld({ ...relative, session: { cookie: { sameSite: 'strict' } } });
      const origin = open(world);
      const { page } = await visit();
      await page.goto(`${origin}/page/a`);
      await approve(page);
      await page.waitForURL(`${origin}/callback**`);
      expect(JSON.parse(await textOf(page))).toMatchObject({
        code: 'ERR_SESSION_COOKIE',
        message: expect.stringContaining('sameSite to lax'),
      });
      expect([world.tokenRequests(), world.grantKeys()]).toEqual([[], []]);
    },
  );

  test('stays below 8 KB of cookies, with two strategies and many tabs', threats(61), async ({ startWorld }) => {
    const world = await startWorld({
      ...relative,
      routes: (app, { passport, service }) => {
        const second = new Strategy({ ...service.options, name: 'second', callbackURL: '/callback', scope: 'tm' });
        onTestFinished(() => second.close());
        passport.use(second as never);
        app.get('/login-second', passport.authenticate('second') as Handler);
        pages(app);
      },
    });
    const origin = open(world);
    const { page } = await visit();
    for (let tab = 0; tab < 12; tab++) {
      for (const login of ['/login', '/login-second']) {
        await page.goto(`${origin}${login}?returnTo=/page/${tab}?${'q'.repeat(600)}`);
      }
      const cookies = await page.context().cookies(origin);
      const header = cookies.map(({ name, value }) => `${name}=${value}`).join('; ');
      expect(header.length).toBeLessThan(8_000);
    }
    await page.goto(`${origin}/page/last`);
    await approve(page);
    await page.waitForURL(`${origin}/page/last`);
  });

  test('whose callback is opened again, and one whose slow callback is reloaded, end logged in', async ({
    startWorld,
  }) => {
    let release = () => {};
    // The service answers when the application has seen that the browser has dropped the first callback: before, nobody could tell
    // that the response is lost.
    const before = (app: App) =>
      app.use('/callback', (_req, res, next) => {
        res.once('close', () => release());
        next();
      });
    const world = await startWorld({ ...relative, before });
    const origin = open(world);
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

  test(
    'succeeds although a sibling host has planted a cookie that counts rounds, new or old',
    threats(71),
    async ({ logInto }) => {
      const plant = new PlantPage();
      const { world, clock } = await logInto({ ...relative, before: plant.mount });
      const { port } = new URL(world.url);
      const origin = `http://app.example.test:${port}`;
      world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${origin}/callback`] });
      await plant.arm(world);
      const { page } = await visit();
      await page.goto(`http://evil.example.test:${port}/plant`);
      for (let time = 0; time < 4; time++) {
        await page.goto(`${origin}/page/${time}`);
        await approve(page);
        await page.waitForURL(`${origin}/page/${time}`);
        expect((await page.context().cookies(origin)).some(({ domain }) => domain === '.example.test')).toBe(true);
        await page.context().clearCookies({ name: 'connect.sid' });
        if (time === 1) clock.advance(61);
      }
    },
  );

  test.skipIf(!hasNginx())(
    "whose page is long succeeds behind nginx' default buffers",
    threats(74),
    async ({ startWorld }) => {
      const world = await startWorld(relative);
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
    },
  );
});
