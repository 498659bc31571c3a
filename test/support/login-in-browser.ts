import { requireAuthorization, Strategy } from 'passport-oauth-app';
import { expect, onTestFinished, test } from 'vitest';
import { clock, loggedIn, open, world } from './one-world.js';
import { PlantPage } from './rounds.js';
import { until } from './until.js';
import { type App, type Handler, sendJson, type World, type WorldOptions } from './world.js';

/** A tab, of whichever driver. */
interface Tab {
  goto(url: string): Promise<unknown>;
  /** Resolves to what the script does. */
  evaluate(script: string): Promise<unknown>;
}

/** A profile of a browser, with what each driver does in its own way. */
export interface Profile<T extends Tab> {
  tab(): Promise<T>;
  /** Presses Approve on the consent page. */
  approve(tab: T): Promise<void>;
  /** Follows the link of the page. */
  follow(tab: T): Promise<void>;
  /** Resolves once the tab is at the address, and shows the text. */
  shows(tab: T, url: string, text: string): Promise<void>;
  cookies(): Promise<readonly { readonly name: string; readonly value: string; readonly domain: string }[]>;
  forget(cookie: string): Promise<void>;
}

/** Answers each page below /page with its path, to users who are logged in. */
const pages = (app: App) =>
  app.use('/page', requireAuthorization({ login: '/login' }) as Handler, (req, res) =>
    sendJson(res, { page: Reflect.get(req, 'originalUrl') }),
  );

/** An application at whichever host it is opened, with pages below /page. */
export const relative: WorldOptions = { strategy: { callbackURL: '/callback' }, routes: pages };

/** The application as another site than the service: browsers take localhost and 127.0.0.1 for two. */
export function openAt(world: World, host = 'localhost'): string {
  const origin = world.url.replace('127.0.0.1', host);
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${origin}/callback`] });
  return origin;
}

/** Tests of logins that any browser passes: threats 56, 61, 62, 71 and 76. @param openProfile Gives a test a profile of its own. */
export function testLogins<T extends Tab>(openProfile: () => Promise<Profile<T>>): void {
  const pendingIn = async (profile: Profile<T>) =>
    (await profile.cookies()).filter(({ name }) => name.includes('.login.'));

  test('leads each of four tabs that were opened at once back to its own page', async () => {
    const origin = openAt(await open(relative));
    const profile = await openProfile();
    const tabs: T[] = [];
    for (let tab = 0; tab < 4; tab++) tabs.push(await profile.tab());
    const paths = tabs.map((_, index) => `/page/${index}?of=tab`);
    await Promise.all(tabs.map((tab, index) => tab.goto(`${origin}${paths[index]}`)));
    for (const [index, tab] of tabs.entries()) {
      await profile.approve(tab);
      await profile.shows(tab, `${origin}${paths[index]}`, `${paths[index]}`);
    }
  });

  test('is not begun by a prefetch of its route, which leaves the page to return to', async () => {
    const seen: unknown[] = [];
    const world = await open({
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
    const origin = openAt(world);
    const profile = await openProfile();
    const tab = await profile.tab();
    await tab.goto(`${origin}/page/wanted`);
    await until(() => expect(seen).toEqual([expect.stringContaining('prefetch')]));
    expect(await pendingIn(profile)).toEqual([]);
    await profile.follow(tab);
    await profile.approve(tab);
    await profile.shows(tab, `${origin}/page/wanted`, 'wanted');
  });

  test('is not begun by scripts that fetch its route', async () => {
    const origin = openAt(await open(relative));
    const profile = await openProfile();
    const tab = await profile.tab();
    await tab.goto(origin);
    for (const headers of [{}, { 'X-Sec-Purpose': 'prefetch' }]) {
      const init = JSON.stringify({ headers, redirect: 'manual' });
      const fetched = tab.evaluate(`fetch('/login', ${init}).then(({ type, status }) => [type, status])`);
      expect(await fetched).toEqual(['basic', 403]);
    }
    expect(await pendingIn(profile)).toEqual([]);
  });

  test('stays below 8 KB of cookies, with two strategies and many tabs', async () => {
    const world = await open({
      ...relative,
      routes: (app, { passport, service }) => {
        const second = new Strategy({ ...service.options, name: 'second', callbackURL: '/callback', scope: 'tm' });
        onTestFinished(() => second.close());
        passport.use(second as never);
        app.get('/login-second', passport.authenticate('second') as Handler);
        pages(app);
      },
    });
    const origin = openAt(world);
    const profile = await openProfile();
    const tab = await profile.tab();
    for (let count = 0; count < 12; count++) {
      for (const login of ['/login', '/login-second'])
        await tab.goto(`${origin}${login}?returnTo=/page/${count}?${'q'.repeat(600)}`);
      const header = (await profile.cookies()).map(({ name, value }) => `${name}=${value}`).join('; ');
      expect(header.length).toBeLessThan(8_000);
    }
    await tab.goto(`${origin}/page/last`);
    await profile.approve(tab);
    await profile.shows(tab, `${origin}/page/last`, '/page/last');
  });

  test('succeeds although a sibling host has planted a cookie that counts rounds, new or old', async () => {
    const plant = new PlantPage();
    await loggedIn({ ...relative, before: plant.mount });
    const origin = openAt(world, 'app.example.test');
    await plant.arm(world);
    const profile = await openProfile();
    const tab = await profile.tab();
    await tab.goto(`${origin.replace('app.', 'evil.')}/plant`);
    for (let time = 0; time < 4; time++) {
      await tab.goto(`${origin}/page/${time}`);
      await profile.approve(tab);
      await profile.shows(tab, `${origin}/page/${time}`, `/page/${time}`);
      expect((await profile.cookies()).some(({ domain }) => domain === '.example.test')).toBe(true);
      await profile.forget('connect.sid');
      if (time === 1) clock.advance(61);
    }
  });
}
