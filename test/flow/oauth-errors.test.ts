import type { ErrorRequestHandler } from 'express';
import {
  apiClient,
  forward,
  logout,
  memoryTokenStore,
  type OAuthAppError,
  oauthErrors,
  type Profile,
  requireAuthorization,
  Strategy,
} from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { addStrategy } from '../support/add-strategy.js';
import { withoutPauses } from '../support/fast-forward.js';
import { browser, clock, loggedIn, logIn, open, visit, world } from '../support/one-world.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser, type Framework, type Handler, sendJson, type WorldOptions } from '../support/world.js';

const SCRIPT = '<script>alert(1)</script>';
const html = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
const json = { headers: { accept: 'application/json' } };
const script = { headers: { accept: '*/*', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } };

const withHandler: WorldOptions = {
  routes: (app) => {
    const call: Handler = (req, res, next) => req.apiClient.get('/anything').then((data) => sendJson(res, data), next);
    app.use('/call', call);
    app.use('/late', (req, res, next) => {
      res.write('half a page');
      return call(req, res, next);
    });
    app.use('/broken', (_req, _res, next) => next(Object.assign(new TypeError('a slip'), { status: 418 })));
    app.use(oauthErrors({ login: '/login' }) as ErrorRequestHandler);
  },
};

describe.each<Framework>(['express', 'connect'])('oauthErrors({ login }) under %s', (framework) => {
  const options = { ...withHandler, framework };

  test('sends a page that needs a login there, and back to the page', async () => {
    await open({ ...options, authenticate: { successReturnToOrRedirect: '/' } });
    const page = await visit('/call?x=1&y=2', html);
    expect([page.status, page.headers.get('location')]).toEqual([302, '/login?returnTo=%2Fcall%3Fx%3D1%26y%3D2']);
    const callback = await world.begin(browser, {}, String(page.headers.get('location')));
    expect((await visit(callback)).headers.get('location')).toBe('/call?x=1&y=2');
  });

  test('sends a page there when the service renews the grant with a token of no use, or has revoked it', async () => {
    await loggedIn(options);
    clock.advance(7_200);
    world.service.fail('token', { status: 200, body: { access_token: 'a', token_type: 'mac' } });
    expect((await visit('/call', html)).headers.get('location')).toBe('/login?returnTo=%2Fcall');
    world.service.revoke('1');
    clock.advance(1);
    const page = await withoutPauses(() => visit('/call', html), world.service.authUrl);
    expect([page.status, page.headers.get('location')]).toEqual([302, '/login?returnTo=%2Fcall']);
  });

  test('does not send a callback to the login, which would lead back to it: verify uses a grant that is not there yet', async () => {
    await open({
      ...options,
      strategy: { tokenStore: memoryTokenStore(), grantId: byUser },
      verify: async (_a: string, _r: string, { id = '' }: Profile, done: (error: unknown) => void) =>
        world.strategy.client(id).projects().catch(done),
    });
    const page = await visit(await world.begin(browser), html);
    expect([page.status, page.headers.get('location'), world.errors]).toEqual([401, null, []]);
  });

  test('answers a script that needs a login with 401 and the code, and no redirect', async () => {
    await open(options);
    for (const given of [script, json, { ...html, method: 'POST' }]) {
      const answer = await visit('/call', given);
      expect([answer.status, answer.headers.get('location')]).toEqual([401, null]);
      if (given.headers === html.headers) expect(answer.text).toMatch(/^ERR_NOT_AUTHORIZED: No user has authorized/);
      else expect(answer.json()).toEqual({ error: 'ERR_NOT_AUTHORIZED', message: expect.any(String) });
    }
  });

  test('logs what the developer needs to read, and tells it no visitor', async () => {
    const logged: OAuthAppError[] = [];
    const handler = oauthErrors({
      log: async (error) => {
        logged.push(error);
        throw new Error('the log is full');
      },
    }) as ErrorRequestHandler;
    await open({
      framework,
      strategy: { tokenStore: undefined, clientSecret: 'a wrong secret' },
      session: { cookie: { secure: true } },
      routes: (app) => app.use(handler),
    });
    expect((await visit('/login', html)).text).toBe('ERR_SESSION_COOKIE: The application is not set up correctly.');
    expect((await visit('/projects', json)).status).toBe(401);
    expect(logged.map(({ code }) => code)).toEqual(['ERR_SESSION_COOKIE']);
    expect(logged[0]?.message).toContain('trust proxy');
  });

  test('tells when to come back during an outage, as text or JSON', async () => {
    await loggedIn(options);
    clock.advance(7_200);
    world.service.fail('token', { status: 503, body: SCRIPT, times: 5 });
    const page = await visit('/call', html);
    expect([page.status, page.headers.get('content-type')]).toEqual([503, expect.stringMatching(/^text\/plain/)]);
    expect(page.headers.get('retry-after')).toMatch(/^\d+$/);
    const answer = await visit('/call', json);
    expect([answer.status, answer.json().error]).toEqual([503, 'ERR_SERVICE_UNAVAILABLE']);
    expect(page.text + answer.text).not.toContain('script');
  });

  test("keeps the API's status, and none of its words", async () => {
    await open(options);
    await logIn();
    world.service.fail('api', { status: 422, body: { error: { message: SCRIPT, code: 422 } }, times: 2 });
    for (const given of [html, json]) {
      const answer = await visit('/call', given);
      expect([answer.status, answer.headers.get('x-content-type-options')]).toEqual([422, 'nosniff']);
      expect(answer.text).not.toContain('script');
    }
  });

  test('answers with 502 where the API redirects to somewhere else: nobody could follow', async () => {
    await open(options);
    await logIn();
    const headers = { location: 'https://elsewhere.example/' };
    world.service.fail('api', { status: 308, headers, times: 2 });
    const [page, answer] = [await visit('/call', html), await visit('/call', json)];
    expect([page.status, answer.status, answer.json().error]).toEqual([502, 502, 'ERR_API']);
  });

  test('leaves errors of others, and responses that have begun, to the next handler', async () => {
    await open(options);
    const page = await visit('/broken', html);
    expect([page.status, page.json().message]).toEqual([418, 'a slip']);
    await visit('/late', html).catch(() => {});
    expect(world.errors.map(({ name }) => name)).toEqual(['TypeError', 'NotAuthorizedError']);
  });
});

test('oauthErrors leads back to a page that needs the second of two services, by a login page of the application', async () => {
  const earlyErrors: unknown[] = [];
  await open({
    before: (app) => app.use('/early', requireAuthorization({ property: 'tracker' }) as Handler),
    routes: (app, world) => {
      const tracker = addStrategy(world, 'tracker', '/tracker/callback');
      app.use(apiClient(tracker, { property: 'tracker' }) as Handler);
      app.use('/tracker/login', world.passport.authenticate('tracker') as Handler);
      app.use(
        '/tracker/callback',
        world.passport.authenticate('tracker', { successReturnToOrRedirect: '/' }) as Handler,
      );
      app.use('/issues', (req, _res, next) => void Reflect.get(req, 'tracker').get('/issues').catch(next));
      app.use(((error, _req, _res, next) => {
        if (error.code === 'ERR_NO_API_CLIENT') earlyErrors.push(Reflect.get(error, 'strategy'));
        next(error);
      }) as ErrorRequestHandler);
      app.use(oauthErrors({ login: '/choose' }) as ErrorRequestHandler);
    },
  });
  await logIn();
  const page = await visit('/issues', html);
  expect([page.status, page.headers.get('location')]).toEqual([302, '/choose?returnTo=%2Fissues']);
  const callback = await world.begin(browser, {}, '/tracker/login');
  expect((await visit(callback)).headers.get('location')).toBe('/issues');
  // Guarded before its client: there is one strategy for this property.
  const early = await visit('/early', json);
  expect([early.status, early.json().error, earlyErrors]).toEqual([500, 'ERR_NO_API_CLIENT', ['tracker']]);
});

test('oauthErrors refuses options that it does not have', () => {
  expect(() => oauthErrors({ logIn: '/login' } as never)).toThrow(expect.objectContaining({ option: 'logIn' }));
  expect(() => oauthErrors({ login: 'a b' })).toThrow(expect.objectContaining({ option: 'login' }));
});

describe('every error names its strategy', () => {
  const options = {
    ...{ authUrl: 'https://a.example', baseUrl: 'https://b.example', name: 'second' },
    ...{ clientID: 'id', clientSecret: 's', callbackURL: '/callback', scope: 'tm', tokenStore: memoryTokenStore() },
  };

  test('outside of a request', async () => {
    const strategy = new Strategy(options);
    const client = strategy.client('nobody');
    const calls: readonly (() => unknown)[] = [
      () => new Strategy({ ...options, authUrl: undefined }),
      () => strategy.client(''),
      () => strategy.importGrant('id', { refreshToken: '' }),
      () => strategy.deleteGrant(''),
      () => client.projects(),
      () => client.stream('GET', '/projects'),
      () => client.accessToken(),
      () => client.credentials(),
      () => client.fetch('/projects'),
      () => client.paginate('/projects').next(),
    ];
    for (const call of calls) {
      const error = await Promise.resolve()
        .then(call)
        .catch((reason: OAuthAppError) => reason);
      expect([String(call), error]).toEqual([String(call), expect.objectContaining({ strategy: 'second' })]);
    }
    await strategy.close();
  });

  test('in middleware that gets neither request nor response of Node', async () => {
    const [strategy, property] = [new Strategy({ ...options, name: 'third' }), 'third'];
    const handlers = [apiClient(strategy, { property }), logout(strategy), forward(strategy, { allow: ['GET /a'] })];
    for (const handler of [...handlers, requireAuthorization({ property })]) {
      const errors: unknown[] = [];
      handler({} as never, {} as never, (error) => errors.push(error));
      expect(errors).toEqual([expect.objectContaining({ code: 'ERR_FRAMEWORK', strategy: 'third' })]);
    }
    await strategy.close();
  });

  test('in requests', async () => {
    const tokenStore = new TroubledStore();
    const errors: unknown[] = [];
    await loggedIn({
      strategy: { name: 'second', tokenStore },
      routes: (app) => {
        app.use('/guarded', requireAuthorization() as Handler);
        app.use('/call', (req, _res, next) => void req.apiClient.get('/none').catch(next));
        app.use(((error, _req, res, _next) => {
          errors.push(error);
          res.statusCode = 500;
          res.end();
        }) as ErrorRequestHandler);
      },
    });
    await visit('/call');
    await visit('/login', { headers: { purpose: 'prefetch' } });
    const callback = await world.begin(browser);
    world.service.fail('token', { status: 400, body: { error: 'invalid_client' } });
    await visit(callback);
    clock.advance(7_200);
    world.service.fail('token', { status: 503, times: 3 });
    await Promise.all([visit('/call'), visit('/call')]);
    tokenStore.fail('delete');
    await visit('/logout', { method: 'POST' });
    await visit('/guarded');
    const named = errors.map((error) => [Reflect.get(Object(error), 'name'), Reflect.get(Object(error), 'strategy')]);
    const names = [
      'ApiError',
      'AuthorizationError',
      'TokenError',
      'ServiceUnavailableError',
      'ServiceUnavailableError',
    ];
    expect(named).toEqual([...names, 'TokenStoreError', 'NotAuthorizedError'].map((name) => [name, 'second']));
  });
});
