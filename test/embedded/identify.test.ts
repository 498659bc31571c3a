import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { jwtVerify, SignJWT } from 'jose';
import { memoryTokenStore } from 'passport-oauth-app';
import { describe, expect, test } from 'vitest';
import { dataOf, FETCH, FRAME, FramedBrowser, inFrame, WINDOW } from '../support/framed.js';
import { open as openWorld } from '../support/one-world.js';
import { threats } from '../support/threats.js';
import type { World } from '../support/world.js';

const SECRET = new TextEncoder().encode('the secret of the service, 32 bytes long');

const sign = (claims: object, secret: Uint8Array = SECRET) =>
  new SignJWT({ sub: '1', aud: 'app', ...claims }).setProtectedHeader({ alg: 'HS256' }).sign(secret);
const inAnHour = Math.floor(Date.now() / 1000) + 3600;

/** Reads the token of the frame's address, or of its API requests. */
async function identify(req: IncomingMessage): Promise<{ id: string } | undefined> {
  const token =
    new URL(req.url ?? '', 'http://a').searchParams.get('jwtToken') ??
    req.headers.authorization?.slice('Bearer '.length);
  if (!token) return undefined;
  const { payload } = await jwtVerify(token, SECRET, { algorithms: ['HS256'], audience: 'app' });
  return payload.sub === 'deleted' ? undefined : { id: String(payload.sub) };
}

async function open(session?: false): Promise<{ world: World; browser: FramedBrowser }> {
  const strategy = {
    grantId: (_req: unknown, user: unknown) => (user as { id: string }).id,
    tokenStore: memoryTokenStore(),
    callbackURL: '/callback',
  };
  const noSession = session === false ? { session, authenticate: { session: false } } : {};
  const world = await openWorld(inFrame({ strategy: strategy as object, ...noSession }, { identify }));
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${world.url}/callback`] });
  return { world, browser: new FramedBrowser(world) };
}

describe.for([
  ['without sessions', false],
  ['with sessions', undefined],
] as const)('a frame that names its user by a signed token, %s', ([, session]) => {
  test('is logged in by a popup, with no cookie in the frame; its API requests take the token too', async () => {
    const { world, browser } = await open(session);
    const token = await sign({ exp: inAnHour });
    const page = await browser.load(`/board?jwtToken=${token}`);
    expect([page.status, page.text]).toEqual([401, expect.stringContaining('<button')]);
    expect(page.text).not.toContain(token);
    const end = await browser.logIn(dataOf(page));
    expect([end.status, dataOf(end).code]).toEqual([200, undefined]);
    const board = await browser.load(`/board?jwtToken=${token}`);
    expect([board.status, board.json().user]).toEqual([200, { id: '1' }]);
    const api = await browser.frame.visit(`${world.url}/api`, {
      headers: { ...FETCH, accept: '*/*', authorization: `Bearer ${token}` },
    });
    expect([api.status, api.json().user]).toEqual([200, { id: '1' }]);
    expect([...browser.frame.cookies(world.url)]).toEqual([]);
    const stranger = await sign({ exp: inAnHour, sub: '2' });
    expect((await browser.load(`/board?jwtToken=${stranger}`)).status).toBe(401);
  });

  test('refuses another user in the popup, who is told so, and stores nothing', threats(96), async () => {
    const { world, browser } = await open(session);
    const button = dataOf(await browser.load(`/board?jwtToken=${await sign({ exp: inAnHour })}`));
    const end = await browser.logIn(button, '2');
    expect([end.status, end.text]).toEqual([403, expect.stringContaining('ERR_OTHER_ACCOUNT')]);
    expect(end.text).toContain('another account');
    expect(world.errors.map(({ code, status }) => [code, status])).toEqual([['ERR_OTHER_ACCOUNT', 403]]);
    for (const sub of ['1', '2'])
      expect((await browser.load(`/board?jwtToken=${await sign({ exp: inAnHour, sub })}`)).status).toBe(401);
    expect(
      await world.strategy
        .client('2')
        .accessToken()
        .catch(({ code }) => code),
    ).toBe('ERR_NOT_AUTHORIZED');
  });

  test(
    'takes a token that is expired, of another audience or key, unsigned or of no user for nobody',
    threats(95),
    async () => {
      const { world, browser } = await open(session);
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
      const claims = { sub: '1', aud: 'app', exp: inAnHour };
      const none = `${part({ alg: 'none' })}.${part(claims)}.`;
      const other = `${part({ alg: 'HS512' })}.${part(claims)}`;
      const bad = {
        expired: await sign({ exp: inAnHour - 7200 }),
        'of another audience': await sign({ exp: inAnHour, aud: 'other' }),
        'of another key': await sign({ exp: inAnHour }, new TextEncoder().encode('another secret that is 32 bytes!')),
        none,
        'of another algorithm': `${other}.${createHmac('sha512', SECRET).update(other).digest('base64url')}`,
        rubbish: 'rubbish',
        'of a user who is gone': await sign({ exp: inAnHour, sub: 'deleted' }),
        missing: '',
      };
      for (const [what, token] of Object.entries(bad)) {
        const page = await browser.load(`/board?jwtToken=${token}`);
        expect([what, page.status, page.text.includes('<button')]).toEqual([what, 401, false]);
        expect([page.headers.get('location'), page.headers.getSetCookie()]).toEqual([null, []]);
        if (token) expect(page.text + JSON.stringify(world.errors)).not.toContain(token);
      }
      const good = await sign({ exp: inAnHour });
      const tab = await browser.tabs.visit(`${world.url}/board?jwtToken=${bad.expired}`);
      expect([tab.status, tab.headers.get('location')]).toEqual([302, '/login?returnTo=%2Fboard']);
      expect(tab.headers.getSetCookie().join()).not.toContain('jwtToken');
      const window = await browser.tabs.visit(`${world.url}/board?jwtToken=${good}`);
      expect([window.status, window.headers.get('location')]).toEqual([401, null]);
    },
  );

  test('keeps a handle that was sent to somebody else from doing anything', threats(93, 96), async () => {
    const { world, browser } = await open(session);
    const { url } = dataOf(await browser.load(`/board?jwtToken=${await sign({ exp: inAnHour })}`));
    const mail = { ...WINDOW, 'sec-fetch-site': 'none' };
    expect((await browser.tabs.visit(world.url + url, { headers: mail })).status).toBe(403);
    expect((await browser.logIn({ url }, '2')).status).toBe(403);
  });
});

test("a frame whose token is nobody's gets no session of the browser, and a tab gets it", threats(95), async () => {
  const { world, browser } = await open();
  await world.logIn(browser.frame);
  for (const token of ['', await sign({ exp: inAnHour - 7200 }), await sign({ exp: inAnHour, aud: 'other' })]) {
    const page = await browser.load(`/board?jwtToken=${token}`);
    expect([page.status, page.text.includes('<button')]).toEqual([401, false]);
  }
  expect((await browser.load('/board', {})).status).toBe(200);
});

test('a tab beside such frames keeps its query, and steps up for a page with one', async () => {
  const strategy = { grantId: () => '1', tokenStore: memoryTokenStore(), scope: 'project' };
  const world = await openWorld(inFrame({ strategy }, { identify }));
  world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${world.url}/callback`] });
  const { tabs } = new FramedBrowser(world);
  await world.logIn(tabs);
  const expired = await sign({ exp: inAnHour - 7200 });
  for (const [page, returnTo] of [
    ['/deep?x=1', '/deep?x=1'],
    [`/deep?jwtToken=${expired}`, '/deep'],
  ]) {
    const asked = await tabs.visit(`${world.url}${page}`);
    const location = new URL(asked.headers.get('location') ?? '', world.url);
    expect(location.searchParams.get('returnTo')).toBe(returnTo);
    const begun = await tabs.visit(location.href);
    expect(new URL(begun.headers.get('location') ?? '').searchParams.get('scope')).toBe('project tm');
  }
});

test(
  'a bad token that identify takes for none leaves a tab without its query, and other pages keep theirs',
  threats(95),
  async () => {
    const lenient = (req: IncomingMessage) => identify(req).catch(() => undefined);
    const strategy = { grantId: () => '1', tokenStore: memoryTokenStore(), scope: 'project' };
    const world = await openWorld(inFrame({ strategy }, { identify: lenient }));
    world.service.register({ clientID: world.service.options.clientID, redirectUrls: [`${world.url}/callback`] });
    const expired = await sign({ exp: inAnHour - 7200 });
    const hex = createHmac('sha256', SECRET).update('').digest('hex');
    const uuid = '550e8400-e29b-41d4-a716-446655440000';
    const unsigned = `${expired.split('.').slice(0, 2).join('.')}.`;
    const pages: Record<string, string> = {
      [`/board?x=1&jwtToken=${expired}`]: '/board',
      [`/board?jwtToken=${encodeURIComponent(expired)}#part`]: '/board',
      [`/board?jwtToken=${await sign({ exp: inAnHour, sub: 'deleted' })}`]: '/board',
      [`/board?jwtToken=${unsigned}`]: '/board',
      [`/board?next=${encodeURIComponent(`/deep?jwtToken=${expired}`)}`]: '/board',
      [`/board/${expired}`]: '/',
    };
    const ordinary = [
      `/board?project=${uuid}&filter=open`,
      `/board/${hex}?tab=2`,
      `/board?commit=${hex}`,
      '/board/how-to-find-a-page-by-the-words-of-its-title.html?x=1',
      `/board/heyJude-${hex}.json?x=1`,
    ];
    for (const page of ordinary) pages[page] = page;
    for (const [page, returnTo] of Object.entries(pages)) {
      const { tabs } = new FramedBrowser(world);
      const asked = await tabs.visit(`${world.url}${page}`);
      const location = asked.headers.get('location') ?? '';
      expect(new URL(location, world.url).searchParams.get('returnTo')).toBe(returnTo);
      const begun = await tabs.visit(`${world.url}/login`);
      const end = await tabs.visit(await world.service.approve(begun.headers.get('location') ?? ''));
      expect(end.headers.get('location')).toBe(returnTo);
      const cookies = [asked, begun, end].flatMap(({ headers }) => headers.getSetCookie()).join();
      for (const part of expired.split('.')) expect(location + cookies).not.toContain(part);
    }
  },
);

test('other errors of identify go to the error handler', async () => {
  const failing = async () => {
    throw Object.assign(new Error('the database is down'), { status: 503 });
  };
  const strategy = { grantId: () => 'one', tokenStore: memoryTokenStore() };
  const world = await openWorld(inFrame({ strategy }, { identify: failing }));
  expect((await new FramedBrowser(world).load('/board', FRAME)).status).toBe(503);
});
