import type { ServerResponse } from 'node:http';
import session from 'express-session';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { randomGrantId } from '../../src/grants/grant.js';
import { type AuthenticateOptions, authenticate } from '../../src/login/authenticate.js';
import type { PendingLogin } from '../../src/login/pending-logins.js';
import type { AnyVerify, Profile, VerifyCallback } from '../../src/login/verify.js';
import type { Runtime } from '../../src/runtime.js';
import { tokens } from '../refresh/fixture.js';
import { setCookies } from '../request/fixture.js';
import { EventLog } from '../support/event-log.js';
import type { FaultyServer } from '../support/faulty-server.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser } from '../support/world.js';
import {
  accessTokenOf,
  addSession,
  beginLogin,
  cookiesOf,
  exchangeOf,
  noteActions,
  open,
  pairOf,
  type RequestParts,
  requestOf,
  soon,
  startTokenEndpoint,
  type Told,
  tokenAnswer,
  visit,
} from './fixture.js';

const byDone = (user: unknown) => (_a: string, _r: string, _p: Profile, done: VerifyCallback) => done(null, user);
const USER = { id: '7' };

let service: FaultyServer;
let store: TroubledStore;
let log: EventLog;
beforeEach(async () => {
  service = await startTokenEndpoint();
  store = new TroubledStore();
  log = new EventLog('login');
  onTestFinished(() => log.stop());
});

const openHere = (options: object = {}, verify: AnyVerify = byDone(USER)) =>
  open({ authUrl: service.origin, tokenStore: store, clock: new TestClock().now, ...options }, verify);
const events = () => log.events.map(({ event: { outcome, reason } }) => [outcome, reason]);

/** The parts of a request to the callback of a login that has begun. */
function callbackOf(runtime: Runtime, login: Partial<PendingLogin> = {}, parts: RequestParts = {}, query = 'code=c') {
  const { state, cookies } = beginLogin(runtime, login);
  const all = [...cookies, ...(parts.cookies ?? [])];
  return { protocol: 'https', ...parts, url: `/callback?${query}&state=${state}`, cookies: all };
}

/** The parts of a request to a callback whose login is over. */
const REPLAYED = { protocol: 'https', url: `/callback?code=c&state=${'A'.repeat(43)}` };
const replayed = [
  'fail',
  expect.objectContaining({ message: expect.stringMatching(/^This login was not begun/) }),
  403,
];

/** The cookies of a browser that has come back so from so many logins of an account. */
function cookiesAfter(runtime: Runtime, times: number, found: 'none' | 'lost', account = '7', grantId = ''): string[] {
  let cookies: string[] = [];
  const manager = runtime.managers.only();
  for (let count = 0; count < times; count++) {
    const [login, page] = [exchangeOf({ protocol: 'https', cookies }), exchangeOf({ protocol: 'https' })];
    runtime.rounds.count(login.req, login.res, account, grantId, manager);
    page.req.headers.cookie = setCookies(login.res).map(pairOf).join('; ');
    runtime.rounds.noteReturn(page.req, page.res, found);
    cookies = (setCookies(page.res).length > 0 ? setCookies(page.res) : setCookies(login.res)).map(pairOf);
  }
  return cookies;
}

/** A session that refers to a grant. */
async function sessionWithGrant(runtime: Runtime, isThere = true): Promise<object> {
  const grantId = randomGrantId();
  if (isThere) await runtime.managers.only().put(grantId, tokens('a'));
  return { 'oauth-app': grantId };
}

describe('a login', () => {
  test('succeeds with its user, and is reported', async () => {
    const runtime = openHere({}, (_a: string, _r: string, _p: Profile, done: VerifyCallback) =>
      done(null, USER, 'info'),
    );
    const { told } = await visit(runtime, callbackOf(runtime));
    expect(told).toEqual([['success', USER, 'info']]);
    expect(events()).toEqual([['success', undefined]]);
  });

  test.for<[what: string, query: string, verify: AnyVerify, outcome: unknown[], told: unknown[]]>([
    [
      'is declined',
      'error=access_denied',
      byDone(USER),
      ['declined', 'declined'],
      ['fail', expect.anything(), undefined],
    ],
    ['is denied', 'code=c', byDone(false), ['refused', 'denied'], ['fail', undefined, undefined]],
    [
      'fails',
      'error=server_error',
      byDone(USER),
      ['error', 'ERR_AUTHORIZATION'],
      ['error', expect.objectContaining({ strategy: 'oauth-app' })],
    ],
    ['is malformed', 'code=', byDone(USER), ['refused', 'refused'], ['fail', expect.anything(), 400]],
  ])('that %s is told and reported', async ([, query, verify, outcome, told]) => {
    const runtime = openHere({}, verify);
    expect((await visit(runtime, callbackOf(runtime, {}, {}, query))).told).toEqual([told]);
    expect(events()).toEqual([outcome]);
  });

  test('that is over, or of another strategy, is told, and reported as refused', async () => {
    const runtime = openHere();
    const { cookies, ...parts } = callbackOf(openHere({ name: 'other' }));
    for (const request of [REPLAYED, { ...parts, cookies }])
      expect((await visit(runtime, request)).told).toEqual([replayed]);
    expect(events()).toEqual([
      ['refused', 'refused'],
      ['refused', 'refused'],
    ]);
  });

  test('whose response verify has sent stores no grant', async () => {
    const verify = (q: { res: ServerResponse }, _a: string, _r: string, _p: Profile, done: VerifyCallback) => {
      q.res.end();
      done(null, USER);
    };
    const runtime = openHere({ passReqToCallback: true }, verify);
    const { told } = await visit(runtime, callbackOf(runtime));
    expect(told).toEqual([['error', expect.objectContaining({ code: 'ERR_RESPONSE_SENT' })]]);
    // That of the login's mark.
    expect(store.calls.filter((call) => call === 'set')).toHaveLength(1);
  });

  test('is reported where the application’s own callback throws, which is told as well', async () => {
    const runtime = openHere();
    const { req, res } = exchangeOf({ session: {}, ...callbackOf(runtime) });
    Reflect.set(req, 'res', res);
    const told: Told[] = [];
    const fault = new Error('Its own');
    await authenticate(runtime, { ...noteActions(told), success: () => Promise.reject(fault) }, req, {});
    expect(told).toEqual([['error', fault]]);
    expect(events()).toEqual([['success', undefined]]);
  });

  test.for<
    [what: string, options: object, route: AuthenticateOptions, session: object | undefined, code: string | undefined]
  >([
    ['needs a session', {}, {}, undefined, 'ERR_NO_SESSION'],
    ['needs one under an id of the application too', { grantId: byUser }, {}, undefined, 'ERR_NO_SESSION'],
    [
      'needs none under such an id if nobody is logged in',
      { grantId: byUser },
      { session: false },
      undefined,
      undefined,
    ],
    [
      'needs none under such an id if it connects an account',
      { grantId: byUser },
      { assignProperty: 'account' },
      undefined,
      undefined,
    ],
  ])('%s', async ([, options, route, session, code]) => {
    const runtime = openHere(options);
    const user = 'assignProperty' in route ? USER : undefined;
    const login = { userMark: runtime.grants.userMarkOf(requestOf({ user }), true) };
    const { told } = await visit(runtime, callbackOf(runtime, login, { session, user }), route);
    expect(told).toEqual([code ? ['error', expect.objectContaining({ code })] : ['success', USER, undefined]]);
  });

  test.for<[what: string, isRefused: boolean, route: AuthenticateOptions, isPopup: boolean]>([
    ['leads to a page', true, { successRedirect: '/' }, false],
    ['leads to a page, or back', true, { successReturnToOrRedirect: '/' }, false],
    ['leads to none', false, {}, false],
    ['leads a popup to one', false, { successRedirect: '/' }, true],
    ['needs no session', false, { successRedirect: '/', session: false }, false],
  ])('that %s, and whose session cookie browsers leave out then, fails: %s', async ([, isRefused, route, isPopup]) => {
    const runtime = openHere();
    const frame = { challenge: 'challenge', grantId: undefined };
    const parts = callbackOf(runtime, isPopup ? { frame } : {}, {
      session: { cookie: { sameSite: 'strict' } },
      headers: { 'sec-fetch-site': 'cross-site' },
    });
    const { req, res } = exchangeOf(parts);
    Reflect.set(req, 'res', res);
    if (isPopup) runtime.frames.note(req, frame);
    const told: Told[] = [];
    await authenticate(runtime, noteActions(told), req, route);
    expect(told).toEqual([
      isRefused ? ['error', expect.objectContaining({ code: 'ERR_SESSION_COOKIE' })] : ['success', USER, undefined],
    ]);
  });
});

describe('a connection', () => {
  const connect = { assignProperty: 'account' };
  /** The callback of a connection whose user has a session of express-session. */
  async function connectionOf(runtime: Runtime) {
    const sessions = new session.MemoryStore();
    const { req, res } = exchangeOf(
      callbackOf(runtime, { userMark: runtime.grants.userMarkOf(requestOf({ user: USER }), true), returnTo: '/page' }),
    );
    const { cookie } = req.headers;
    const opened = await addSession(req, sessions, { passport: { user: '7' } });
    req.headers.cookie = `${cookie}; ${req.headers.cookie}`;
    Object.assign(req, { user: USER, res });
    return { req, res, sessions, opened };
  }

  test('is written into the session at once, and is no round', async () => {
    const runtime = openHere();
    const { req, res } = await connectionOf(runtime);
    const told: Told[] = [];
    await authenticate(runtime, noteActions(told), req, connect);
    expect(told).toEqual([['success', USER, undefined]]);
    expect(Reflect.get(req, 'session')).toMatchObject({ 'oauth-app·connected': true, returnTo: '/page' });
    expect(cookiesOf(res)).toEqual({ set: [], ended: ['login'] });
    expect(events()).toEqual([['success', undefined]]);
  });

  test('of a user who has left meanwhile is refused', async () => {
    const runtime = openHere();
    const { req, sessions, opened } = await connectionOf(runtime);
    service.always((socket, request) => sessions.destroy(opened.id, () => tokenAnswer()(socket, request)));
    const told: Told[] = [];
    await authenticate(runtime, noteActions(told), req, connect);
    expect(told).toEqual([['fail', { message: expect.stringMatching(/^The user has logged out/) }, 403]]);
    expect(events()).toEqual([['refused', 'refused']]);
  });
});

describe('a login that has led nowhere', () => {
  const fromPage = { returnTo: '/page' };
  const count = (set: string[], ended: string[] = []) => ({ set, ended: ['login', ...ended] });

  test.for<[what: string, login: Partial<PendingLogin>, route: AuthenticateOptions, cookies: object]>([
    ['of a page counts', fromPage, {}, count(['rounds'])],
    ['of no page does not count', {}, {}, count([])],
    ['without a session does not count', fromPage, { session: false }, count([])],
  ])('%s', async ([, login, route, cookies]) => {
    const runtime = openHere();
    const { res } = await visit(runtime, callbackOf(runtime, login), route);
    expect(cookiesOf(res)).toEqual(cookies);
  });

  test.for<[what: string, found: 'none' | 'lost', login: Partial<PendingLogin>, isThere: boolean, cookies: object]>([
    ['counts anew for a browser that has a grant', 'none', fromPage, true, count([], ['rounds'])],
    ['counts anew for such a browser that comes from no page', 'none', {}, true, count([], ['rounds'])],
    ['counts for a browser whose grant is gone', 'none', fromPage, false, count(['rounds'])],
    ['does not count for such a browser that comes from no page', 'none', {}, false, count([])],
    ['counts where another process has not found the grant', 'lost', fromPage, true, count(['rounds'])],
  ])('%s', async ([, found, login, isThere, cookies]) => {
    const runtime = openHere();
    const parts = { cookies: cookiesAfter(runtime, 1, found), session: await sessionWithGrant(runtime, isThere) };
    const { res, told } = await visit(runtime, callbackOf(runtime, login, parts));
    expect(told).toEqual([['success', USER, undefined]]);
    expect(cookiesOf(res)).toEqual(cookies);
  });

  test.for<[what: string, isLoop: boolean, fields: object, user: object, account: string, route: AuthenticateOptions]>([
    ['by the id of verify', true, {}, USER, '7', {}],
    ['by the id of the token', true, { access_token: accessTokenOf('8') }, USER, '8', {}],
    ['of another account', false, {}, USER, '8', {}],
    ['of a user without an id', false, {}, { name: 'Ada' }, 'undefined', {}],
    ['without a session', false, {}, USER, '7', { session: false }],
  ])('twice before, %s, is an error the third time: %s', async ([, isLoop, fields, user, account, route]) => {
    const runtime = openHere({}, byDone(user));
    service.always(tokenAnswer(fields));
    const parts = { cookies: cookiesAfter(runtime, 2, 'none', account) };
    const { told } = await visit(runtime, callbackOf(runtime, fromPage, parts), route);
    expect(told).toEqual([
      isLoop ? ['error', expect.objectContaining({ code: 'ERR_LOGIN_LOOP' })] : ['success', user, undefined],
    ]);
  });

  test('is left to be counted by one with a session', async () => {
    const runtime = openHere();
    const parts = { cookies: cookiesAfter(runtime, 1, 'none'), session: await sessionWithGrant(runtime) };
    const { res } = await visit(runtime, callbackOf(runtime, fromPage, parts), { session: false });
    expect(cookiesOf(res)).toEqual(count([]));
  });

  test('twice before is no error in a popup, and does not count there', async () => {
    const runtime = openHere();
    const frame = { challenge: 'challenge', grantId: undefined };
    const parts = callbackOf(runtime, { frame }, { session: {}, cookies: cookiesAfter(runtime, 2, 'none') });
    const { req, res } = exchangeOf(parts);
    Reflect.set(req, 'res', res);
    runtime.frames.note(req, frame);
    const told: Told[] = [];
    await authenticate(runtime, noteActions(told), req, {});
    expect(told).toEqual([['success', USER, undefined]]);
    expect(runtime.frames.popupOf(req)?.outcome).toBe('stored');
    expect(cookiesOf(res).set).toEqual([]);
  });

  test.for([
    ['a random one', undefined, false],
    ['an id of the application', byUser, true],
  ] as const)('leaves its grant, under %s, to the next one', async ([, grantId, stays]) => {
    const runtime = openHere({ grantId });
    const first = await visit(runtime, callbackOf(runtime, fromPage));
    const { grantId: stored } = Object(log.events[0]?.event);
    const manager = runtime.managers.only();
    const page = exchangeOf({ protocol: 'https', cookies: setCookies(first.res).map(pairOf) });
    runtime.rounds.noteReturn(page.req, page.res, 'none');
    await visit(runtime, callbackOf(runtime, fromPage, { cookies: setCookies(page.res).map(pairOf) }));
    if (stays) expect(await manager.has(stored)).toBe(true);
    else await soon(async () => expect(await manager.has(stored)).toBe(false));
  });

  const declined = 'error=access_denied';
  /** A runtime whose logins begin at /login. */
  const openAtLogin = (...args: Parameters<typeof openHere>) => {
    const runtime = openHere(...args);
    runtime.rounds.rememberRoute(requestOf({ url: '/login' }));
    return runtime;
  };

  test.for([
    ['/login', ['rounds']],
    ['/sorry', []],
    [undefined, []],
  ] as const)('since it was declined counts if failureRedirect is %s', async ([failureRedirect, set]) => {
    const runtime = openAtLogin();
    const { told, res } = await visit(runtime, callbackOf(runtime, {}, {}, declined), { failureRedirect });
    expect(told).toEqual([['fail', { message: 'The user declined authorization' }, undefined]]);
    expect(cookiesOf(res).set).toEqual(set);
  });

  test('since it was declined is an error the third time', async () => {
    const runtime = openAtLogin();
    const parts = { cookies: cookiesAfter(runtime, 2, 'none', '') };
    const route = { failureRedirect: '/login' };
    const { told } = await visit(runtime, callbackOf(runtime, {}, parts, declined), route);
    expect(told).toEqual([['error', expect.objectContaining({ code: 'ERR_LOGIN_LOOP' })]]);
  });

  test('in a popup, or of another strategy, does not count where it is declined', async () => {
    const runtime = openAtLogin();
    const frame = { challenge: 'challenge', grantId: undefined };
    const { req, res } = exchangeOf({ session: {}, ...callbackOf(runtime, { frame }, {}, declined) });
    Reflect.set(req, 'res', res);
    runtime.frames.note(req, frame);
    await authenticate(runtime, noteActions([]), req, { failureRedirect: '/login' });
    expect(cookiesOf(res).set).toEqual([]);
    const other = await visit(runtime, callbackOf(openHere({ name: 'other' })), { failureRedirect: '/login' });
    expect(cookiesOf(other.res).set).toEqual([]);
  });
});

describe('a login that is over', () => {
  const home = { successReturnToOrRedirect: '/home', failureRedirect: '/login' };
  const redirected = (page: string) => ['redirect', page];
  test.for<[what: string, route: object, user: object | undefined, grant: boolean | undefined, told: unknown[]]>([
    ['leads a user who is logged in to the page', home, USER, true, redirected('/home')],
    [
      'leads there by successRedirect too',
      { successRedirect: '/ホーム' },
      USER,
      true,
      redirected(encodeURI('/ホーム')),
    ],
    ['fails where there is no page', {}, USER, true, replayed],
    ['fails where the page is no text', { successRedirect: {} }, USER, true, replayed],
    ['fails for nobody', home, undefined, true, replayed],
    [
      'leads nobody there whose account is connected',
      { ...home, assignProperty: 'account' },
      undefined,
      true,
      redirected('/home'),
    ],
    ['fails for a user whose grant is gone', home, USER, false, replayed],
    ['fails for a user without a grant', home, USER, undefined, replayed],
  ])('%s', async ([, route, user, grant, told]) => {
    const runtime = openHere();
    runtime.rounds.rememberRoute(requestOf({ url: '/login' }));
    const session = grant === undefined ? {} : await sessionWithGrant(runtime, grant);
    const visited = await visit(runtime, { ...REPLAYED, session, user }, route);
    expect(visited.told.map((call) => call.filter((part) => part !== undefined))).toEqual([told]);
    const isRound = told === replayed && 'failureRedirect' in route;
    expect(cookiesOf(visited.res).set).toEqual(isRound ? ['rounds'] : []);
    expect(events()).toEqual([['refused', 'refused']]);
  });

  test('leads to the page while the store fails', async () => {
    const runtime = openHere({ cache: false });
    const session = await sessionWithGrant(runtime);
    store.fail();
    expect((await visit(runtime, { ...REPLAYED, session, user: USER }, home)).told).toEqual([['redirect', '/home']]);
  });

  test('of a callback that is malformed, or of another strategy, leads nowhere', async () => {
    const runtime = openHere();
    const user = { session: await sessionWithGrant(runtime), user: USER };
    for (const parts of [{ url: '/callback?code=' }, callbackOf(openHere({ name: 'other' }))])
      expect((await visit(runtime, { ...parts, ...user }, home)).told).toEqual([
        ['fail', expect.anything(), expect.any(Number)],
      ]);
  });
});
