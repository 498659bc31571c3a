import { once } from 'node:events';
import { connect as connectHttp2, createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import connect from 'connect';
import session from 'express-session';
import passportModule from 'passport';
import { type AuthenticateOptions, apiClient, memoryTokenStore, type Profile, Strategy } from 'passport-oauth-app';
import { startEmulator } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { addStrategy } from '../support/add-strategy.js';
import { logInLocally, logOutLocally } from '../support/application-parts.js';
import { inFrame } from '../support/framed.js';
import { browser, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { grantKeys, references, stored } from '../support/session-entries.js';
import { tellOutcome } from '../support/tell-outcome.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { warnings } from '../support/warnings.js';
import { byUser, type Handler, type Req, sendJson, type World, type WorldOptions } from '../support/world.js';

type Done = (error: unknown, user?: unknown) => void;

describe('a login under another host name than that of its callback', () => {
  test('tells both names in its 403, and warns once in production', async () => {
    await open();
    const told = warnings('ERR_LOGIN_HOST');
    // As supertest does, which reaches an application by 127.0.0.1.
    const origin = world.url.replace('127.0.0.1', 'localhost');
    await visit(`${origin}/login`);
    await new Promise(setImmediate);
    expect(told).toEqual([]);

    vi.stubEnv('NODE_ENV', 'production');
    onTestFinished(() => void vi.unstubAllEnvs());
    const { port } = new URL(world.url);
    const begun = await visit(`${origin}/login`);
    const message = expect.stringMatching(new RegExp(`begun at localhost:${port}.*leads to 127.0.0.1:${port}`));
    await until(() => expect(told).toMatchObject([{ message }]));
    const callback = await world.service.approve(String(begun.headers.get('location')));
    expect((await visit(callback)).status).toBe(403);
    expect(told).toHaveLength(1);
  });

  test('tells them in the info of the failure, and warns of it once', async () => {
    await open({ callback: tellOutcome });
    const told = warnings('ERR_LOGIN_HOST');
    const { port } = new URL(world.url);
    const begun = await visit(`${world.url.replace('127.0.0.1', 'localhost')}/login`);
    const page = await visit(await world.service.approve(String(begun.headers.get('location'))));
    const message = `This login was begun at localhost:${port} and came back to 127.0.0.1:${port}, where the browser does not send its cookie. Open the application at 127.0.0.1:${port}.`;
    expect(page.json()).toEqual({ error: null, user: false, status: 403, info: { message } });
    await until(() => expect(told).toMatchObject([{ message }]));
  });
});

describe('small edges of a login', () => {
  const options = {
    ...{ authUrl: 'https://a.example', baseUrl: 'https://b.example' },
    ...{ clientID: 'id', clientSecret: 's', callbackURL: '/callback', scope: 'tm' },
  };

  test.for(['session', 'flash'])('the name %s is refused: Passport and connect-flash use it', (name) => {
    expect(() => new Strategy({ ...options, name })).toThrow(expect.objectContaining({ option: 'name' }));
  });

  test('a relative callbackURL is resolved against :authority over HTTP/2', async () => {
    const { service } = await open();
    const passport = new passportModule.Passport();
    const strategy = new Strategy({ ...service.options, callbackURL: '/callback', scope: 'tm' });
    passport.use(strategy as passportModule.Strategy);
    const app = connect();
    app.use(session({ secret: 'session secret', resave: false, saveUninitialized: false }) as never);
    app.use(apiClient(strategy) as never);
    app.use(passport.authenticate('oauth-app') as never);
    const server = createServer((req, res) => app(req as never, res as never));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const client = connectHttp2(`http://127.0.0.1:${port}`);
    onTestFinished(async () => {
      client.close();
      server.close();
      await strategy.close();
    });
    const stream = client.request({ ':path': '/login', ':authority': 'app.example:8443' });
    const [headers] = await once(stream, 'response');
    expect(headers[':status']).toBe(302);
    const redirectUri = new URL(String(headers.location)).searchParams.get('redirect_uri');
    expect(redirectUri).toBe('http://app.example:8443/callback');
  });

  test(
    'one path is for login and callback, and ends if the service sends browsers back with nothing',
    threats(122),
    async () => {
      await open({
        strategy: { callbackURL: 'http://app.example/auth' },
        routes: (app, { passport }) => {
          const options = { successRedirect: '/', failureRedirect: '/declined' };
          app.get('/auth', passport.authenticate('oauth-app', options) as Handler);
        },
      });
      const begun = await browser.visit(`${world.url}/auth`);
      expect([begun.status, begun.headers.get('location')]).toEqual([
        302,
        expect.stringContaining('/oauth/authorize?'),
      ]);
      world.register('http://app.example/auth');
      const callback = await world.service.approve(String(begun.headers.get('location')));
      const end = await browser.visit(callback.replace('http://app.example', world.url));
      expect([end.status, end.headers.get('location')]).toEqual([302, '/']);
      const statuses: number[] = [];
      for (let round = 0; round < 8; round++) statuses.push((await visit('/auth')).status);
      expect(statuses).toContain(500);
      expect(world.errors.at(-1)).toMatchObject({
        code: 'ERR_LOGIN_LOOP',
        message: expect.stringContaining('callbackURL'),
      });
      const click = { headers: { 'sec-fetch-site': 'same-origin' } };
      for (let round = 0; round < 8; round++) expect((await visit('/auth', click)).status).toBe(302);
    },
  );

  test('a login route whose path is the end of the callback path begins logins, and redirects as it says', async () => {
    await open({
      strategy: { callbackURL: 'http://app.example/auth/login' },
      authenticate: { failureRedirect: '/declined' },
    });
    expect((await visit('/login')).headers.get('location')).toContain('/oauth/authorize?');
  });

  test('data travels with a login, for each tab its own, to verify and to req.authInfo', threats(121), async () => {
    const seen: unknown[] = [];
    await open({
      strategy: { passReqToCallback: true } as object,
      verify: (req: Req, _a: string, _r: string, profile: { id: string }, done: (...args: unknown[]) => void) => {
        seen.push(req.authInfo);
        done(null, { id: profile.id }, { message: 'hello' });
      },
      routes: (app, { passport }) =>
        app.get('/join/:role', (req, res, next) => {
          const role = String(Reflect.get(Reflect.get(req, 'params'), 'role'));
          const options: AuthenticateOptions = { state: { role }, session: true, failureRedirect: '/declined' };
          (passport.authenticate('oauth-app', options) as Handler)(req, res, next);
        }),
      callback:
        ({ passport }) =>
        (req, res, next) =>
          (passport.authenticate('oauth-app') as Handler)(req, res, (error) =>
            error ? next(error) : sendJson(res, req.authInfo),
          ),
    });
    const [buyer, seller] = [
      await world.begin(browser, {}, '/join/buyer'),
      await world.begin(browser, {}, '/join/seller'),
    ];
    for (const [callback, role] of [
      [seller, 'seller'],
      [buyer, 'buyer'],
    ] as const)
      expect((await browser.visit(callback)).json()).toEqual({ message: 'hello', state: { role } });
    expect(seen).toEqual([{ state: { role: 'seller' } }, { state: { role: 'buyer' } }]);
    expect((await browser.visit(await world.begin(browser))).json()).toEqual({ message: 'hello' });
    expect((await visit(`/join/${'x'.repeat(500)}`)).json()).toMatchObject({
      code: 'ERR_CONFIGURATION',
      message: expect.stringMatching(/^state: /),
    });
  });

  test('two services with one callback URL are refused before the browser leaves', threats(123), async () => {
    await open();
    const other = await startEmulator();
    onTestFinished(() => other.close());
    const twin = new Strategy({ ...other.options, name: 'other', callbackURL: `${world.url}/callback`, scope: 'tm' });
    const refused = await visit('/login');
    expect([refused.status, refused.json().code]).toEqual([500, 'ERR_SHARED_CALLBACK']);
    await twin.close();
    expect((await visit('/login')).status).toBe(302);
  });

  test('an empty X-Forwarded-Host is skipped, and a senseless Host is answered with 400', async () => {
    await open({ strategy: { callbackURL: '/callback' }, before: (app) => app.set('trust proxy', true) });
    const redirectUri = async (headers: Record<string, string>) => {
      const { status, headers: answer } = await rawRequest(world.url, '/login', { headers });
      return status === 302 ? new URL(String(answer.location)).searchParams.get('redirect_uri') : status;
    };
    expect(await redirectUri({ 'x-forwarded-host': '' })).toBe(`${world.url}/callback`);
    expect(await redirectUri({ host: 'a b' })).toBe(400);
    expect(await redirectUri({ 'x-forwarded-host': 'evil.example/path' })).toBe(400);
    expect(world.errors).toEqual([]);
  });

  test('userProfile adds to the profile, and changes nothing that the token says', async () => {
    const more = JSON.parse(
      '{"id":"admin","provider":"x","claims":{},"organizationDomain":"y","name":"Ada","__proto__":{"isAdmin":true}}',
    );
    const seen: Profile[] = [];
    await open({
      strategy: { userProfile: async () => more },
      verify: (_a: string, _r: string, profile: Profile, done: Done) => {
        seen.push(profile);
        done(null, { id: profile.id });
      },
    });
    await logIn();
    expect(seen[0]).toMatchObject({ id: '1', provider: 'oauth-app', name: 'Ada', claims: { sub: '1' } });
    expect(seen[0]?.organizationDomain).toBeUndefined();
    expect(Object.keys(seen[0] ?? {})).not.toContain('__proto__');
    expect(Reflect.get(seen[0] ?? {}, 'isAdmin')).toBeUndefined();
  });

  test('options of passport.authenticate that have no effect are reported once', async () => {
    await open({ authenticate: { display: 'popup', prompt: 'consent' } });
    const told = warnings('ERR_IGNORED_OPTION');
    for (let time = 0; time < 3; time++) expect((await rawRequest(world.url, '/login')).status).toBe(302);
    const words = [expect.stringContaining('the option display'), expect.stringContaining('the option prompt')];
    expect(told.map(({ message }) => message)).toEqual(words);
  });

  test('methods of OAuth2Strategy that nothing calls are refused, also if they are set later', async () => {
    const error = { name: 'ConfigurationError', option: 'authorizationParams', code: 'ERR_CONFIGURATION' };
    class Hooked extends Strategy {
      authorizationParams() {
        return { prompt: 'consent' };
      }
    }
    expect(() => new Hooked(options)).toThrow(expect.objectContaining(error));
    await open(inFrame());
    Object.assign(world.strategy, { authorizationParams: () => ({}) });
    const statuses: number[] = [];
    for (const path of ['/?state=x', '/login', '/login']) statuses.push((await visit(path)).status);
    Reflect.deleteProperty(world.strategy, 'authorizationParams');
    expect([...statuses, (await visit('/login')).status]).toEqual([200, 500, 500, 302]);
    expect(world.errors).toMatchObject([error, error]);
  });

  test('a client secret is replaced without ending a login', async () => {
    const callbackURL = 'http://app.example/callback';
    const { service } = await open();
    service.register({ clientID: service.options.clientID, redirectUrls: [callbackURL] });
    const { clientSecret } = service.options;
    const withSecret = (secret: string | string[]) =>
      open({ running: service, strategy: { callbackURL, clientSecret: secret } });
    const [former, overlap] = [await withSecret('former secret'), await withSecret([clientSecret, 'former secret'])];
    const without = await withSecret(clientSecret);
    const { search } = new URL(await former.begin(browser));
    for (const [name, value] of browser.cookies(former.url)) {
      browser.cookies(overlap.url).set(name, value);
      browser.cookies(without.url).set(name, value);
    }
    expect((await visit(`${without.url}/callback${search}`)).status).toBe(403);
    expect((await visit(`${overlap.url}/callback${search}`)).status).toBe(302);
    expect(service.requests.at(-1)?.body).toMatchObject({ client_secret: clientSecret });
  });

  test('session: false leaves no session that holds only a page', async () => {
    await open({
      strategy: { grantId: byUser },
      callback: ({ passport }) =>
        passport.authenticate('oauth-app', { session: false, successRedirect: '/done' }) as Handler,
    });
    const callback = await world.begin(browser, {}, '/login?returnTo=/reports');
    expect((await visit(callback)).headers.get('location')).toBe('/done');
    expect(stored(world).filter(([, entry]) => !('grant' in entry))).toEqual([]);
  });
});

describe("the application's own req.logout()", () => {
  const routes = (options: object): WorldOptions => ({
    routes: (app) =>
      app.get('/leave', (req, res, next) =>
        req.logout(options as never, (error) => (error ? next(error) : sendJson(res, {}))),
      ),
  });

  test.for([
    ['', {}],
    [' with keepSessionInfo', { keepSessionInfo: true }],
  ] as const)('%s deletes the grant', async ([, options]) => {
    await open(routes(options));
    await logIn();
    const { grantId } = await whoami();
    expect((await visit('/leave')).status).toBe(200);
    expect([grantKeys(world), references(world)]).toEqual([[], []]);
    expect((await whoami()).authorized).toBe(false);
    await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
  });

  test('leaves a grant under an id of the application where it is', async () => {
    await open({ ...routes({}), strategy: { grantId: byUser } });
    await logIn();
    await visit('/leave');
    expect(grantKeys(world)).toHaveLength(1);
  });
});

describe('the login route', threats(62, 76), () => {
  test.for([
    ['a prefetch by Turbo', { 'x-sec-purpose': 'prefetch' }, 503],
    [
      "a prefetch by Turbo, as browsers send a script's requests",
      { 'x-sec-purpose': 'prefetch', 'sec-fetch-dest': 'empty' },
      403,
    ],
    ["a script's fetch", { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'cors' }, 403],
  ] as const)('begins no login for %s', async ([, headers, status]) => {
    await open();
    const answer = await rawRequest(world.url, '/login', { headers });
    expect([answer.status, answer.headers['set-cookie'], answer.headers.location]).toEqual([
      status,
      undefined,
      undefined,
    ]);
  });

  test('begins a login for a page whose request a service worker passes on, as Chromium sends it', async () => {
    await open();
    const headers = { 'sec-fetch-dest': 'empty', 'sec-fetch-mode': 'navigate', 'sec-fetch-site': 'same-origin' };
    const answer = await rawRequest(world.url, '/login', { headers });
    expect([answer.status, answer.headers.location]).toEqual([302, expect.stringContaining(world.service.authUrl)]);
  });

  test("answers a script's request itself, with what to do, and a decline by its failureRedirect, under Connect too", async () => {
    await open({ framework: 'connect', authenticate: { failureRedirect: '/declined' } });
    const answer = await rawRequest(world.url, '/login', { headers: { 'sec-fetch-dest': 'empty' } });
    expect([answer.status, answer.headers.location]).toEqual([403, undefined]);
    expect(answer.text).toContain('Begin the login with a link to this route');
    const declined = await visit(await world.begin(browser, { decline: true }));
    expect([declined.status, declined.headers.get('location')]).toEqual([302, '/declined']);
  });

  test('adds the authorizationParams of one route to those of the strategy', async () => {
    const consent = { authorizationParams: { prompt: 'consent', audience: 'b' } } as object;
    await open({
      strategy: { authorizationParams: { audience: 'a', display: 'page' } },
      routes: (app, { passport }) => {
        app.get('/again', passport.authenticate('oauth-app', consent) as Handler);
        app.get(
          '/wrong',
          passport.authenticate('oauth-app', { authorizationParams: { state: 'mine' } } as object) as Handler,
        );
      },
    });
    const params = async (path: string) => {
      const { headers } = await visit(path);
      const { searchParams } = new URL(String(headers.get('location')));
      return ['prompt', 'audience', 'display'].map((name) => searchParams.get(name));
    };
    expect(await params('/again')).toEqual(['consent', 'b', 'page']);
    expect(await params('/login')).toEqual([null, 'a', 'page']);
    const page = await visit('/wrong');
    expect([page.status, page.json().message]).toEqual([500, expect.stringContaining('got state')]);
  });

  test('may have the end of the path of callbackURL', async () => {
    const callbackURL = 'http://app.example/auth/login';
    await open({ strategy: { callbackURL } });
    world.register(callbackURL);
    const page = await browser.visit(`${world.url}/login`);
    const { searchParams } = new URL(String(page.headers.get('location')));
    expect([page.status, searchParams.get('redirect_uri')]).toEqual([302, callbackURL]);
  });

  test('over http tells the reason where the callback comes back over https', async () => {
    const callbackURL = 'https://app.example/callback';
    await open({
      strategy: { callbackURL },
      callback: tellOutcome,
    });
    world.register(callbackURL);
    const comeBack = async (headers: Record<string, string>) => {
      const begun = await rawRequest(world.url, '/login', { headers: { host: 'app.example', ...headers } });
      const { search } = new URL(await world.service.approve(String(begun.headers.location)));
      // Without cookies: a browser keeps none that is Secure and came over http.
      return (await browser.visit(`${world.url}/callback${search}`)).json();
    };
    const refusal = { status: 403, info: { message: expect.stringContaining('begun over http,') } };
    expect(await comeBack({})).toMatchObject(refusal);
    const { info } = await comeBack({ 'x-forwarded-proto': 'https' });
    expect(info.message).not.toContain('begun over http,');
  });
});

describe('a callback that two strategies share', () => {
  const shared = (options: object): WorldOptions => ({
    callback: (world) => {
      addStrategy(world, 'second');
      return world.passport.authenticate(['oauth-app', 'second'], { successRedirect: '/', ...options }) as Handler;
    },
    routes: (app, { passport }) => {
      app.get('/login-second', passport.authenticate('second') as Handler);
      app.get('/leave', logOutLocally);
    },
  });

  test('logs in with the one that has begun the login, also for a user of the other', async () => {
    await open(shared({}));
    await logIn('1');
    const callback = await world.begin(browser, { user: '2' }, '/login-second');
    expect((await visit(callback)).headers.get('location')).toBe('/');
    const me = await whoami();
    expect(me).toMatchObject({ user: { id: '2' }, session: { second: expect.any(String) } });
  });

  test('counts no login of the one as a failure of the other', async () => {
    await open(shared({ failureRedirect: '/login' }));
    await visit('/login');
    for (let time = 0; time < 4; time++) {
      const page = await visit(await world.begin(browser, {}, '/login-second'));
      expect([page.status, page.headers.get('location')]).toEqual([302, '/']);
      await visit('/leave');
    }
  });
});

describe('a login of the application itself', () => {
  test('deletes the grant that was connected before it: no session refers to it', async () => {
    await open({
      callback: ({ passport }) => passport.authorize('oauth-app', {}) as Handler,
      routes: (app) => {
        app.use('/callback', (_req, res) => sendJson(res, {}));
        app.get('/local-login', logInLocally('local'));
      },
    });
    await logIn();
    expect(grantKeys(world)).toHaveLength(1);
    await visit('/local-login');
    await until(() => expect(grantKeys(world)).toEqual([]));
    expect(await whoami()).toMatchObject({ user: { id: 'local' }, authorized: false });
  });

  test('leaves no session.returnTo behind where successRedirect leads elsewhere', async () => {
    await open({ authenticate: { successRedirect: '/fixed', successReturnToOrRedirect: undefined } });
    const page = await visit(await world.begin(browser, {}, '/login?returnTo=/reports'));
    expect(page.headers.get('location')).toBe('/fixed');
    expect((await whoami()).session).not.toHaveProperty('returnTo');
  });
});

describe('sessions of other kinds', () => {
  /** Sessions of an application's own make. */
  const own = (create: (saved: object) => object, saved: Record<string, unknown>, isCookie = false): WorldOptions => ({
    session: false,
    strategy: { tokenStore: memoryTokenStore() },
    before: (app) =>
      app.use((req, res, next) => {
        const session = create(saved);
        Object.assign(req, { session });
        const { end } = res;
        const endAndSave = (...args: unknown[]) => {
          for (const name of Object.keys(saved)) delete saved[name];
          Object.assign(saved, session);
          return Reflect.apply(end, res, args);
        };
        if (isCookie) Object.assign(res, { end: endAndSave });
        next();
      }),
  });

  test('keep their own save where they have no regenerate', async () => {
    const saved: Record<string, unknown> = {};
    const create = () => {
      const session: object = { ...saved };
      const save = (done?: () => void) => {
        for (const name of Object.keys(saved)) delete saved[name];
        Object.assign(saved, session);
        done?.();
      };
      return Object.defineProperty(session, 'save', { value: save, configurable: true, writable: true });
    };
    await open(own(create, saved));
    expect((await logIn()).status).toBe(302);
    expect(saved).toMatchObject({ 'oauth-app': expect.any(String), passport: { user: { id: '1' } } });
    expect((await projects()).status).toBe(200);
  });

  test('that Passport cannot log in with (iron-session) end in an error before the login begins', async () => {
    const create = () => Object.defineProperties({}, { save: { value: async () => {} }, destroy: { value: () => {} } });
    await open(own(create, {}));
    for (const path of ['/login', `/callback?code=a&state=${'A'.repeat(43)}`]) {
      const page = await visit(path);
      expect([page.status, page.json().code]).toEqual([500, 'ERR_SESSION_TYPE']);
    }
    expect(world.service.requests).toEqual([]);
  });

  test("delete the grant with the application's own req.logout() where they have no methods at all (cookie-session)", async () => {
    await open({
      ...own((saved) => ({ ...saved }), {}, true),
      routes: (app) => app.get('/leave', logOutLocally),
    });
    await logIn();
    const { grantId } = await whoami();
    expect((await visit('/leave')).status).toBe(200);
    await expect(world.strategy.client(grantId).accessToken()).rejects.toMatchObject({ status: 401 });
    expect(await whoami()).toMatchObject({ authorized: false, session: {} });
  });

  test('whose regenerate takes other arguments get them', async () => {
    const seen: unknown[] = [];
    await open({
      callback:
        ({ passport }: World): Handler =>
        (req, res, next) => {
          const { regenerate } = req.session;
          const value = function (this: typeof req.session, done: Done, reason: string) {
            seen.push(reason);
            return regenerate.call(this, done);
          };
          Object.defineProperty(req.session, 'regenerate', { value, configurable: true });
          const logIn = (user: object, _options: object, done: Done) =>
            Reflect.apply(Reflect.get(req.session, 'regenerate'), req.session, [
              () => Object.assign(req.session, { passport: { user } }).save(done),
              'a login',
            ]);
          Object.assign(req, { logIn, login: logIn });
          passport.authenticate('oauth-app', { successRedirect: '/' })(req, res, next);
        },
    });
    await logIn();
    expect(seen).toEqual(['a login']);
    expect((await projects()).status).toBe(200);
  });
});
