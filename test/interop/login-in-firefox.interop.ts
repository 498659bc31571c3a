import { requireAuthorization, Strategy } from 'passport-oauth-app';
import type { Browser, BrowserContext } from 'puppeteer-core';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished } from 'vitest';
import { test } from '../support/fixture.js';
import { PlantPage } from '../support/rounds.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { type App, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';
import { approve, hasFirefox, isAt, openPage, startFirefox, textWith } from './firefox.js';

/** Answers each page below /page with its path, to users who are logged in. */
const pages = (app: App) =>
  app.use('/page', requireAuthorization({ login: '/login' }) as Handler, (req, res) =>
    sendJson(res, { page: Reflect.get(req, 'originalUrl') }),
  );

const relative: WorldOptions = { strategy: { callbackURL: '/callback' }, routes: pages };

/** The application as another site than the service. */
function open(world: World, host = 'localhost'): string {
  const origin = world.url.replace('127.0.0.1', host);
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${origin}/callback`] });
  return origin;
}

// What test/flow/login-in-chromium.test.ts does, apart from the proxy and the slow callback.
describe.skipIf(!hasFirefox())('a login in Firefox', () => {
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

  const pendingLogins = async () => (await profile.cookies()).filter(({ name }) => name.includes('.login.'));

  test('leads each of four tabs that were opened at once back to its own page', threats(56), async ({ startWorld }) => {
    const origin = open(await startWorld(relative));
    const tabs = [];
    for (let tab = 0; tab < 4; tab++) tabs.push(await openPage(profile));
    await Promise.all(tabs.map((tab, index) => tab.goto(`${origin}/page/${index}?of=tab`)));
    for (const [index, tab] of tabs.entries()) {
      await approve(tab);
      await textWith(tab, `/page/${index}?of=tab`);
      await isAt(tab, `${origin}/page/${index}?of=tab`);
    }
  });

  test(
    'is not begun by a prefetch of its route, which leaves the page to return to',
    threats(62),
    async ({ startWorld }) => {
      const seen: unknown[] = [];
      const world = await startWorld({
        ...relative,
        before: (app) => {
          app.use('/login', (req, _res, next) => {
            seen.push(req.headers['sec-purpose'] ?? req.headers['x-moz']);
            next();
          });
          app.use('/sign-in', (_req, res) => {
            res.setHeader('Content-Type', 'text/html');
            res.end('<link rel="prefetch" href="/login"><a href="/login">Log in</a>');
          });
        },
        routes: (app) =>
          app.use('/page', requireAuthorization({ login: '/sign-in' }) as Handler, (_req, res) => res.end('wanted')),
      });
      const origin = open(world);
      const page = await openPage(profile);
      await page.goto(`${origin}/page/wanted`);
      await until(() => expect(seen).toEqual([expect.stringContaining('prefetch')]));
      expect(await pendingLogins()).toEqual([]);
      await page.locator('a').click();
      await approve(page);
      await textWith(page, 'wanted');
      await isAt(page, `${origin}/page/wanted`);
    },
  );

  test('is not begun by scripts that fetch its route', threats(76), async ({ startWorld }) => {
    const origin = open(await startWorld(relative));
    const page = await openPage(profile);
    await page.goto(origin);
    for (const headers of [{}, { 'X-Sec-Purpose': 'prefetch' }]) {
      const fetched = page.evaluate(
        (init) => fetch('/login', { ...init, redirect: 'manual' }).then(({ type, status }) => [type, status]),
        { headers },
      );
      expect(await fetched).toEqual(['basic', 403]);
    }
    expect(await pendingLogins()).toEqual([]);
  });

  test('that SameSite=Strict loses ends in an error that names the cause', threats(60), async ({ startWorld }) => {
    const world = await startWorld({ ...relative, session: { cookie: { sameSite: 'strict' } } });
    const page = await openPage(profile);
    await page.goto(`${open(world)}/page/a`);
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
    const page = await openPage(profile);
    for (let tab = 0; tab < 12; tab++) {
      for (const login of ['/login', '/login-second'])
        await page.goto(`${origin}${login}?returnTo=/page/${tab}?${'q'.repeat(600)}`);
      const header = (await profile.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
      expect(header.length).toBeLessThan(8_000);
    }
    await page.goto(`${origin}/page/last`);
    await approve(page);
    await textWith(page, '/page/last');
  });

  test('whose callback is opened again ends logged in', async ({ startWorld }) => {
    const world = await startWorld(relative);
    const origin = open(world);
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

  test(
    'succeeds although a sibling host has planted a cookie that counts rounds, new or old',
    threats(71),
    async ({ logInto }) => {
      const plant = new PlantPage();
      const { world, clock } = await logInto({ ...relative, before: plant.mount });
      const origin = open(world, 'app.example.test');
      await plant.arm(world);
      const page = await openPage(profile);
      await page.goto(`${origin.replace('app.', 'evil.')}/plant`);
      for (let time = 0; time < 4; time++) {
        await page.goto(`${origin}/page/${time}`);
        await approve(page);
        await textWith(page, `/page/${time}`);
        const cookies = await profile.cookies();
        expect(cookies.some(({ domain }) => domain === '.example.test')).toBe(true);
        await profile.deleteCookie(...cookies.filter((cookie) => cookie.name === 'connect.sid'));
        if (time === 1) clock.advance(61);
      }
    },
  );

  test('that is declined ends with no grant', async ({ startWorld }) => {
    const world = await startWorld(relative);
    const page = await openPage(profile);
    await page.goto(`${open(world)}/page/a`);
    await page.locator('button[value="decline"]').click();
    await textWith(page, 'Unauthorized');
    expect(world.grantKeys()).toEqual([]);
  });
});
