import { request } from 'node:http';
import session from 'express-session';
import { describe, expect, test } from 'vitest';
import { ServiceUnavailableError, Strategy, sessionTokenStore } from '../../src/index.js';
import { another } from '../support/another.js';
import type { Page } from '../support/browser.js';
import { withoutPauses } from '../support/fast-forward.js';
import { gate } from '../support/gate.js';
import { hold } from '../support/hold.js';
import { browser, clock, loggedIn, projects, refreshTokens, visit, whoami, world } from '../support/one-world.js';
import { orSample } from '../support/sample.js';
import { grantKeys } from '../support/session-entries.js';
import { storeId } from '../support/store-id.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import type { WorldOptions } from '../support/world.js';

const HOURS = 3600;

const many = (count: number): Promise<Page[]> => Promise.all(Array.from({ length: count }, projects));
const statuses = (pages: readonly Page[]) => [...new Set(pages.map(({ status }) => status))];
/** An answer of the token endpoint that is right in form, for another user or with another domain. */
const tokensOf = (claims: object, more: object = { refresh_token: 'another' }) => ({
  access_token: ['{"alg":"none"}', JSON.stringify(claims), 'x']
    .map((part) => Buffer.from(part).toString('base64url'))
    .join('.'),
  token_type: 'bearer',
  expires_in: 7200,
  ...more,
});

describe('an expired token', threats(35, 42, 44), () => {
  test('makes one token request for hundreds of requests at once, and none of them fails', async () => {
    await loggedIn({ before: dropKeepAlive, strategy: { timeout: 120_000 } });
    for (const expiry of [1, 2]) {
      clock.advance(2 * HOURS);
      expect(statuses(await many(orSample(200, 30)))).toEqual([200]);
      expect(world.tokenRequests()).toHaveLength(expiry);
    }
    expect(new Set(refreshTokens()).size).toBe(2);
  });

  test('is replaced in the store before any request proceeds', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    clock.advance(2 * HOURS);
    const seen: string[] = [];
    store.before = async (method) => {
      if (method !== 'update') return;
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`saved after ${world.service.requests.filter(({ path }) => path.startsWith('/api')).length} calls`);
    };
    expect(statuses(await many(20))).toEqual([200]);
    expect(seen).toEqual(['saved after 0 calls']);
  });

  test('gives callers that wait together errors of their own', async () => {
    await loggedIn();
    clock.advance(2 * HOURS);
    world.service.fail('token', { status: 503, delay: 50 });
    expect(statuses(await many(20))).toEqual([503]);
    const errors = world.errors.filter((error) => error instanceof ServiceUnavailableError);
    expect(errors).toHaveLength(20);
    expect(new Set(errors).size).toBe(20);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('is refreshed and saved also when the browser goes away meanwhile', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    clock.advance(2 * HOURS);
    const release = hold(world.service, 'token');
    const cookie = browser.cookieHeader(world.url);
    const going = request(`${world.url}/projects`, { headers: { cookie } }).on('error', () => {});
    going.end();
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    going.destroy();
    release();
    await until(() => expect(store.calls).toContain('update'));
    expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test('keeps the refresh token when the answer brings none, an empty one or null', async () => {
    await loggedIn();
    for (const more of [{}, { refresh_token: '' }, { refresh_token: null }]) {
      clock.advance(2 * HOURS);
      world.service.fail('token', { status: 200, body: tokensOf({ sub: '1' }, more) });
      expect((await whoami()).authorized).toBe(true);
    }
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(200);
    expect(new Set(refreshTokens()).size).toBe(1);
    expect(world.tokenRequests()).toHaveLength(4);
  });

  test('by an opaque token keeps its user: the token of another one, later, ends the grant', async () => {
    await loggedIn();
    const opaque = { access_token: 'opaque', token_type: 'bearer', expires_in: 7200 };
    for (const [body, authorized] of [
      [opaque, true],
      [tokensOf({ sub: '2' }), false],
    ] as const) {
      clock.advance(2 * HOURS);
      world.service.fail('token', { status: 200, body });
      expect((await whoami()).authorized).toBe(authorized);
    }
    expect(grantKeys(world)).toEqual([]);
  });

  test('that is replaced by one of another organization leads to the host of that one', async () => {
    await loggedIn();
    expect((await whoami()).organizationDomain).toBeUndefined();
    world.service.addUser({ id: '1', name: 'Ada', domain: 'initech', projects: [{ id: 9, name: 'Moved' }] });
    clock.advance(2 * HOURS);
    const page = await projects();
    expect(page.json().data[0].data.name).toBe('Moved');
    expect(world.service.requests.at(-1)?.headers.host).toMatch(/^initech\.api\.localhost/);
    expect((await whoami()).baseUrl).toContain('//initech.api.localhost');
  });
});

test(
  'two strategies over one session store, and one for each request, make one refresh between them',
  threats(116),
  async () => {
    await loggedIn({ service: { refreshTokenReuse: 'revoke' } });
    const sessions = new session.MemoryStore();
    const usual = { ...world.service.options, callbackURL: '/callback', scope: 'project', clock: clock.now };
    const opened: Strategy[] = [];
    const open = () => {
      const strategy = new Strategy({ ...usual, tokenStore: sessionTokenStore(sessions) });
      opened.push(strategy);
      return strategy;
    };
    const [one, other] = [open(), open()];
    const { code = '' } = world.service.install({ authentication: 'authorization_code' });
    await one.importCode('user', code);
    const pages = () =>
      Promise.all(Array.from({ length: 20 }, (_, page) => [one, other, open()][page % 3]?.client('user').projects()));
    await pages();
    for (const round of [1, 2]) {
      clock.advance(2 * HOURS);
      await pages();
      expect(world.tokenRequests()).toHaveLength(1 + round);
    }
    // What one of them deletes, the others do not find in their caches.
    await one.deleteGrant('user');
    await expect(other.client('user').projects()).rejects.toMatchObject({ status: 401 });
    for (const strategy of opened) await strategy.close();
  },
);

describe('a refusal by the token endpoint', threats(30, 40), () => {
  test('with invalid_grant ends the grant once the store has been read again', async () => {
    const store = new TroubledStore();
    await loggedIn({ strategy: { tokenStore: store } });
    clock.advance(2 * HOURS);
    world.service.revoke('1');
    store.calls.length = 0;
    expect((await withoutPauses(whoami, world.service.authUrl)).authorized).toBe(false);
    expect(store.calls.filter((call) => call === 'get').length).toBeGreaterThan(1);
    const { grantId } = await whoami();
    // A mark without tokens stays, for a process that holds the grant after this one.
    const { sealed = '' } = (await store.inner.get(storeId(world.service.options, grantId))) ?? {};
    expect(Buffer.from(sealed, 'base64url').toString()).not.toMatch(/token/i);
    expect((await projects()).status).toBe(302);
    expect(world.tokenRequests()).toHaveLength(1);
  });

  test.each([true, false])(
    'with invalid_grant is no end where another process was faster (with a lock: %s)',
    async (withLock) => {
      const { get, set, delete: remove, ...rest } = new TroubledStore().inner;
      const tokenStore = { get, set, delete: remove, ...(withLock ? rest : {}) };
      await loggedIn({ strategy: { tokenStore, grantId: () => 'shared' } });
      const other = await another({ strategy: { tokenStore, grantId: () => 'shared' } });
      await world.strategy.client('shared').accessToken();
      await other.strategy.client('shared').accessToken();
      clock.advance(2 * HOURS);
      const own = await Promise.all([world, other].map(({ strategy }) => strategy.client('shared').accessToken()));
      const later = await Promise.all([world, other].map(({ strategy }) => strategy.client('shared').accessToken()));
      expect(new Set([...own, ...later]).size).toBe(1);
      expect(world.tokenRequests()).toHaveLength(withLock ? 1 : 2);
    },
  );

  test('with invalid_grant waits a moment for the winner to save its pair, where no lock keeps the two apart', async () => {
    const store = new TroubledStore();
    const { inner } = store;
    const set = (...args: Parameters<typeof inner.set>) => store.set(...args);
    const tokenStore = { get: (id: string) => store.get(id), set, delete: inner.delete };
    await loggedIn({ strategy: { tokenStore, grantId: () => 'shared', cache: false } });
    const other = await another({ strategy: { tokenStore, grantId: () => 'shared', cache: false } });
    clock.advance(2 * HOURS);
    const { opened, open } = gate();
    let reads = 0;
    store.before = (method) => {
      // The loser has read the store again, and has found the refused pair, when the winner's is saved.
      if (method === 'get' && world.tokenRequests().length === 2) reads += 1;
      if (reads === 2) open();
      return method === 'set' ? opened : undefined;
    };
    const winner = world.strategy.client('shared').accessToken();
    await until(() => expect(world.tokenRequests()).toHaveLength(1));
    expect(await other.strategy.client('shared').accessToken()).toBe(await winner);
    expect(world.tokenRequests()).toHaveLength(2);
  });
});

describe('a session', threats(22), () => {
  test('saved late with an old copy does not bring a dead token back', async () => {
    const held = gate();
    await loggedIn({
      session: { resave: true },
      routes: (app) =>
        app.get('/slow', async (req, res) => {
          Reflect.set(req.session, 'touched', true);
          await held.opened;
          res.end();
        }),
    });
    const slow = visit('/slow');
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(200);
    held.open();
    await slow;
    clock.advance(60);
    expect((await projects()).status).toBe(200);
    clock.advance(2 * HOURS);
    expect((await projects()).status).toBe(200);
    expect(world.tokenRequests()).toHaveLength(2);
  });
});

/** A thousand connections that are kept alive would outlive the test. */
function dropKeepAlive(app: Parameters<NonNullable<WorldOptions['before']>>[0]): void {
  app.use((_req: unknown, res: { setHeader(name: string, value: string): void }, next: () => void) => {
    res.setHeader('Connection', 'close');
    next();
  });
}
