import session from 'express-session';
import { apiClient, requireAuthorization } from 'passport-oauth-app';
import { describe, expect } from 'vitest';
import { Browser, type Page } from '../support/browser.js';
import { test } from '../support/fixture.js';
import { type Handler, sendJson, type World } from '../support/world.js';

const html = { headers: { accept: 'text/html' } };

/** A browser that keeps no cookie of express-session: it was not set, or is not sent. */
class ForgetfulBrowser extends Browser {
  override async visit(...args: Parameters<Browser['visit']>): Promise<Page> {
    const page = await super.visit(...args);
    this.cookies(args[0]).delete('connect.sid');
    return page;
  }
}

/** Follows redirects, and approves each authorization request, until an answer is no redirect. */
async function goRound(world: World, browser: Browser, path: string): Promise<{ page: Page; rounds: number }> {
  let page = await browser.visit(`${world.url}${path}`, html);
  for (let rounds = 0; rounds <= 5; ) {
    const location = page.headers.get('location');
    if (page.status !== 302 || !location) return { page, rounds };
    const isService = location.startsWith(world.service.options.authUrl);
    if (isService) rounds += 1;
    const next = isService ? await world.service.approve(location) : new URL(location, world.url).href;
    page = await browser.visit(next, html);
  }
  throw new Error('It never ends');
}

describe('a login that leads nowhere', { meta: { threats: [60] } }, () => {
  test('because the session cookie is dropped ends in an error after three rounds, and leaves no grant', async ({
    startWorld,
  }) => {
    const world = await startWorld();
    const { page, rounds } = await goRound(world, new ForgetfulBrowser(), '/projects');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(rounds).toBeLessThanOrEqual(3);
    expect(page.json().message).toContain('session cookie');
    expect(world.grantKeys()).toEqual([]);
  });

  test('because the session cookie is SameSite=Strict names that cause', async ({ startWorld }) => {
    const world = await startWorld({ session: { cookie: { sameSite: 'strict' } } });
    const { page } = await goRound(world, new ForgetfulBrowser(), '/projects');
    expect(page.json()).toMatchObject({ code: 'ERR_LOGIN_LOOP', message: expect.stringContaining('sameSite to lax') });
    expect(world.grantKeys()).toEqual([]);
  });

  test('because a secure cookie is never set over http is reported before any consent', async ({
    startWorld,
    browser,
  }) => {
    const world = await startWorld({ session: { cookie: { secure: true } } });
    const page = await browser.visit(`${world.url}/login`);
    expect(page.json()).toMatchObject({ code: 'ERR_SESSION_COOKIE', message: expect.stringContaining('trust proxy') });
    expect(world.service.requests).toEqual([]);
  });

  test('because a secure cookie lacks trust proxy behind https names that cause', async ({ startWorld, browser }) => {
    const world = await startWorld({
      session: { cookie: { secure: true } },
      before: (app) =>
        app.use((req, _res, next) => {
          req.headers['x-forwarded-proto'] = 'https';
          next();
        }),
    });
    const { page, rounds } = await goRound(world, browser, '/projects');
    expect(page.json()).toMatchObject({ code: 'ERR_LOGIN_LOOP', message: expect.stringContaining('trust proxy') });
    expect(rounds).toBeLessThanOrEqual(3);
    expect(world.grantKeys()).toEqual([]);
  });

  test('because apiClient stands before the session is reported before any consent', async ({
    startWorld,
    browser,
  }) => {
    const world: World = await startWorld({
      withoutApiClient: true,
      before: (app) => app.use((req, res, next) => apiClient(world.strategy)(req, res, next)),
    });
    const page = await browser.visit(`${world.url}/login`);
    expect([page.status, page.json().code]).toEqual([500, 'ERR_MIDDLEWARE_ORDER']);
    expect(page.json().message).toContain('then passport.session(), then apiClient(strategy)');
  });

  test.for([
    ['its own login route', '/login', 'login'],
    ['the callback route', '/guarded', 'callback'],
  ] as const)(
    'because the guard stands before %s says so at once',
    async ([, start, route], { startWorld, browser }) => {
      const store = new session.MemoryStore();
      const guard = requireAuthorization({ login: '/login' }) as Handler;
      const world: World = await startWorld({
        session: { store },
        before: (app) => {
          const early = session({ secret: 'session secret', resave: false, saveUninitialized: false, store });
          app.use(`/${route}`, early as unknown as Handler);
          app.use(`/${route}`, (req, res, next) => apiClient(world.strategy)(req, res, next));
          app.use(`/${route}`, guard);
        },
        routes: (app) => app.get('/guarded', guard, (_req, res) => sendJson(res, {})),
      });
      const { page, rounds } = await goRound(world, browser, start);
      expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
      expect(page.json().message).toContain(`before the ${route} route`);
      expect(rounds).toBeLessThanOrEqual(1);
      expect(world.grantKeys()).toEqual([]);
    },
  );

  test('because failureRedirect leads to the login route ends in an error after three rounds', async ({
    startWorld,
    browser,
  }) => {
    const world = await startWorld({
      verify: (_a: string, _r: string, _p: object, done: (error: null, user: false) => void) => done(null, false),
      authenticate: { failureRedirect: '/login' },
    });
    const { page, rounds } = await goRound(world, browser, '/login');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(page.json().message).toContain('failureRedirect leads to the login route');
    expect(rounds).toBeLessThanOrEqual(3);
    expect(world.stored()).toEqual([]);
  });
});

describe('logins that are no loop', () => {
  test('are not counted: a user who logs out and in again from the same page', async ({ startWorld, browser }) => {
    const world = await startWorld();
    for (let time = 0; time < 6; time++) {
      const { page, rounds } = await goRound(world, browser, '/projects');
      expect([page.status, rounds]).toEqual([200, 1]);
      await browser.visit(`${world.url}/logout`, { method: 'POST' });
    }
  });

  test('are not counted: eight tabs that log in one after the other', async ({ startWorld, browser }) => {
    const world = await startWorld();
    const callbacks: string[] = [];
    for (let tab = 0; tab < 8; tab++) callbacks.push(await world.begin(browser, {}, `/login?returnTo=/page-${tab}`));
    for (const callback of callbacks) expect((await browser.visit(callback)).status).toBe(302);
    expect((await browser.visit(`${world.url}/login?returnTo=/more`)).status).toBe(302);
    expect((await browser.visit(`${world.url}/projects`)).status).toBe(200);
    expect([...browser.cookies(world.url).keys()].filter((name) => name.includes('rounds'))).toEqual([]);
  });

  test('are not counted: a user who declines again and again', async ({ startWorld, browser }) => {
    const world = await startWorld({ authenticate: { failureRedirect: '/declined' } });
    for (let time = 0; time < 6; time++) {
      const callback = await world.begin(browser, { decline: true }, '/login?returnTo=/page');
      expect((await browser.visit(callback)).headers.get('location')).toBe('/declined');
    }
  });
});
