import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import session from 'express-session';
import { apiClient, requireAuthorization } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test } from 'vitest';
import { logOutLocally } from '../support/application-parts.js';
import { Browser, type Page } from '../support/browser.js';
import { browser, clock, loggedIn, open, projects, visit, world } from '../support/one-world.js';
import { ForgetfulBrowser, roundsOf } from '../support/rounds.js';
import { grantKeys, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { byUser, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

const html = { headers: { accept: 'text/html' } };

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

describe('a login that leads nowhere', threats(60), () => {
  test('because the session cookie is dropped ends in an error after three rounds, and leaves no grant', async () => {
    await open();
    const { page, rounds } = await goRound(world, new ForgetfulBrowser(), '/projects');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(rounds).toBeLessThanOrEqual(3);
    expect(page.json().message).toContain('session cookie');
    expect(grantKeys(world)).toEqual([]);
  });

  test('leaves the grant under an id of the application: other browsers of the user have it too', async () => {
    await open({ strategy: { grantId: (_req, user) => String(Reflect.get(user, 'id')) } });
    const { page } = await goRound(world, new ForgetfulBrowser(), '/projects');
    expect(page.json().code).toBe('ERR_LOGIN_LOOP');
    await world.strategy.close();
    expect(grantKeys(world)).toHaveLength(1);
  });

  test('because the session cookie is SameSite=Strict names that cause', async () => {
    await open({ session: { cookie: { sameSite: 'strict' } } });
    const { page } = await goRound(world, new ForgetfulBrowser(), '/projects');
    expect(page.json()).toMatchObject({ code: 'ERR_LOGIN_LOOP', message: expect.stringContaining('sameSite to lax') });
    expect(grantKeys(world)).toEqual([]);
  });

  test.each([{}, { grantId: byUser }])(
    'because a secure cookie is never set over http is reported before any consent (%j)',
    async (strategy) => {
      await open({ strategy, session: { cookie: { secure: true } } });
      const page = await visit('/login');
      expect(page.json()).toMatchObject({
        code: 'ERR_SESSION_COOKIE',
        message: expect.stringContaining('trust proxy'),
      });
      expect(world.service.requests).toEqual([]);
    },
  );

  test('because a secure cookie lacks trust proxy behind https names that cause', async () => {
    await open({
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
    expect(grantKeys(world)).toEqual([]);
  });

  test('because apiClient stands before the session is reported before any consent', async () => {
    await open({
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
  ] as const)('because the guard stands before %s says so at once', async ([, start, route]) => {
    const store = new session.MemoryStore();
    const guard = requireAuthorization({ login: '/login' }) as Handler;
    await open({
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
    expect(grantKeys(world)).toEqual([]);
  });

  test('because failureRedirect leads to the login route ends in an error after three rounds', async () => {
    await open({
      verify: (_a: string, _r: string, _p: object, done: (error: null, user: false) => void) => done(null, false),
      authenticate: { failureRedirect: '/login' },
    });
    const { page, rounds } = await goRound(world, browser, '/login');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(page.json().message).toContain('failureRedirect leads to the login route');
    expect(rounds).toBeLessThanOrEqual(3);
    expect(stored(world)).toEqual([]);
  });
});

/** Starts processes of one application behind a proxy that sends each request to the next one. */
async function openBalanced(count: number, store?: session.MemoryStore): Promise<World> {
  const targets: string[] = [];
  let turn = 0;
  const proxy = createServer((req, res) => {
    const { hostname, port } = new URL(targets[turn++ % count] ?? '');
    const options = { hostname, port, path: req.url, method: req.method, headers: req.headers, agent: false };
    req.pipe(
      request(options, (answer) => {
        res.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
        answer.pipe(res);
      }),
    );
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  const service = await startEmulator();
  onTestFinished(() => service.close());
  service.register({ clientID: service.options.clientID, redirectUrls: [`${url}/callback`] });
  for (let process = 0; process < count; process++) {
    const options = {
      running: service,
      strategy: { callbackURL: `${url}/callback` },
      ...(store && { session: { store } }),
    };
    targets.push((await open(options)).url);
  }
  return Object.create(world, { service: { value: service }, url: { value: url } });
}

describe('sessions in the memory of one of several processes', threats(118), () => {
  test.for([2, 3, 5])('end in an error that says so, with %d processes', async (count) => {
    const balanced = await openBalanced(count);
    const { page, rounds } = await goRound(balanced, new Browser(), '/projects');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(page.json().message).toContain('sessions live in the memory of one of several processes');
    expect(rounds).toBeLessThanOrEqual(4);
  });

  test('are no such error if all processes share them, in 200 logins of one browser', {
    timeout: 120_000,
  }, async () => {
    const balanced = await openBalanced(2, new session.MemoryStore());
    const browser = new Browser();
    for (let time = 0; time < 200; time++) {
      const { page, rounds } = await goRound(balanced, browser, '/projects');
      expect([page.status, rounds]).toEqual([200, 1]);
      // Without a logout that this package sees.
      browser.cookies(balanced.url).delete('connect.sid');
    }
  });
});

describe('a login whose session comes back, and whose grant is not found', threats(72), () => {
  test('because grantId gives another id for the user of deserializeUser ends in an error that names the cause', async () => {
    await open({
      strategy: { grantId: (_req, user) => String(Reflect.get(user, 'id') ?? Reflect.get(user, 'name')) },
      routes: (_app, { passport }) => {
        Reflect.set(passport, '_deserializers', []);
        passport.deserializeUser((_user, done) => done(null, { name: 'Ada' } as never));
      },
    });
    const { page, rounds } = await goRound(world, browser, '/projects');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(page.json().message).toMatch(/grantId returns another id for the user of deserializeUser/);
    expect(rounds).toBeLessThanOrEqual(4);
  });

  test('because deserializeUser refuses the user ends in an error that names the cause', async () => {
    await open({
      routes: (_app, { passport }) => {
        Reflect.set(passport, '_deserializers', []);
        passport.deserializeUser((_user, done) => done(null, false));
      },
    });
    const { page, rounds } = await goRound(world, browser, '/projects');
    expect([page.status, page.json().code]).toEqual([500, 'ERR_LOGIN_LOOP']);
    expect(page.json().message).toContain('deserializeUser refuses the user');
    expect(rounds).toBeLessThanOrEqual(3);
  });
});

describe('a cookie that counts rounds and that a sibling host has planted', threats(71), () => {
  test.for([
    ['that is new, of another account', '2', 0],
    ['that is old, of the same account', '1', 61],
  ] as const)('%s, ends no login', async ([, user, seconds]) => {
    const browser = new Browser();
    await loggedIn();
    const { name, value } = await roundsOf(world, '1');
    const logIn = () => {
      // The end of the cookie that the application sends does not reach one of another domain.
      browser.cookies(world.url).set(name, value);
      return world.begin(browser, { user }, '/login?returnTo=/page').then((callback) => browser.visit(callback));
    };
    clock.advance(seconds);
    for (let time = 0; time < 5; time++) {
      expect((await logIn()).headers.get('location')).toBe('/page');
      expect((await browser.visit(`${world.url}/whoami`)).json().user.id).toBe(user);
      browser.cookies(world.url).delete('connect.sid');
    }
  });

  test('ends a login of the account that has made the rounds, once, and says what to do', async () => {
    await open();
    const { name, value } = await roundsOf(world);
    browser.cookies(world.url).set(name, value);
    const message = expect.stringContaining('delete its cookies');
    expect((await world.logIn(browser)).json()).toMatchObject({ code: 'ERR_LOGIN_LOOP', message });
    expect((await world.logIn(browser)).status).toBe(302);
  });

  test('is not read where the application has https', async () => {
    await open({ before: (app) => app.set('trust proxy', true) });
    const { name, value } = await roundsOf(world);
    browser.cookies(world.url).set(name, value);
    const overTls = { headers: { 'x-forwarded-proto': 'https' } };
    const begun = await browser.visit(`${world.url}/login?returnTo=/page`, overTls);
    expect(begun.status).toBe(302);
    const callback = await world.service.approve(String(begun.headers.get('location')));
    const page = await browser.visit(callback, overTls);
    const [line] = page.headers.getSetCookie().filter((each) => each.includes('rounds'));
    expect(line).toMatch(/^__Host-oauth-app\.rounds\..*; Path=\/; .*; Secure$/);
  });

  test('does not stop a loop from being noticed', async () => {
    await open();
    const browser = new ForgetfulBrowser();
    browser.cookies(world.url).set('oauth-app.rounds.aaaaaaaaaaa', 'rubbish');
    expect((await goRound(world, browser, '/projects')).page.json().code).toBe('ERR_LOGIN_LOOP');
  });
});

describe('a callback that fails and leads to the login route', threats(60), () => {
  const application: WorldOptions = {
    callback:
      ({ passport }) =>
      (req, res, next) =>
        (passport.authenticate('oauth-app', { failureRedirect: '/login' }) as Handler)(req, res, (error) =>
          error ? next(error) : sendJson(res, {}),
        ),
  };
  const logIn = (world: World, browser: Browser) =>
    world.begin(browser, {}, '/login?returnTo=/page').then((callback) => browser.visit(callback));
  const decline = (world: World, browser: Browser) => world.begin(browser, { decline: true }, '/login?returnTo=/other');
  const forge = ({ url }: World) => `${url}/callback?code=x&state=${'A'.repeat(43)}`;

  test.for([
    ['declines in other tabs', decline],
    ['opens links that another site has forged', forge],
  ] as const)('leaves the grant of a user who has just logged in, and who %s', async ([, failing]) => {
    await open(application);
    const callbacks: string[] = [];
    for (let tab = 0; tab < 3; tab++) callbacks.push(await failing(world, browser));
    expect((await logIn(world, browser)).status).toBe(200);
    const [grant] = grantKeys(world);
    const answers: number[] = [];
    for (const callback of callbacks) answers.push((await browser.visit(callback)).status);
    expect(answers).toEqual([302, 302, 500]);
    expect((await browser.visit(`${world.url}/whoami`)).json()).toMatchObject({ authorized: true, user: { id: '1' } });
    expect(grantKeys(world)).toEqual([grant]);
  });

  test('keeps in mind the grant of a session that is lost, which the next login discards', async () => {
    await open(application);
    const browser = new ForgetfulBrowser();
    expect((await logIn(world, browser)).status).toBe(200);
    const [lost] = grantKeys(world);
    expect((await browser.visit(await decline(world, browser))).status).toBe(302);
    expect(grantKeys(world)).toEqual([lost]);
    expect((await logIn(world, browser)).status).toBe(200);
    await until(() => expect(grantKeys(world)).not.toContain(lost));
    expect(grantKeys(world)).toHaveLength(1);
  });
});

describe('logins that are no loop', () => {
  test.for<[string, (world: World, browser: Browser) => Promise<unknown>]>([
    ['logout(strategy)', (world, browser) => browser.visit(`${world.url}/logout`, { method: 'POST' })],
    ["Passport's own logout", (world, browser) => browser.visit(`${world.url}/leave`)],
    [
      "Passport's own logout, and an end of the session cookie",
      async (world, browser) => {
        await browser.visit(`${world.url}/leave`);
        browser.cookies(world.url).delete('connect.sid');
      },
    ],
  ])('are not counted where apiClient stands at /api alone: five within a minute, with %s', async ([, leave]) => {
    await open({
      withoutApiClient: true,
      before: (app) => app.use('/api', (req, res, next) => apiClient(world.strategy)(req, res, next)),
      routes: (app) => app.get('/leave', logOutLocally),
    });
    for (let time = 0; time < 5; time++) {
      const callback = await world.begin(browser, {}, '/login?returnTo=/page');
      expect((await browser.visit(callback)).headers.get('location')).toBe('/page');
      await leave(world, browser);
    }
  });

  test('are counted anew after logout(strategy), also where the session cookie is lost', async () => {
    await open();
    const forgetful = new ForgetfulBrowser();
    const round = async () => {
      const { status } = await forgetful.visit(await world.begin(forgetful, {}, '/login?returnTo=/page'));
      await forgetful.visit(`${world.url}/page`);
      return status;
    };
    expect([await round(), await round()]).toEqual([302, 302]);
    await forgetful.visit(`${world.url}/logout`, { method: 'POST' });
    expect([await round(), await round(), await round()]).toEqual([302, 302, 500]);
  });

  test('are not counted: eight tabs that log in one after the other', async () => {
    await open();
    const callbacks: string[] = [];
    for (let tab = 0; tab < 8; tab++) callbacks.push(await world.begin(browser, {}, `/login?returnTo=/page-${tab}`));
    for (const callback of callbacks) expect((await visit(callback)).status).toBe(302);
    expect((await visit('/login?returnTo=/more')).status).toBe(302);
    expect((await projects()).status).toBe(200);
    expect([...browser.cookies(world.url).keys()].filter((name) => name.includes('rounds'))).toEqual([]);
  });

  test('are not counted: a user who declines again and again', async () => {
    await open({ authenticate: { failureRedirect: '/declined' } });
    for (let time = 0; time < 6; time++) {
      const callback = await world.begin(browser, { decline: true }, '/login?returnTo=/page');
      expect((await visit(callback)).headers.get('location')).toBe('/declined');
    }
  });
});
