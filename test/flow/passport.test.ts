import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { memoryTokenStore, type Profile } from '../../src/index.js';
import { logInLocally } from '../support/application-parts.js';
import { Browser } from '../support/browser.js';
import { browser, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { grantKeys, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { byUser, type Handler, type Req, sendJson, type WorldOptions } from '../support/world.js';

type Done = (error?: unknown, user?: unknown, info?: unknown) => void;
type Params = Record<string, unknown>;

/** Logs in; what the session then knows. */
async function logInAndAsk(user?: string) {
  const browser = new Browser();
  const page = await world.logIn(browser, user);
  return { page, me: await whoami(browser) };
}

describe('verify', () => {
  const isJwt = expect.stringMatching(/^[\w-]+\.[\w-]+\.[\w-]+$/);
  const isText = expect.stringMatching(/^\S{10,}$/);
  const isProfile = expect.objectContaining({ provider: 'oauth-app', id: '2', organizationDomain: 'acme' });
  const isRequest = expect.objectContaining({ url: expect.stringContaining('/callback?') });
  const isParams = expect.objectContaining({ token_type: 'bearer', expires_in: 7200 });

  test.each([
    ['four parameters', false, [isJwt, isText, isProfile]],
    ['five, the answer of the token endpoint among them', false, [isJwt, isText, isParams, isProfile]],
    ['the request before four', true, [isRequest, isJwt, isText, isProfile]],
    ['the request before five', true, [isRequest, isJwt, isText, isParams, isProfile]],
  ])('may have %s', async (_what, passReqToCallback, expected) => {
    const seen: unknown[][] = [];
    const answer = (args: unknown[]) => {
      seen.push(args.slice(0, -1));
      (args.at(-1) as Done)(null, { id: 'x' });
    };
    const arities: Record<string, (...args: never[]) => void> = {
      false3: (a: string, b: string, c: Profile, d: Done) => answer([a, b, c, d]),
      false4: (a: string, b: string, c: Params, d: Profile, e: Done) => answer([a, b, c, d, e]),
      true4: (a: Req, b: string, c: string, d: Profile, e: Done) => answer([a, b, c, d, e]),
      true5: (a: Req, b: string, c: string, d: Params, e: Profile, f: Done) => answer([a, b, c, d, e, f]),
    };
    await open({ strategy: { passReqToCallback }, verify: arities[`${passReqToCallback}${expected.length}`] });
    const { me } = await logInAndAsk('2');
    expect(me.user).toEqual({ id: 'x' });
    expect(seen).toEqual([expected]);
  });

  test('may be left out: the profile is the user then', async () => {
    await open({ verify: undefined });
    const { me } = await logInAndAsk('2');
    expect(me.user).toMatchObject({ provider: 'oauth-app', id: '2', organizationDomain: 'acme', claims: { sub: '2' } });
  });

  test.each([
    ['false', false],
    ['null', null],
    ['nothing', undefined],
  ])('that gives %s for a user fails the login, and keeps no grant', async (_what, user) => {
    await open({
      verify: (_a: string, _r: string, _p: Profile, done: Done) => done(null, user, { message: 'Not you' }),
    });
    const { page, me } = await logInAndAsk();
    expect(page.status).toBe(401);
    expect([me.user, me.authorized]).toEqual([undefined, false]);
    expect(stored(world)).toEqual([]);
  });

  const oddities: readonly [string, (done: Done) => unknown, number][] = [
    ['throws', () => fail(new Error('from verify')), 500],
    ['throws later', async () => fail(new Error('from verify')), 500],
    ['rejects with a promise of another library', () => foreignRejection(new Error('from verify')), 500],
    ['gives an error', (done) => done(new Error('from verify')), 500],
    ['throws undefined', () => fail(undefined), 500],
    ['rejects with undefined', () => Promise.reject(), 500],
    ['throws null', () => fail(null), 500],
    ['throws an empty text', () => fail(''), 500],
    ['throws the text that has Express skip a route', () => fail('route'), 500],
    ['gives the text that has Express skip a router', (done) => done('router'), 500],
  ];
  test.each(oddities)('that %s ends in an error, and keeps no grant', async (_what, act, status) => {
    let passed = false;
    await open({
      verify: (_a: string, _r: string, _p: Profile, done: Done) => act(done),
      authenticate: { successReturnToOrRedirect: undefined },
      routes: (app) =>
        app.get('/callback', (_req, res) => {
          passed = true;
          sendJson(res, {});
        }),
    });
    const { page, me } = await logInAndAsk();
    expect(page.status).toBe(status);
    expect(passed).toBe(false);
    expect([me.user, me.authorized]).toEqual([undefined, false]);
    expect(stored(world)).toEqual([]);
  });

  test.each<[string, (done: Done) => unknown]>([
    ['twice', (done) => [done(null, { id: 'first' }), done(null, { id: 'second' })]],
    ['and then throws', (done) => [done(null, { id: 'first' }), fail(new Error('late'))]],
    ['and then with an error', (done) => [done(null, { id: 'first' }), done(new Error('late'))]],
    ['and then rejects', async (done) => [done(null, { id: 'first' }), fail(new Error('late'))]],
  ])('that answers %s counts by its first answer', async (_what, act) => {
    await open({ verify: (_a: string, _r: string, _p: Profile, done: Done) => act(done) });
    const { page, me } = await logInAndAsk();
    expect(page.status).toBe(302);
    expect(me.user).toEqual({ id: 'first' });
    expect(grantKeys(world)).toHaveLength(1);
    expect(world.errors).toEqual([]);
  });
});

describe('userProfile', () => {
  const verify = (_a: string, _r: string, profile: Profile, done: Done) => done(null, profile);

  test('gets a client that works, and adds to the profile', async () => {
    await open({
      verify,
      strategy: {
        userProfile: async (client) => ({ projects: await client.projects(), authorized: client.authorized }),
      },
    });
    const { me } = await logInAndAsk('2');
    expect(me.user).toMatchObject({ id: '2', authorized: true });
    expect(me.user.projects.data[0].data.name).toBe('Acme Storefront');
  });

  test('that fails ends the login, and keeps no grant', async () => {
    await open({ verify, strategy: { userProfile: (client) => client.get('/no-such-thing') } });
    const { page } = await logInAndAsk();
    expect([page.status, page.json().name]).toEqual([404, 'ApiError']);
    expect(stored(world)).toEqual([]);
  });

  test.for([
    ['a text', 'string'],
    [null, 'null'],
    [undefined, 'undefined'],
    [7, 'number'],
  ])('that gives %j in the place of an object is told so', async ([value, kind]) => {
    await open({ verify, strategy: { userProfile: (async () => value) as never } });
    const { page } = await logInAndAsk();
    expect(page.json()).toMatchObject({ name: 'ConfigurationError' });
    const message = expect.stringMatching(new RegExp(`expected an object .* got ${kind}$`));
    expect(world.errors[0]).toMatchObject({ option: 'userProfile', message });
    expect(stored(world)).toEqual([]);
  });
});

describe('passport.authorize', () => {
  const options: WorldOptions = {
    callback: ({ passport }) => passport.authorize('oauth-app', {}) as Handler,
    routes: (app) => {
      app.get('/local-login', logInLocally('local'));
      app.get('/callback', (req, res) => sendJson(res, { user: req.user, account: Reflect.get(req, 'account') }));
    },
  };

  test('connects an account to the user who is logged in, and leaves that login alone', async () => {
    await open(options);
    await visit('/local-login');
    const page = await logIn();
    expect(page.json()).toEqual({ user: { id: 'local' }, account: { id: '1' } });
    const me = await whoami(browser);
    expect([me.user, me.authorized]).toEqual([{ id: 'local' }, true]);
    expect((await projects()).status).toBe(200);
  });

  test('leaves no returnTo of another host in the session', threats(17), async () => {
    await open({
      ...options,
      routes: (app) => {
        app.get('/remember', (req, res) => sendJson(res, Object.assign(req.session, { returnTo: '//evil.example' })));
        app.get('/callback', (req, res) => sendJson(res, { returnTo: Reflect.get(req.session, 'returnTo') }));
      },
    });
    await visit('/remember');
    expect((await logIn()).json()).toEqual({ returnTo: '/' });
  });

  test('works for a browser without a login', async () => {
    await open(options);
    const { page, me } = await logInAndAsk();
    expect(page.json()).toEqual({ account: { id: '1' } });
    expect([me.user, me.authorized]).toEqual([undefined, true]);
  });

  test('a second time takes the place of the first grant', async () => {
    await open(options);
    await visit('/local-login');
    await logIn('1');
    await logIn('2');
    await until(() => expect(grantKeys(world)).toHaveLength(1));
    expect((await whoami(browser)).organizationDomain).toBe('acme');
  });

  test('keys the grant by the user who is logged in, and never by the id of the connected account', async () => {
    await open({ ...options, strategy: { grantId: byUser } });
    await visit('/local-login');
    await logIn('1');
    const me = await whoami(browser);
    expect([me.authorized, me.grantId]).toEqual([true, 'local']);
    expect(world.strategy.client('local').grantId).toBe('local');
    expect(grantKeys(world)).toHaveLength(1);
  });
});

describe('the application logs in by itself', () => {
  test('after session: false, as NestJS does', async () => {
    await open({
      authenticate: { session: false, successReturnToOrRedirect: undefined },
      routes: (app) => app.get('/callback', logInLocally('own')),
    });
    const { page, me } = await logInAndAsk();
    expect(page.json()).toEqual({});
    expect([me.user, me.authorized]).toEqual([{ id: 'own' }, true]);
    expect(me.session['oauth-app']).toBe(me.grantId);
  });

  test('in a callback of its own', async () => {
    await open({
      callback:
        ({ passport }) =>
        (req, res, next) =>
          passport.authenticate('oauth-app', (error: unknown, user: Express.User, info: unknown) => {
            if (error || !user) return sendJson(res, { error: Boolean(error), info });
            req.login(user, (failure) => (failure ? next(failure) : sendJson(res, { user })));
          })(req, res, next),
    });
    const { page, me } = await logInAndAsk();
    expect(page.json()).toEqual({ user: { id: '1' } });
    expect(me.authorized).toBe(true);
  });

  test('a second time in the same request: the grant goes along', async () => {
    await open({
      authenticate: { successReturnToOrRedirect: undefined },
      routes: (app) => app.get('/callback', logInLocally('merged')),
    });
    const { me } = await logInAndAsk();
    expect([me.user, me.authorized]).toEqual([{ id: 'merged' }, true]);
    expect(grantKeys(world)).toHaveLength(1);
  });

  test('after logging out first, as some do against fixation: the grant goes along', async () => {
    await open({
      authenticate: { session: false, successReturnToOrRedirect: undefined },
      routes: (app) => app.get('/callback', (req, res, next) => req.logOut(() => logInLocally('own')(req, res, next))),
    });
    const { me } = await logInAndAsk();
    expect([me.user, me.authorized]).toEqual([{ id: 'own' }, true]);
  });

  test('never: with session: false and grantId the grant is found by the user', async () => {
    const asOwner: Handler = (req, _res, next) => {
      if (req.headers['x-user']) Object.assign(req, { user: { id: String(req.headers['x-user']) } });
      next();
    };
    await open({
      session: false,
      strategy: { grantId: byUser, tokenStore: memoryTokenStore() },
      authenticate: { session: false, successReturnToOrRedirect: '/' },
      before: (app) => app.use(asOwner),
    });
    expect((await logIn()).status).toBe(302);
    expect((await visit('/projects', { headers: { 'x-user': '1' } })).status).toBe(200);
    expect((await visit('/whoami', { headers: { 'x-user': '2' } })).json().authorized).toBe(false);
    expect((await whoami()).authorized).toBe(false);
  });

  test('never: the route of the login need not say so, only the one of the callback', async () => {
    await open({
      session: false,
      strategy: { grantId: byUser, tokenStore: memoryTokenStore() },
      callback: ({ passport }) =>
        passport.authenticate('oauth-app', { session: false, successRedirect: '/' }) as Handler,
    });
    expect((await logIn()).status).toBe(302);
    expect(await world.strategy.client('1').projects()).toMatchObject({ data: expect.any(Array) });
  });

  test.each([
    ['on success', {}, undefined],
    ['on a decline', { decline: true }, undefined],
    ['on an error', {}, { status: 500 }],
  ])(
    'and throws in its callback %s: the request is answered, and the process goes on',
    async (_when, choice, fault) => {
      await open({
        callback:
          ({ passport }) =>
          (req, res, next) =>
            passport.authenticate('oauth-app', () => fail(new TypeError('a slip in the callback')))(req, res, next),
      });
      const warned = once(process, 'warning');
      const callback = await world.begin(browser, choice);
      if (fault) world.service.fail('token', fault);
      expect((await visit(callback)).status).toBe(500);
      const [warning] = await warned;
      expect(warning.message).toBe('a slip in the callback');
      expect((await visit('/')).status).toBe(200);
    },
  );
});

test('Passport tries the next of several strategies when one fails', async () => {
  await open({
    callback: ({ passport }) => {
      class Welcoming {
        readonly name = 'guest';
        declare success: (user: object) => void;
        authenticate() {
          this.success({ id: 'guest' });
        }
      }
      passport.use(new Welcoming() as never);
      return passport.authenticate(['oauth-app', 'guest'], { successRedirect: '/' }) as Handler;
    },
  });
  await visit(await world.begin(browser, { decline: true }));
  const me = await whoami(browser);
  expect([me.user, me.authorized]).toEqual([{ id: 'guest' }, false]);
});

function fail(reason: unknown): never {
  throw reason;
}

/** As much of a promise as an old promise library has. */
function foreignRejection(reason: unknown): PromiseLike<never> {
  // biome-ignore lint/suspicious/noThenProperty: it is what makes it a foreign promise
  return { then: (_resolve, reject) => Promise.reject(reason).then(undefined, reject) as never };
}
