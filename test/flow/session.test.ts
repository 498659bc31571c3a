import session from 'express-session';
import { describe, expect, test } from 'vitest';
import type { StoredGrant, TokenStore } from '../../src/index.js';
import { Browser } from '../support/browser.js';
import { FlakyStore, isGrantKey } from '../support/flaky-store.js';
import { browser, logIn, open, openAtCallback, projects, visit, whoami, world } from '../support/one-world.js';
import { rawRequest } from '../support/raw-request.js';
import { grantKeys, references } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { type Framework, type Handler, sendJson } from '../support/world.js';

const frameworks: readonly Framework[] = ['express', 'connect'];

const hasReference = (_key: string, entry: unknown) => JSON.stringify(entry).includes('"oauth-app"');

/** Removals of grants that nobody refers to run in the background. */
const noGrantIsLeft = () => until(() => expect(grantKeys(world)).toEqual([]));

describe('without a session', () => {
  test.each(frameworks)(
    'login and callback say what to do, and nothing is sent, under %s',
    threats(11),
    async (framework) => {
      await open({ framework, session: false });
      for (const path of ['/login', '/callback?code=a&state=b']) {
        const answer = await rawRequest(world.url, path);
        expect(answer.status).toBe(500);
        expect(JSON.parse(answer.text)).toMatchObject({ name: 'ConfigurationError', code: 'ERR_NO_SESSION' });
        expect(answer.text).toContain('express-session');
        expect(answer.headers['set-cookie']).toBeUndefined();
      }
      expect(world.service.requests).toEqual([]);
    },
  );
});

describe('a session store that fails', () => {
  const cases: readonly [string, (store: FlakyStore) => void][] = [
    ['when the grant is saved', (store) => store.fail('set', isGrantKey)],
    ['when the session is saved', (store) => store.fail('set', hasReference)],
    ['at every save', (store) => store.fail('set')],
    ['when the old session is destroyed', (store) => store.fail('destroy', (key) => !isGrantKey(key))],
  ];

  test.each(cases)('%s: 503, nobody is logged in, and no grant is left', threats(11), async (_when, breakIt) => {
    const store = new FlakyStore();
    const callback = await openAtCallback({ session: { store } });
    breakIt(store);
    const page = await visit(callback);
    expect(page.status).toBe(503);
    expect(page.json().name).toBe('TokenStoreError');
    await noGrantIsLeft();
    expect(references(world)).toEqual([]);
    store.recover();
    const me = await whoami(browser);
    expect([me.user, me.authorized]).toEqual([undefined, false]);
    expect((await logIn()).status).toBe(302);
    expect((await whoami(browser)).authorized).toBe(true);
  });

  test.each(cases.slice(0, 3))(
    '%s, by throwing: an error, nobody is logged in, and no grant is left',
    threats(11),
    async (_when, breakIt) => {
      const store = new FlakyStore();
      const callback = await openAtCallback({ session: { store } });
      breakIt(store);
      store.fail('destroy', (key) => !isGrantKey(key));
      store.throwInstead();
      expect((await visit(callback)).status).toBeGreaterThanOrEqual(500);
      await noGrantIsLeft();
      expect(references(world)).toEqual([]);
      store.recover();
      expect((await whoami(browser)).user).toBeUndefined();
    },
  );

  test('once, and works again at the end of the response: the user is still not logged in', threats(11), async () => {
    const store = new FlakyStore();
    let left = 1;
    store.fail('set', (key, entry) => hasReference(key, entry) && left-- > 0);
    await open({ session: { store } });
    expect((await logIn()).status).toBe(503);
    await noGrantIsLeft();
    expect(references(world)).toEqual([]);
    expect((await whoami(browser)).user).toBeUndefined();
  });

  test(
    'during a second login leaves nobody logged in, and the grant of the first login unreachable',
    threats(11),
    async () => {
      const store = new FlakyStore();
      await open({ session: { store } });
      await logIn();
      const callback = await world.begin(browser, { user: '2' });
      store.fail('set', (key, entry) => !isGrantKey(key) && hasReference(key, entry));
      expect((await visit(callback)).status).toBe(503);
      store.recover();
      const me = await whoami(browser);
      expect([me.user, me.authorized]).toEqual([undefined, false]);
    },
  );

  test('when sessions are read leaves a pending login as it was', threats(11), async () => {
    const store = new FlakyStore();
    await open({ session: { store } });
    await logIn();
    const callback = await world.begin(browser);
    store.fail('get', (key) => !isGrantKey(key));
    expect((await visit(callback)).status).toBe(500);
    expect(world.tokenRequests()).toHaveLength(1);
    store.recover();
    expect((await visit(callback)).status).toBe(302);
  });

  test('by its connection, of which it tells: 503', threats(11), async () => {
    const store = new session.MemoryStore();
    const sessions = session({ secret: 'x', resave: false, saveUninitialized: false, store });
    await open({ session: false, before: (app) => app.use(sessions as unknown as Handler) });
    await logIn();
    const callback = await world.begin(browser);
    store.emit('disconnect');
    const page = await visit(callback);
    expect([page.status, page.json().code]).toEqual([503, 'ERR_SESSION_STORE']);
    expect(world.tokenRequests()).toHaveLength(1);
    store.emit('connect');
    expect((await visit(callback)).status).toBe(302);
  });

  test('of its own, beside a token store: 503, and no grant is left there', async () => {
    const store = new FlakyStore();
    const kept = new Map<string, StoredGrant>();
    const tokenStore: TokenStore = {
      get: async (id) => kept.get(id),
      set: async (id, grant) => void kept.set(id, grant),
      delete: async (id) => void kept.delete(id),
    };
    const callback = await openAtCallback({ session: { store }, strategy: { tokenStore } });
    store.fail('set');
    expect((await visit(callback)).status).toBe(503);
    await until(() => expect(kept.size).toBe(0));
  });
});

test('a login that fails in serializeUser leaves no grant and no reference', async () => {
  await open({
    routes: (_app, { passport }) => {
      Reflect.set(passport, '_serializers', []);
      passport.serializeUser((_user, done) => done(new Error('the user directory is down')));
    },
  });
  expect((await logIn()).status).toBe(500);
  await noGrantIsLeft();
  expect(references(world)).toEqual([]);
});

describe('after a login', () => {
  test('the cookie from before is anonymous; session id and grant reference are new', threats(18), async () => {
    await open();
    await logIn();
    const sid = browser.cookies(world.url).get('connect.sid') ?? '';
    const first = await whoami(browser);
    await logIn();
    const second = await whoami(browser);
    expect(browser.cookies(world.url).get('connect.sid')).not.toBe(sid);
    expect(second.grantId).not.toBe(first.grantId);
    const old = new Browser();
    old.cookies(world.url).set('connect.sid', sid);
    const me = await whoami(old);
    expect([me.user, me.authorized, me.grantId]).toEqual([undefined, false, undefined]);
  });

  test('a session that was planted in the browser is not the one that is logged in', threats(18), async () => {
    await open({ routes: (app) => app.get('/visit', countVisit) });
    const attacker = new Browser();
    await attacker.visit(`${world.url}/visit`);
    const planted = attacker.cookies(world.url).get('connect.sid') ?? '';
    expect(planted).not.toBe('');
    const victim = new Browser();
    victim.cookies(world.url).set('connect.sid', planted);
    await world.logIn(victim);
    expect((await whoami(victim)).authorized).toBe(true);
    expect((await whoami(attacker)).authorized).toBe(false);
  });

  test("the grant of the session's former login is deleted", async () => {
    await open();
    await logIn('1');
    await logIn('2');
    await until(() => expect(grantKeys(world)).toHaveLength(1));
    expect((await whoami(browser)).organizationDomain).toBe('acme');
  });

  test('the session holds a reference, and never a token', threats(19), async () => {
    const tokens: string[] = [];
    await open({
      verify: (accessToken: string, refreshToken: string, _profile: unknown, done: (e: null, u: object) => void) => {
        tokens.push(accessToken, refreshToken);
        done(null, { id: '1' });
      },
    });
    await logIn();
    const me = await whoami(browser);
    expect(Object.keys(me.session).sort()).toEqual(['cookie', 'oauth-app', 'passport']);
    expect(me.session['oauth-app']).toMatch(/^[\w-]{43}$/);
    expect(tokens).toHaveLength(2);
    for (const token of tokens) expect(JSON.stringify(me)).not.toContain(token);
  });

  test('grant ids are 256 random bits', threats(20), async () => {
    await open();
    const ids = new Set<string>();
    for (let count = 0; count < 10; count++) {
      const browser = new Browser();
      await world.logIn(browser);
      ids.add((await whoami(browser)).grantId);
    }
    for (const id of ids) expect(Buffer.from(id, 'base64url')).toHaveLength(32);
    expect(ids.size).toBe(10);
  });

  test.each([
    'an id that is no reference',
    '../../etc/passwd',
    '__proto__',
    7,
    { id: 'x' },
    ['x'],
    true,
    'A'.repeat(44),
  ])('a reference of another form leads to no grant: %j', async (planted) => {
    await open({
      routes: (app) =>
        app.get('/plant', (req, res) => {
          Reflect.set(req.session, 'oauth-app', planted);
          sendJson(res, {});
        }),
    });
    await visit('/plant');
    const me = await whoami(browser);
    expect([me.authorized, me.grantId]).toEqual([false, undefined]);
  });

  test('the session is saved before the redirect is sent, even by a slow store', async () => {
    const store = new session.MemoryStore();
    const set = store.set.bind(store);
    store.set = (...args) => setTimeout(set, 60, ...args);
    await open({ session: { store } });
    expect((await logIn()).status).toBe(302);
    expect(references(world)).toHaveLength(1);
    expect((await whoami(browser)).authorized).toBe(true);
  });

  test('the reference is there with keepSessionInfo as well, beside what the session had', async () => {
    await open({ authenticate: { keepSessionInfo: true }, routes: (app) => app.get('/visit', countVisit) });
    await visit('/visit');
    await logIn();
    const me = await whoami(browser);
    expect(me.session).toMatchObject({ visits: 1, 'oauth-app': me.grantId });
    expect(me.authorized).toBe(true);
  });

  test('two callbacks at once in one session end with one login that works', async () => {
    await open();
    await logIn();
    const [first, second] = [await world.begin(browser, { user: '1' }), await world.begin(browser, { user: '2' })];
    const pages = await Promise.all([visit(first), visit(second)]);
    expect(pages.map(({ status }) => status)).toEqual([302, 302]);
    const me = await whoami(browser);
    expect(me.authorized).toBe(true);
    expect(me.organizationDomain).toBe(me.user.id === '2' ? 'acme' : undefined);
    expect((await projects()).status).toBe(200);
  });
});

describe('grants under ids of the application', () => {
  test.each([
    ['nothing', undefined],
    ['an empty text', ''],
    ['a number', 7],
    ['a promise', Promise.resolve('1')],
    ['a text that is too long', 'x'.repeat(801)],
    ['a text that is too long when it is escaped', 'é'.repeat(134)],
    ['a lone surrogate', '\ud800'],
  ])('are refused at login where the option gives %s', async (_what, id) => {
    await open({ strategy: { grantId: (() => id) as () => string } });
    const page = await world.logIn(new Browser());
    expect([page.status, page.json().code]).toEqual([500, 'ERR_CONFIGURATION']);
    expect(world.errors[0]).toMatchObject({ option: 'grantId' });
    expect(grantKeys(world)).toEqual([]);
  });
});

const countVisit: Handler = (req, res) => {
  Reflect.set(req.session, 'visits', 1);
  sendJson(res, {});
};
