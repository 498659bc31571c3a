import { createHash, randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import express from 'express';
import session from 'express-session';
import { embedded, memoryTokenStore, requireAuthorization, Strategy, type TokenStore } from 'passport-oauth-app';
import type { Choice } from 'passport-oauth-app/emulator';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { Browser } from '../support/browser.js';
import {
  type Answer,
  answering,
  COOKIES,
  dataOf,
  FETCH,
  FRAME,
  FramedBrowser,
  forgedCode,
  hostOf,
  inFrame,
  REFUSED_PARAMETER,
  sessionWith,
  WINDOW,
} from '../support/framed.js';
import { browser, open as openWorld } from '../support/one-world.js';
import { roundsOf } from '../support/rounds.js';
import { grantKeys, stored } from '../support/session-entries.js';
import { threats } from '../support/threats.js';
import { type App, byUser, type Handler, sendJson, type World, type WorldOptions } from '../support/world.js';

interface Framed {
  readonly world: World;
  readonly browser: FramedBrowser;
  readonly clock: { now: number };
}

async function open(
  options: WorldOptions = {},
  embeddedOptions: object = {},
  authorization: object = {},
): Promise<Framed> {
  const clock = { now: Date.now() };
  const strategy = { clock: () => clock.now, ...options.strategy };
  const world = await openWorld(inFrame({ ...options, strategy }, embeddedOptions, authorization));
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${world.url}/callback`] });
  return { world, browser: new FramedBrowser(world), clock };
}

describe.for(['express', 'connect'] as const)('a login for a frame, with %s', (framework) => {
  test('ends in the frame, with the user and the grant in a new session', async () => {
    const { world, browser } = await open({ framework });
    const first = await browser.load('/board?x=1');
    expect(first.status).toBe(401);
    const button = dataOf(first);
    const { code } = dataOf(await browser.logIn(button));
    expect((await browser.take({ code, verifier: button.verifier })).status).toBe(204);
    expect((await browser.frame.visit(`${world.url}/login/frame`, { headers: FETCH })).status).toBe(204);
    const page = await browser.load('/board?x=1');
    expect([page.status, page.json()]).toEqual([200, { user: { id: '1' }, url: '/board?x=1' }]);
    expect(grantKeys(world)).toHaveLength(1);
    expect((await browser.frame.visit(`${world.url}/projects`, { headers: FETCH })).status).toBe(200);
  });

  test("leaves the user's tabs as they were, logged in as another user or not at all", async () => {
    const { world, browser } = await open({ framework });
    await world.logIn(browser.tabs, '2');
    const sessions = () => stored(world).filter(([, entry]) => !('grant' in entry));
    const before = [[...browser.tabs.cookies(world.url)], sessions()];
    const end = await browser.logIn(dataOf(await browser.load()), '1');
    expect(end.status).toBe(200);
    expect(end.headers.getSetCookie().filter((line) => line.startsWith('connect.sid'))).toEqual([]);
    expect([[...browser.tabs.cookies(world.url)], sessions()]).toEqual(before);
    expect((await browser.tabs.visit(`${world.url}/whoami`)).json().user).toEqual({ id: '2' });
    const stranger = new Browser();
    expect((await browser.logIn(dataOf(await browser.load()), '1', stranger)).status).toBe(200);
    expect([...stranger.cookies(world.url)]).toEqual([]);
  });
});

describe('the page of the button', () => {
  test('is a small page of its own, which the frame ancestors alone may frame', async () => {
    const { world, browser } = await open(
      {
        before: (app) =>
          app.use((req, res, next) => {
            req.headers['x-forwarded-proto'] = 'https';
            res.setHeader('X-Frame-Options', 'SAMEORIGIN');
            res.setHeader('Content-Security-Policy', "frame-ancestors 'self'");
            next();
          }),
        session: { proxy: true, cookie: COOKIES.partitioned },
      },
      { words: { lang: 'de', button: '<Anmelden>' } },
    );
    const page = await browser.load('/board?secret=1');
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).toContain(`frame-ancestors ${hostOf(world)}`);
    expect(policy).not.toMatch(/unsafe|\*|'self'; script/);
    expect(page.headers.get('x-frame-options')).toBeNull();
    expect(page.headers.getSetCookie()).toEqual([]);
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('location')).toBeNull();
    expect(page.text).not.toContain('secret=1');
    expect(page.text).toContain('<html lang="de">');
    expect(page.text).toContain('&#60;Anmelden&#62;');
    const end = await browser.logIn(dataOf(page));
    expect(end.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    for (const { text } of [page, end]) expect(Buffer.byteLength(text)).toBeLessThan(4096);
    const [nonce, other] = [page, end].map(({ text }) => /nonce="([^"]+)"/.exec(text)?.[1]);
    expect(nonce).not.toBe(other);
    expect(policy).toContain(`script-src 'nonce-${nonce}'`);
  });

  test('is the answer to every frame, and to nothing else', async () => {
    const { browser } = await open();
    for (const dest of ['iframe', 'frame', 'embed', 'object'])
      for (const site of ['cross-site', 'same-site', 'same-origin', 'none']) {
        const page = await browser.load('/board', {
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': dest,
          'sec-fetch-site': site,
        });
        expect([page.status, page.text]).toEqual([401, expect.stringContaining('<button')]);
      }
    const page = await browser.load('/board?x=1', {});
    expect([page.status, page.headers.get('location')]).toEqual([302, '/login?returnTo=%2Fboard%3Fx%3D1']);
    const data = await browser.load('/board', { ...FETCH, accept: 'application/json' });
    expect([data.status, data.json().code]).toEqual([401, 'ERR_NOT_AUTHORIZED']);
  });

  test.for(['lax', 'none'] as const)(
    'is an error with a session that is %s in a frame of another site, and works in one of its own',
    threats(94),
    async (kind) => {
      const { browser } = await open(sessionWith(COOKIES[kind]));
      const page = await browser.load();
      expect([page.status, page.json().code]).toEqual([500, 'ERR_SESSION_COOKIE']);
      const { 'sec-fetch-storage-access': _, ...own } = { ...FRAME, 'sec-fetch-site': 'same-site' };
      const button = dataOf(await browser.load('/board', own));
      const { code } = dataOf(await browser.logIn(button));
      expect((await browser.take({ code, verifier: button.verifier })).status).toBe(204);
      expect((await browser.load('/board', own)).status).toBe(200);
    },
  );
});

const grantsOf = async ({ strategy }: World) => {
  let count = 0;
  for await (const _grant of strategy.grants()) count++;
  return count;
};

describe('a code', threats(93), () => {
  const begin = async ({ browser }: Framed) => {
    const { verifier, ...button } = dataOf(await browser.load());
    const { code } = dataOf(await browser.logIn(button));
    return { code, verifier };
  };
  const isOut = async ({ browser }: Framed) => expect((await browser.load()).status).toBe(401);

  test('is refused with another verifier, and not used up by that', async () => {
    const framed = await open();
    const { code, verifier } = await begin(framed);
    const other = dataOf(await framed.browser.load()).verifier;
    for (const wrong of [other, '', createHash('sha256').update(verifier).digest('base64url')])
      expect((await framed.browser.take({ code, verifier: wrong })).status).toBe(403);
    await isOut(framed);
    expect((await framed.browser.take({ code, verifier })).status).toBe(204);
  });

  test('is used once, also by twenty at once', async () => {
    const framed = await open();
    const body = await begin(framed);
    const jars = Array.from({ length: 20 }, () => new Browser());
    const statuses = await Promise.all(jars.map(async (jar) => (await framed.browser.take(body, FETCH, jar)).status));
    expect(statuses.sort()).toEqual([204, ...Array.from({ length: 19 }, () => 403)]);
    expect((await framed.browser.take(body)).status).toBe(403);
  });

  test('ends after a minute', async () => {
    const framed = await open();
    const [late, early] = [await begin(framed), await begin(framed)];
    framed.clock.now += 59_000;
    expect((await framed.browser.take(early)).status).toBe(204);
    framed.clock.now += 1_000;
    expect((await framed.browser.take(late)).status).toBe(403);
  });

  test('survives rubbish and requests of other origins', async () => {
    const framed = await open();
    const { code, verifier } = await begin(framed);
    const { browser, world } = framed;
    for (const body of ['', '{', '[]', 'null', '{"code":1}', { code }, { verifier }, 'x'.repeat(70_000)])
      expect([400, 413]).toContain((await browser.take(body)).status);
    for (const text of [`${code}x`, code.slice(1), verifier])
      expect((await browser.take({ code: text, verifier })).status).toBe(403);
    for (const site of ['cross-site', 'same-site', 'none'])
      expect((await browser.take({ code, verifier }, { 'sec-fetch-site': site })).status).toBe(403);
    for (const origin of ['https://evil.example', 'null', hostOf(world)])
      expect((await browser.take({ code, verifier }, { origin, 'x-requested-with': 'fetch' })).status).toBe(403);
    expect((await browser.take({ code, verifier }, { origin: world.url })).status).toBe(403);
    expect((await browser.take({ code, verifier }, {})).status).toBe(403);
    await isOut(framed);
    const older = { origin: world.url, 'x-requested-with': 'fetch' };
    expect((await browser.take({ code, verifier }, older)).status).toBe(204);
  });

  test.for(['express', 'connect'] as const)(
    'in a body that is too long is refused, and the connection goes on, with %s',
    async (framework) => {
      const framed = await open({ framework });
      const { code, verifier } = await begin(framed);
      const { host, hostname, port } = new URL(framed.world.url);
      const post = (body: string, header: string) =>
        `POST /login/frame HTTP/1.1\r\nHost: ${host}\r\nSec-Fetch-Site: same-origin\r\n${header}\r\n\r\n${body}`;
      const long = JSON.stringify({ code, verifier, more: 'x'.repeat(2_000_000) });
      const short = JSON.stringify({ code, verifier });
      const socket = connect(Number(port), hostname);
      socket.write(post(long, `Content-Length: ${long.length}`));
      socket.write(post(`${long.length.toString(16)}\r\n${long}\r\n0\r\n\r\n`, 'Transfer-Encoding: chunked'));
      socket.write(post(short, `Content-Length: ${short.length}\r\nConnection: close`));
      expect([...(await text(socket)).matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)).toEqual([
        ...['413', '413', '204'],
      ]);
    },
  );

  test.for<[title: string, parse: Handler]>([
    ['has read it', express.json() as Handler],
    // As those of Express 4 do.
    ['leaves an empty object of what it does not read', (req, _res, next) => next(void Reflect.set(req, 'body', {}))],
  ])('is taken behind a parser that %s', async ([, parse]) => {
    const before = (app: App) => {
      sessionWith(COOKIES.partitioned).before?.(app);
      app.use(parse);
    };
    const framed = await open({ before });
    expect((await framed.browser.take(await begin(framed))).status).toBe(204);
  });

  test('of another strategy or another callback URL is refused, in one token store', async () => {
    const tokenStore = memoryTokenStore();
    const one = await open({ strategy: { tokenStore } });
    const body = await begin(one);
    for (const own of [{ name: 'other' }, { callbackURL: '/other' }]) {
      const other = await open({ running: one.world.service, strategy: { tokenStore, ...own } });
      expect((await other.browser.take(body)).status).toBe(403);
    }
    expect((await one.browser.take(body)).status).toBe(204);
  });

  test('forged with the client secret logs nobody in', threats(100), async () => {
    const framed = await open();
    const { verifier } = dataOf(await framed.browser.load());
    const code = forgedCode(framed.world, verifier, framed.clock.now);
    expect((await framed.browser.take({ code, verifier })).status).toBe(403);
    await isOut(framed);
  });

  test('is random, and neither the store nor its reader has it or the session behind it', async () => {
    const tokenStore = memoryTokenStore();
    const set = vi.spyOn(tokenStore, 'set');
    const framed = await open({ strategy: { tokenStore, encryptionKeys: [randomBytes(32).toString('base64url')] } });
    const { code, verifier } = await begin(framed);
    expect(code).toMatch(/^[\w-]{43}$/);
    const [[id, record] = []] = set.mock.calls.filter(([each]) => each.startsWith('frame:'));
    expect(JSON.stringify([id, record])).not.toContain(code);
    expect(record?.sealed.split('.')).toHaveLength(5);
    expect((await framed.browser.take({ code, verifier })).status).toBe(204);
    expect(await tokenStore.get(id ?? '')).toBeUndefined();
  });

  test('leads to a session of up to 1 MB; a larger one is too large, as the popup says', async () => {
    const sizes = { at: 0 };
    const framed = await open({
      callback: answering((req, res) => {
        Object.assign(req.session, { notes: 'x'.repeat(sizes.at) });
        res.end();
      }),
    });
    const { browser, world } = framed;
    sizes.at = 1024 * 1024;
    const { url } = dataOf(await browser.load());
    const end = await browser.logIn({ url });
    expect([end.status, end.text]).toEqual([500, expect.stringContaining('1 MB')]);
    await expect.poll(() => grantKeys(world)).toEqual([]);
    sizes.at -= 1024;
    expect((await browser.take(await begin(framed))).status).toBe(204);
    expect((await browser.load()).status).toBe(200);
  });

  test('is an error where the session of the frame cannot be saved', async () => {
    const store = new session.MemoryStore();
    const framed = await open({ session: { proxy: true, cookie: COOKIES.partitioned, store } });
    const body = await begin(framed);
    store.set = (_id, _session, done) => done?.(new Error('down'));
    const answer = await framed.browser.take(body);
    expect([answer.status, answer.json().code]).toEqual([503, 'ERR_SESSION_STORE']);
  });

  test.for(['express', 'connect'] as const)('that the store does not take is an error, with %s', async (framework) => {
    const tokenStore = memoryTokenStore();
    const { set } = tokenStore;
    const { browser, world } = await open({ framework, strategy: { tokenStore } });
    tokenStore.set = async (id, grant) => {
      if (id.startsWith('frame:')) throw new Error('down');
      return set(id, grant);
    };
    const end = await browser.logIn(dataOf(await browser.load()));
    expect([end.status, end.json().code]).toEqual([503, 'ERR_TOKEN_STORE']);
    await expect.poll(() => grantsOf(world)).toBe(0);
  });

  test('gives the frame another session, in place of the one it had and of its grant', async () => {
    const framed = await open();
    await framed.browser.take(await begin(framed));
    const [first] = grantKeys(framed.world);
    const session = () => framed.browser.frame.cookies(framed.world.url).get('connect.sid');
    const former = session();
    const { verifier, ...button } = dataOf(await new FramedBrowser(framed.world).load());
    const { code } = dataOf(await framed.browser.logIn(button));
    await framed.browser.take({ code, verifier });
    await expect.poll(() => grantKeys(framed.world)).toHaveLength(1);
    expect(grantKeys(framed.world)).not.toContain(first);
    expect([former, session()]).toEqual([expect.any(String), expect.not.stringContaining(former ?? '')]);
  });
});

describe('the grant of a code', threats(93), () => {
  /** Two processes of an application, over one session store; `later` lets two minutes pass, and the codes' timers run. */
  const processes = async (tokenStore?: TokenStore) => {
    const clock = { now: Date.now() };
    const timers = vi.spyOn(globalThis, 'setTimeout');
    onTestFinished(() => timers.mockRestore());
    const options = inFrame({
      ...sessionWith(COOKIES.partitioned),
      session: { proxy: true, cookie: COOKIES.partitioned, store: new session.MemoryStore() },
      strategy: { clock: () => clock.now, revocationPath: '/oauth/revoke', ...(tokenStore ? { tokenStore } : {}) },
    });
    const one = await openWorld(options);
    const other = await openWorld({ ...options, running: one.service });
    const { service } = one;
    const redirectUrls = [one, other].map(({ url }) => `${url}/callback`);
    service.register({ clientID: service.options.clientID, redirectUrls });
    const later = async () => {
      clock.now += 120_000;
      const due = timers.mock.calls.flatMap(([run, ms]) => (ms === 60_000 ? [run] : []));
      timers.mockClear();
      for (const run of due) run();
      // What the timers do is done before this: one store has it all.
      for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
      return service.requests.filter(({ path }) => path === '/oauth/revoke').length;
    };
    return { one, other, clock, later };
  };

  const STORES: [string, () => TokenStore | undefined][] = [
    ['with locks', () => memoryTokenStore()],
    ['without locks', () => undefined],
  ];

  test.for(STORES)('that another process took stays, with a store %s', async ([, storeOf]) => {
    const { one, other, later } = await processes(storeOf());
    const browser = new FramedBrowser(other);
    const { verifier, url } = dataOf(await new FramedBrowser(one).load());
    const { code } = dataOf(await new FramedBrowser(one).logIn({ url }));
    expect((await browser.take({ code, verifier })).status).toBe(204);
    expect(await later()).toBe(0);
    expect((await browser.load()).status).toBe(200);
  });

  test.for(STORES)('stays after a consent of 9.5 minutes, with a store %s', async ([, storeOf]) => {
    const { one, clock, later } = await processes(storeOf());
    const browser = new FramedBrowser(one);
    const { verifier, url } = dataOf(await browser.load());
    const begun = await browser.tabs.visit(one.url + url, { headers: WINDOW });
    const callback = await one.service.approve(begun.headers.get('location') ?? '');
    clock.now += 9.5 * 60_000;
    const { code } = dataOf(await browser.tabs.visit(callback));
    expect((await browser.take({ code, verifier })).status).toBe(204);
    expect(await later()).toBe(0);
    expect((await browser.load()).status).toBe(200);
  });

  test('goes where nobody takes the code, with what the code names, and nothing is revoked', async () => {
    const tokenStore = memoryTokenStore();
    const set = vi.spyOn(tokenStore, 'set');
    const { one, later } = await processes(tokenStore);
    const browser = new FramedBrowser(one);
    await browser.logIn(dataOf(await browser.load()));
    expect(await grantsOf(one)).toBe(1);
    const id = set.mock.calls.flatMap(([each]) => (each.startsWith('frame:') ? [each] : []))[0] ?? '';
    expect(await tokenStore.get(id)).toBeDefined();
    const revocations = await later();
    expect([await grantsOf(one), revocations, await tokenStore.get(id)]).toEqual([0, 0, undefined]);
  });

  test('that the frame had before goes, and is not revoked', async () => {
    const { one, later } = await processes(memoryTokenStore());
    const browser = new FramedBrowser(one);
    const buttons = [dataOf(await browser.load()), dataOf(await browser.load())];
    for (const { verifier, url } of buttons) {
      const { code } = dataOf(await browser.logIn({ url }));
      expect((await browser.take({ code, verifier })).status).toBe(204);
    }
    expect(await later()).toBe(0);
    expect(await grantsOf(one)).toBe(1);
    expect((await browser.load()).status).toBe(200);
  });
});

const deny = (res: ServerResponse) => res.writeHead(302, { Location: '/denied' }).end('denied');

describe('a login that the callback route refuses', threats(99), () => {
  test.for<[how: string, answer: Answer, status?: number]>([
    ['destroys the session', ({ session }, res) => session.destroy(() => deny(res))],
    ['regenerates the session', ({ session }, res) => session.regenerate(() => deny(res))],
    [
      'regenerates the session for a message',
      (req, res) => req.session.regenerate(() => deny(Object.assign(req.session, { message: 'denied' }) && res)),
    ],
    ['sets it to null', (req, res) => deny(Object.assign(req, { session: null }) && res)],
    ['logs out', (req, res) => req.logout(() => deny(res))],
    ['logs out, and keeps the session', (req, res) => req.logout({ keepSessionInfo: true }, () => deny(res))],
    [
      'destroys the session after a piece',
      ({ session }, res) =>
        res.writeHead(302, { Location: '/denied' }).write('denied') && session.destroy(() => res.end()),
    ],
    ['logs out as soon as it has answered', (req, res) => deny(res) && req.logout(() => {})],
    ['answers with 403', (_req, res) => sendJson(Object.assign(res, { statusCode: 403 }), { text: 'denied' }), 403],
    ['answers with 500', (_req, res) => res.writeHead(500, 'Oh', { 'Content-Type': 'text/plain' }).end('denied'), 500],
  ])('leaves the frame logged out, and shows its answer: %s', async ([, answer, status = 302]) => {
    const { browser, world } = await open({ callback: answering(answer) });
    const end = await browser.logIn(dataOf(await browser.load()));
    expect([end.status, end.text]).toEqual([status, expect.stringContaining('denied')]);
    expect(end.headers.get('location')).toBe(status === 302 ? '/denied' : null);
    expect(end.headers.getSetCookie().filter((line) => line.startsWith('connect.sid'))).toEqual([]);
    expect((await browser.load()).status).toBe(401);
    await expect.poll(() => grantKeys(world)).toEqual([]);

    const strategy = { grantId: byUser, tokenStore: memoryTokenStore() };
    const options = inFrame(
      { strategy: strategy as object, callback: answering(answer) },
      { identify: () => ({ id: '1' }) },
    );
    const identified = await openWorld(options);
    const popup = new FramedBrowser(identified);
    const again = await popup.logIn(dataOf(await popup.load()));
    expect([again.status, again.text]).toEqual([status, expect.stringContaining('denied')]);
    await expect.poll(async () => (await popup.load()).status).toBe(401);
  });

  test.for<[how: string, refuse: (req: Parameters<Answer>[0]) => unknown]>([
    ['destroys the session', ({ session }) => session.destroy(() => {})],
    ['regenerates the session', ({ session }) => session.regenerate(() => {})],
    ['logs out', (req) => req.logout(() => {})],
  ])('after its answer was sent makes the code worthless: %s', async ([, refuse]) => {
    const strategy = { tokenStore: memoryTokenStore() };
    const { browser, world } = await open({ strategy, callback: answering((req, res) => res.end(() => refuse(req))) });
    const { verifier, ...button } = dataOf(await browser.load());
    const { code } = dataOf(await browser.logIn(button));
    expect((await browser.take({ code, verifier })).status).toBe(403);
    await expect.poll(() => grantsOf(world)).toBe(0);
  });

  test('has a session that behaves, or says what it cannot do', async () => {
    const seen: unknown[] = [];
    const { browser, world } = await open({
      callback: answering((req, res) => {
        const { session } = req;
        expect(() => session.id).toThrow(expect.objectContaining({ code: 'ERR_NO_SESSION' }));
        session.touch().cookie.maxAge = 3_600_000;
        Object.assign(session, { unsaved: true });
        session.reload(() => {
          seen.push(req.sessionID, Object.keys(req.session).sort());
          Object.assign(req.session, { kept: true }).cookie.maxAge = 7_200_000;
          res.end();
        });
      }),
      routes: (app) =>
        app.use('/session', (req, res) =>
          sendJson(res, { ...Reflect.get(req, 'session'), id: Reflect.get(req, 'sessionID') }),
        ),
    });
    const { verifier, ...button } = dataOf(await browser.load());
    const { code } = dataOf(await browser.logIn(button));
    expect(seen).toEqual([undefined, ['oauth-app', 'passport']]);
    expect((await browser.take({ code, verifier })).status).toBe(204);
    const page = (await browser.frame.visit(`${world.url}/session`)).json();
    expect([page.kept, page.unsaved, page.id]).toEqual([true, undefined, expect.any(String)]);
    expect(page.cookie.originalMaxAge).toBeGreaterThan(7_100_000);
    expect(page.cookie.originalMaxAge).toBeLessThanOrEqual(7_200_000);
  });
});

describe('a popup', threats(93), () => {
  test('that a foreign page, a sibling, a link or a frame has opened begins no login', async () => {
    const { browser, world } = await open();
    const { url } = dataOf(await browser.load());
    for (const headers of [
      ...['cross-site', 'same-site', 'none'].map((site) => ({ ...WINDOW, 'sec-fetch-site': site })),
      { ...WINDOW, 'sec-fetch-dest': 'iframe' },
      { ...WINDOW, 'sec-purpose': 'prefetch' },
    ]) {
      const page = await browser.tabs.visit(world.url + url, { headers });
      expect([page.status, page.headers.getSetCookie()]).toEqual([403, []]);
      expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    }
    for (const handle of ['', 'x', url.slice(-20)])
      expect((await browser.tabs.visit(`${world.url}/login?frame=${handle}`, { headers: WINDOW })).status).toBe(403);
    expect(world.service.requests).toEqual([]);
  });

  test('whose login is declined or fails shows what the application says, and gives no code', async () => {
    const { browser, world } = await open();
    const { url } = dataOf(await browser.load());
    const begun = await browser.tabs.visit(world.url + url, { headers: WINDOW });
    const callback = await world.service.approve(begun.headers.get('location') ?? '', { decline: true });
    const declined = await browser.tabs.visit(callback);
    expect([declined.status, declined.text]).toEqual([401, 'Unauthorized']);
    world.service.fail('token', { status: 400, body: { error: 'invalid_client' } });
    const failed = await browser.logIn({ url });
    expect([failed.status, failed.json().code]).toEqual([502, 'ERR_TOKEN_REFUSED']);
    expect(grantKeys(world)).toEqual([]);
  });

  test.for<[string, Answer]>([
    ['a page', (_req, res) => res.end('welcome')],
    [
      'several pieces',
      (_req, res) => {
        res.flushHeaders();
        res.write('a', () => res.end('b'));
      },
    ],
    ['writeHead', (_req, res) => res.writeHead(302, { Location: '/' }).end()],
  ])('ends alike where the callback answers with %s', async ([, answer]) => {
    const { browser } = await open({ callback: answering(answer) });
    const { verifier, ...button } = dataOf(await browser.load());
    const end = await browser.logIn(button);
    expect([end.status, end.headers.get('location')]).toEqual([200, null]);
    expect((await browser.take({ code: dataOf(end).code, verifier })).status).toBe(204);
  });

  test.for(['before', 'beforeClient'] as const)(
    'keeps its opener where the application sets Cross-Origin-Opener-Policy, %s embedded()',
    threats(126),
    async (where) => {
      const cut: Handler = (_req, res, next) => next(void res.setHeader('Cross-Origin-Opener-Policy', 'same-origin'));
      const own = sessionWith(COOKIES.partitioned);
      const both = (app: App) => {
        own.before?.(app);
        app.use(cut);
      };
      const { browser, world } = await open(where === 'before' ? { ...own, before: both } : { beforeClient: both });
      const { url } = dataOf(await browser.load());
      const begun = await browser.tabs.visit(world.url + url, { headers: WINDOW });
      const [end, declined] = [await browser.logIn({ url }), await browser.logIn({ url }, { decline: true })];
      for (const page of [begun, end, declined]) expect(page.headers.get('cross-origin-opener-policy')).toBeNull();
      expect(declined.status).toBe(401);
    },
  );

  test('that a time-out answers shows that where it comes first, and its page where it comes later', async () => {
    const late = new Set<() => unknown>();
    const tokenStore = memoryTokenStore();
    const { set } = tokenStore;
    tokenStore.set = async (id, grant) => {
      if (id.startsWith('frame:')) for (const answer of late) answer();
      return set(id, grant);
    };
    const expire = (res: ServerResponse) => sendJson(Object.assign(res, { statusCode: 503 }), { text: 'timed out' });
    const isFirst = { value: true };
    const { browser } = await open({
      strategy: { tokenStore },
      callback: answering((_req, res) => {
        if (isFirst.value) expire(res);
        else late.add(() => expire(res));
        res.end('welcome');
      }),
    });
    const { verifier, ...button } = dataOf(await browser.load());
    const first = await browser.logIn(button);
    expect([first.status, first.text]).toEqual([503, '{"text":"timed out"}']);
    isFirst.value = false;
    const end = await browser.logIn(button);
    expect([end.status, end.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect((await browser.take({ code: dataOf(end).code, verifier })).status).toBe(204);
  });

  test('has an address that works for ten minutes', async () => {
    const { browser, world, clock } = await open();
    const { url } = dataOf(await browser.load());
    const statusOf = async () => (await browser.tabs.visit(world.url + url, { headers: WINDOW })).status;
    clock.now += 599_000;
    expect(await statusOf()).toBe(302);
    clock.now += 1_000;
    expect(await statusOf()).toBe(403);
  });

  test("counts no rounds of the user's tabs", async () => {
    const { browser, world } = await open();
    const { name, value } = await roundsOf(world, '1');
    const tabs = browser.tabs.cookies(world.url);
    tabs.set(name, value);
    expect((await browser.logIn(dataOf(await browser.load()))).status).toBe(200);
    expect([...tabs]).toEqual([[name, value]]);
  });

  test('needs a strategy that stands where embedded() knows of it', async () => {
    const { browser, world } = await open();
    const { url } = dataOf(await browser.load());
    const begun = await browser.tabs.visit(world.url + url, { headers: WINDOW });
    const callback = await world.service.approve(begun.headers.get('location') ?? '');
    const other = await openWorld({ running: world.service, strategy: { callbackURL: '/callback' } });
    const [name, value] = [...browser.tabs.cookies(world.url)].find(([each]) => each.includes('.login.')) ?? [];
    const page = await new Browser().visit(callback.replace(world.url, other.url), {
      headers: { cookie: `${name}=${value}` },
    });
    expect([page.status, page.json().code]).toEqual([500, 'ERR_MIDDLEWARE_ORDER']);
  });
});

test('a frame whose grant lacks a scope gets the button, which asks for it and for what is granted', async () => {
  const { world, browser } = await open({ strategy: { scope: 'project' } });
  const { requests } = world.service;
  const asked = () => requests.flatMap(({ query }) => (typeof query.scope === 'string' ? [query.scope] : []));
  const logIn = async (path: string) => {
    const { verifier, url } = dataOf(await browser.load(path));
    expect(url).not.toContain('project');
    await browser.take({ code: dataOf(await browser.logIn({ url })).code, verifier });
    return browser.load(path);
  };
  expect((await logIn('/board')).status).toBe(200);
  expect((await browser.load('/deep', { ...FETCH, accept: '*/*' })).status).toBe(403);
  expect((await logIn('/deep')).status).toBe(200);
  expect(asked()).toEqual(['project', 'project tm']);
  expect(grantKeys(world)).toHaveLength(1);
});

describe('scopes that are refused in a popup', threats(83), () => {
  const project = { strategy: { scope: 'project' } };
  const handOver = async ({ browser }: Framed, path: string, choice: Choice = {}) => {
    const { verifier, ...button } = dataOf(await browser.load(path));
    const end = await browser.logIn(button, choice);
    const result = dataOf(end);
    if (result.code) expect((await browser.take({ code: result.code, verifier })).status).toBe(204);
    return { end, result };
  };
  const refusal = async ({ browser }: Framed, path: string) => {
    const { status, json } = await browser.load(path);
    return [status, json().code, json().name];
  };
  const REFUSED = [403, 'ERR_INSUFFICIENT_SCOPE', 'NotAuthorizedError'];

  test.for([
    ['left out', { scope: ['project'] }],
    ['declined', { decline: true }],
  ] as const)('end in a 403 of the frame, and not in the button: %s', async ([how, choice]) => {
    const framed = await open(project);
    const { browser, clock, world } = framed;
    await handOver(framed, '/board');
    const { end, result } = await handOver(framed, '/deep?x=1', choice);
    expect([end.status, result.code === undefined]).toEqual(how === 'declined' ? [403, true] : [200, false]);
    const again = `/deep?x=1&${REFUSED_PARAMETER}=${result.refused}`;
    expect(await refusal(framed, again)).toEqual(REFUSED);
    expect(await refusal(framed, again)).toEqual(REFUSED);
    expect((await browser.load('/board')).status).toBe(200);
    // A click leads to the page itself, and a minute passes.
    expect((await browser.load('/deep?x=1')).text).toContain('<button');
    clock.now += 61_000;
    expect((await browser.load(again)).text).toContain('<button');
    expect(grantKeys(world)).toHaveLength(1);
  });

  test('leave the tabs of the user as they were', async () => {
    const framed = await open({ ...project, session: { cookie: COOKIES.partitioned, proxy: true } });
    const { browser, world } = framed;
    await world.logIn(browser.tabs);
    await handOver(framed, '/board');
    const before = [...browser.tabs.cookies(world.url)];
    for (const choice of [{ scope: ['project'] }, { decline: true }]) await handOver(framed, '/deep', choice);
    expect([...browser.tabs.cookies(world.url)]).toEqual(before);
    expect((await browser.tabs.visit(`${world.url}/deep`)).headers.get('location')).toBe('/login?returnTo=%2Fdeep');
  });

  test('by the login of a frame end in a 403 as well, and one that is declined shows what the application says', async () => {
    const framed = await open(project);
    const { result } = await handOver(framed, '/deep', { scope: ['project'] });
    expect(await refusal(framed, `/deep?${REFUSED_PARAMETER}=${result.refused}`)).toEqual(REFUSED);
    const stranger = new FramedBrowser(framed.world);
    const declined = await stranger.logIn(dataOf(await stranger.load('/deep')), { decline: true });
    expect([declined.status, declined.text]).toEqual([401, 'Unauthorized']);
  });

  test('are told by the application alone, and for their own page', async () => {
    const framed = await open(project);
    await handOver(framed, '/board');
    const { result } = await handOver(framed, '/deep', { decline: true });
    for (const text of ['', 'tm', `${result.refused}x`, result.refused.slice(1)])
      expect((await framed.browser.load(`/deep?${REFUSED_PARAMETER}=${text}`)).text).toContain('<button');
    const other = await open(project);
    await handOver(other, '/board');
    expect((await other.browser.load(`/deep?${REFUSED_PARAMETER}=${result.refused}`)).text).toContain('<button');
    const stranger = new FramedBrowser(framed.world);
    expect((await stranger.load(`/deep?${REFUSED_PARAMETER}=${result.refused}`)).text).toContain('<button');
  });
});

describe('embedded()', () => {
  test('says so where it stands after apiClient, before the session, or after the routes', async () => {
    const { beforeClient, routes, ...usual } = inFrame();
    const messageOf = async (options: WorldOptions) =>
      (await new FramedBrowser(await openWorld(options)).load()).json();
    const late = (app: App, world: World) => {
      beforeClient?.(app, world);
      routes?.(app, world);
    };
    const order = (text: string) => ({ code: 'ERR_MIDDLEWARE_ORDER', message: expect.stringContaining(text) });
    expect(await messageOf({ ...usual, routes: late })).toMatchObject(order('before apiClient'));
    let mounted: Handler | undefined;
    const guarded = (app: App, { strategy }: World) => {
      const frame = embedded(strategy, {
        path: '/f',
        login: '/login',
        frameAncestors: ['http://service.localhost'],
      }) as Handler;
      mounted = frame;
      app.use('/board', requireAuthorization({ frame } as object) as Handler);
    };
    expect(await messageOf({ ...usual, routes: guarded })).toMatchObject(order('before the routes'));
    const before = (app: App) => {
      usual.before?.(app);
      app.use((req, res, next) => mounted?.(req, res, next));
    };
    expect(await messageOf({ ...usual, before, routes: guarded })).toMatchObject(order('after the session'));
  });

  const strategyOf = (world: World, more: object = {}) => {
    const strategy = new Strategy({ ...world.service.options, callbackURL: '/callback', scope: 'tm', ...more });
    onTestFinished(() => strategy.close());
    return strategy;
  };

  test('refuses options that it cannot work with, by name', async () => {
    const { world } = await open();
    const strategy = strategyOf(world);
    const usual = { path: '/login/frame', login: '/login', frameAncestors: ['https://cad.example.com'] };
    for (const [option, value] of [
      ['path', 'login'],
      ['path', '//evil'],
      ['path', '/a?b'],
      ['path', undefined],
      ['login', ''],
      ['login', undefined],
      ['frameAncestors', []],
      ['frameAncestors', undefined],
      ['frameAncestors', 'https://cad.example.com'],
      ['frameAncestors', ['http://cad.example.com']],
      ['frameAncestors', ['https://cad.example.com/']],
      ['frameAncestors', ['https://cad.example.com/path']],
      ['frameAncestors', ['https://*.example.com']],
      ['frameAncestors', ['*']],
      ['frameAncestors', ["https://a.com; script-src 'unsafe-inline'"]],
      ['identify', 'user'],
      ['identify', () => undefined],
      ['words', { buton: 'x' }],
      ['hosts', ['https://cad.example.com']],
    ] as const)
      expect(() => embedded(strategy, { ...usual, [option]: value } as never), `${option} ${value}`).toThrow(
        new RegExp(`^${option}`),
      );
    expect(() => requireAuthorization({ frame: () => {} })).toThrow(/^frame/);
    embedded(strategy, {
      ...usual,
      frameAncestors: ['http://service.localhost:4000', 'http://127.0.0.1:1', 'https://a.b:8443'],
    });
    embedded(strategyOf(world, { grantId: () => 'one' }), { ...usual, identify: () => undefined });
  });
});

test('a login without sessions keeps the page to return to', async () => {
  const world = await openWorld({
    session: false,
    strategy: { grantId: () => 'one', tokenStore: memoryTokenStore() },
    authenticate: { session: false },
    routes: (app) => app.use('/home', (_req, res) => sendJson(res, {})),
  });
  const page = await browser.visit(await world.begin(browser, {}, '/login?returnTo=/board%3Fx%3D1'));
  expect([page.status, page.headers.get('location')]).toEqual([302, '/board?x=1']);
});
