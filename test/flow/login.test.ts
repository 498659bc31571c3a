import session from 'express-session';
import request from 'supertest';
import { describe, expect, test, vi } from 'vitest';
import { Browser } from '../support/browser.js';
import { browser, logIn, open, projects, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { orSample } from '../support/sample.js';
import { stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { type Framework, type Handler, sendJson, type WorldOptions } from '../support/world.js';

const frameworks: readonly Framework[] = ['express', 'connect'];

/** Passport takes an instance as well as a name; its types know of the name only. */
const byInstance: WorldOptions = {
  callback: ({ passport, strategy }) => passport.authenticate(strategy as never),
  routes: (app, { passport, strategy }) => app.use('/sign-in', passport.authenticate(strategy as never) as Handler),
};

describe.each(frameworks)('a login under %s', (framework) => {
  test('ends with a session that refers to a grant, and with a client that works', async () => {
    await open({ framework });
    const page = await logIn();
    expect(page.status).toBe(framework === 'connect' ? 200 : 302);
    const [exchange] = world.tokenRequests();
    expect(exchange?.headers).toMatchObject({ accept: 'application/json', 'content-type': 'application/json' });
    expect(exchange?.headers).not.toHaveProperty('authorization');
    const shown = await projects();
    expect(shown.status).toBe(200);
    expect(shown.json().data[0].data.name).toBe('Pocket Garden');
    const me = await whoami();
    expect(me.user).toEqual({ id: '1' });
    expect(me.session['oauth-app']).toBe(me.grantId);
  });

  test('takes the redirects of Passport, which the contract shows', async () => {
    await open({ framework, authenticate: { successReturnToOrRedirect: '/', failureRedirect: '/declined\u00e9' } });
    const declined = await visit(await world.begin(browser, { decline: true }));
    expect([declined.status, declined.headers.get('location')]).toEqual([302, '/declined%C3%A9']);
    const page = await logIn();
    expect([page.status, page.headers.get('location')]).toEqual([302, '/']);
  });

  test('gives the handlers after the callback the client of the new grant', async () => {
    const handler: Handler = (req, res, next) =>
      req.apiClient.projects().then((projects) => sendJson(res, { projects, id: req.apiClient.grantId }), next);
    await open({
      framework,
      callback: (world) => {
        const authenticate = world.passport.authenticate('oauth-app') as Handler;
        return (req, res, next) => authenticate(req, res, (error) => (error ? next(error) : handler(req, res, next)));
      },
    });
    for (const user of ['1', '2']) {
      const page = (await world.logIn(browser, user)).json();
      const me = (await browser.visit(`${world.url}/whoami`)).json();
      expect(page.id).toBe(me.grantId);
      expect(page.projects).toEqual((await browser.visit(`${world.url}/projects`)).json());
    }
  });

  test.each(['service.example', 'my service', 'a/b;c="d"', '%41', 'a.login'])(
    'works under the name %j',
    async (name) => {
      await open({ framework, strategy: { name } });
      const other = await world.begin(browser);
      await logIn();
      const me = await whoami();
      expect(me.session[name]).toBe(me.grantId);
      expect((await visit(other)).status).toBeLessThan(400);
    },
  );

  test('works with the instance in the place of the name', async () => {
    await open({ framework, ...byInstance });
    await visit(await world.begin(browser, {}, '/sign-in'));
    expect((await whoami()).user).toEqual({ id: '1' });
  });

  test('of a member of an organization leads to the enterprise host', async () => {
    await open({ framework });
    await logIn('2');
    const me = await whoami();
    expect(me.organizationDomain).toBe('acme');
    expect(me.baseUrl).toBe(`${world.service.enterpriseBaseUrl.replace('{domain}', 'acme')}/api/v2`);
    expect((await projects()).json().data[0].data.name).toBe('Acme Storefront');
  });

  test('every answer of login and callback is neither stored nor tells where it came from', threats(12), async () => {
    await open({ framework });
    const login = await visit('/login');
    const declined = await visit(await world.begin(browser, { decline: true }));
    const forged = await visit('/callback?code=a&state=b');
    const malformed = await visit('/callback?code=a&code=b&state=c');
    const bare = await visit('/callback');
    world.service.fail('token', { status: 500 });
    const failed = await visit(await world.begin(browser));
    const good = await logIn();
    expect([login, declined, forged, malformed, bare, failed].map(({ status }) => status)).toEqual([
      302, 401, 403, 400, 302, 503,
    ]);
    for (const { headers } of [login, declined, forged, malformed, bare, failed, good]) {
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('referrer-policy')).toBe('no-referrer');
    }
  });
});

describe('the authorization request', () => {
  const locationOf = async (path = '/login') => {
    const answer = await rawRequest(world.url, path);
    expect(answer.status).toBe(302);
    return String(answer.headers.location);
  };

  test('has exactly the five parameters of service.md, with plus signs for spaces', async () => {
    const { service, url } = await open();
    const location = await locationOf();
    const { searchParams, origin, pathname } = new URL(location);
    const state = searchParams.get('state') ?? '';
    expect(`${origin}${pathname}`).toBe(`${service.authUrl}/oauth/authorize`);
    expect(location.slice(location.indexOf('?') + 1).split('&')).toEqual([
      `client_id=${service.options.clientID}`,
      `redirect_uri=${encodeURIComponent(`${url}/callback`)}`,
      'response_type=code',
      'scope=project+tm',
      `state=${state}`,
    ]);
  });

  test('has a state of 256 random bits that is never the same', async () => {
    await open();
    const states = new Set<string>();
    for (let count = 0; count < 20; count++) {
      const state = new URL(await locationOf()).searchParams.get('state') ?? '';
      expect(state).toMatch(/^[\w-]{43}$/);
      expect(Buffer.from(state, 'base64url')).toHaveLength(32);
      states.add(state);
    }
    expect(states.size).toBe(20);
  });

  test('has the two parameters of PKCE where that is asked for, and a verifier that fits the challenge', async () => {
    await open({ strategy: { pkce: true } });
    const { searchParams } = new URL(await locationOf());
    expect([...searchParams.keys()].slice(5)).toEqual(['code_challenge', 'code_challenge_method']);
    expect(searchParams.get('code_challenge')).toMatch(/^[\w-]{43}$/);
    expect(searchParams.get('code_challenge_method')).toBe('S256');
    // The emulator checks the verifier against the challenge.
    expect((await logIn()).status).toBe(302);
    expect(world.tokenRequests()[0]?.body).toHaveProperty('code_verifier', expect.stringMatching(/^[\w-]{43}$/));
  });

  test('takes no parameter from the query of the login route', async () => {
    const { url } = await open();
    const { searchParams } = new URL(
      await locationOf('/login?client_id=evil&redirect_uri=https://evil.example&scope=admin&response_type=token'),
    );
    expect([...searchParams.keys()]).toEqual(['client_id', 'redirect_uri', 'response_type', 'scope', 'state']);
    expect(searchParams.get('redirect_uri')).toBe(`${url}/callback`);
    expect(searchParams.get('scope')).toBe('project tm');
  });

  test('can ask for another scope at one route alone', async () => {
    await open({
      routes: (app, { passport }) => {
        app.get('/login-more', passport.authenticate('oauth-app', { scope: ['admin', 'tm'] }) as never);
      },
    });
    expect(await locationOf('/login-more')).toContain('&scope=admin+tm&');
  });
});

describe('pending logins', () => {
  test('ten tabs of a browser that has no session yet all log in, in any order', threats(4), async () => {
    await open();
    const callbacks = await Promise.all(Array.from({ length: 10 }, () => world.begin(browser)));
    for (const callback of [...callbacks].reverse()) expect((await visit(callback)).status).toBe(302);
    expect(world.tokenRequests()).toHaveLength(10);
  });

  test(
    'twelve tabs with pages of their own all log in, and come back to a page of this origin',
    threats(4),
    async () => {
      await open();
      const callbacks: string[] = [];
      for (let tab = 0; tab < 12; tab++) {
        const page = `/projects?tab=${tab}&filter=${'a'.repeat(1500)}`;
        callbacks.push(await world.begin(browser, {}, `/login?returnTo=${encodeURIComponent(page)}`));
      }
      for (const callback of callbacks) {
        const page = await visit(callback);
        expect(page.status).toBe(302);
        expect(page.headers.get('location')).toMatch(/^\/(projects\?tab=\d+&filter=a+)?$/);
      }
    },
  );

  test('are dropped beyond the limit, the oldest first', async () => {
    await open();
    const callbacks: string[] = [];
    for (let tab = 0; tab < 14; tab++) callbacks.push(await world.begin(browser));
    const statuses: number[] = [];
    for (const callback of callbacks) statuses.push((await visit(callback)).status);
    expect(statuses).toEqual([403, 403, ...Array.from({ length: 12 }, () => 302)]);
  });

  test('leave no cookie behind once they are finished', async () => {
    await open();
    await logIn();
    expect([...browser.cookies(world.url).keys()]).toEqual(['connect.sid']);
  });

  test('live in cookies that no script and no other site can use, and that show nothing', async () => {
    await open({ strategy: { pkce: true } });
    const answer = await rawRequest(world.url, '/login?returnTo=/projects');
    const [cookie = '', ...others] = answer.headers['set-cookie'] ?? [];
    expect(others).toEqual([]);
    expect(cookie).toMatch(/^oauth-app\.login\.[\w-]{16}=[\w.-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
    const opened = cookie
      .split('=', 2)
      .join('.')
      .split('.')
      .map((part) => Buffer.from(part, 'base64url').toString('latin1'))
      .join();
    expect(opened).not.toContain('/projects');
    expect(opened).not.toContain('codeVerifier');
  });

  test('are bound to the very host with https, regardless of the headers of a proxy: no sibling host can plant one', async () => {
    await open({ strategy: { callbackURL: 'https://app.example.net/callback' } });
    const cookies = async (headers: Record<string, string> = {}) =>
      (await rawRequest(world.url, '/login', { headers })).headers['set-cookie'];
    const bound = [expect.stringMatching(/^__Host-oauth-app\.login\.(?!.*domain).*; Path=\/; .*; Secure$/i)];
    for (const headers of [{}, { host: 'app.example.net' }, { 'x-forwarded-proto': 'https' }, { via: '1.1 proxy' }]) {
      expect(await cookies(headers)).toEqual(bound);
    }
    vi.stubEnv('NODE_ENV', 'production');
    expect(await cookies()).toEqual(bound);
    vi.unstubAllEnvs();
  });

  test('come back in a test over plain http, with an http callbackURL and a client that keeps cookies', async () => {
    const callbackURL = 'http://app.example.net/callback';
    await open({ strategy: { callbackURL } });
    world.register(callbackURL);
    const agent = request.agent(world.url);
    const callbacks: URL[] = [];
    for (let tab = 0; tab < 10; tab++) {
      const begun = await agent.get('/login');
      callbacks.push(new URL(await world.service.approve(String(begun.headers.location))));
    }
    for (const { pathname, search } of callbacks) {
      expect((await agent.get(`${pathname}${search}`)).headers.location).toBe('/');
    }
    expect((await agent.get('/projects')).status).toBe(200);
  });

  test('unfinished logins leave nothing in the session store', threats(13), async () => {
    await open();
    for (let batch = 0; batch < orSample(20, 1); batch++) {
      await Promise.all(Array.from({ length: 50 }, () => rawRequest(world.url, '/login')));
    }
    expect(stored(world)).toEqual([]);
  });

  test('forged callbacks leave nothing in the session store', threats(13), async () => {
    await open();
    for (let batch = 0; batch < orSample(10, 1); batch++) {
      await Promise.all(
        Array.from({ length: 50 }, (_, index) =>
          rawRequest(world.url, `/callback?code=x&state=${String(index).padStart(43, 'A')}`),
        ),
      );
    }
    expect(stored(world)).toEqual([]);
    expect(world.service.requests).toEqual([]);
  });

  test('leave the session that a browser has untouched', async () => {
    const store = new session.MemoryStore();
    let writes = 0;
    const set = store.set.bind(store);
    store.set = (...args) => {
      writes += 1;
      set(...args);
    };
    await open({ session: { store } });
    await logIn();
    const before = writes;
    await visit('/login');
    expect(writes).toBe(before);
  });
});

test('many users who log in at once through one instance each get their own tokens', threats(14), async () => {
  const users = Array.from({ length: orSample(100, 20) }, (_, index) => ({
    id: `user-${index}`,
    name: `User ${index}`,
    projects: [{ id: index, name: `Project of user-${index}` }],
  }));
  await open({ ...byInstance, service: { users }, strategy: { timeout: 120_000 } });
  const browsers = await Promise.all(
    users.map(async ({ id }) => {
      const browser = new Browser();
      await browser.visit(await world.begin(browser, { user: id }, '/sign-in'));
      return { id, browser };
    }),
  );
  const seen = await Promise.all(
    browsers.map(async ({ id, browser }) => {
      const me = (await browser.visit(`${world.url}/whoami`)).json();
      const projects = (await browser.visit(`${world.url}/projects`)).json();
      return { id, user: me.user.id, grantId: me.grantId, project: projects.data[0].data.name };
    }),
  );
  for (const { id, user, project } of seen) {
    expect(user).toBe(id);
    expect(project).toBe(`Project of ${id}`);
  }
  expect(new Set(seen.map(({ grantId }) => grantId)).size).toBe(users.length);
});
