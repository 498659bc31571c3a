import { MemoryStore } from 'express-session';
import { describe, expect, test, vi } from 'vitest';
import { ConfigurationError, TokenStoreError } from '../../src/errors.js';
import {
  cookieSettingsOf,
  emptySession,
  isForFrames,
  isRefusedUser,
  lostCookieCause,
  passportRecordOf,
  polyfillSessionMethods,
  refuseFixedSession,
  refuseStrictSession,
  refuseUnpartitionedSession,
  refuseUnsetSession,
  regenerateSession,
  reloadSession,
  type SessionLike,
  saveSession,
  sessionChanges,
  sessionContent,
  sessionOf,
} from '../../src/session/session.js';
import { overTls, requestOf, turns, withSession } from './fixture.js';

const down = new Error('The store is down');
const failed = new TokenStoreError('The session store failed. Nobody was logged in or out; try again.', {
  code: 'ERR_SESSION_STORE',
});
const expectFailed = (promise: Promise<unknown>, cause = 'The store is down') =>
  expect(promise).rejects.toMatchObject({
    name: 'TokenStoreError',
    code: failed.code,
    message: failed.message,
    cause: { message: cause },
  });

/** What the promise resolves to within this process, or `never`. */
const soon = <T>(promise: Promise<T>) => Promise.race([promise, turns().then(() => 'never' as const)]);

test.for<[session: unknown, isSession: boolean]>([
  [{}, true],
  [null, false],
  [undefined, false],
  ['text', false],
])('a session is an object: %j', ([session, isSession]) => {
  expect(sessionOf(requestOf({}, { session }))).toBe(isSession ? session : undefined);
});

test.for<[session: unknown, record: unknown, isRefused: boolean, user?: unknown]>([
  [{ passport: { user: '7' } }, '7', false],
  [{ passport: { user: undefined } }, undefined, false],
  [{ passport: {} }, undefined, true],
  [{ passport: {} }, undefined, false, 'ada'],
  [{ passport: null }, undefined, false],
  [{ passport: 'user' }, undefined, false],
  [{}, undefined, false],
])('of the session %j Passport has the user %j; it has refused one: %s', ([session, record, isRefused, user]) => {
  const req = requestOf({}, { session, user });
  expect(passportRecordOf(req)).toBe(record);
  expect(isRefusedUser(req, session as SessionLike)).toBe(isRefused);
});

test('without a session there is no user, no content and no setting', () => {
  const req = requestOf();
  expect(sessionOf(req)).toBeUndefined();
  expect(passportRecordOf(req)).toBeUndefined();
  expect(sessionContent(req)).toEqual(new Map());
  expect(sessionChanges(req, new Map())).toEqual(new Map());
  expect(cookieSettingsOf(req)).toEqual({});
});

test('what a request changes in its session is told by value, without the settings of the cookie', () => {
  const session: SessionLike = { cookie: { maxAge: 1 }, kept: { a: 1 }, changed: { a: 1 }, deleted: 1 };
  const req = requestOf({}, { session });
  const start = sessionContent(req);
  expect(start).toEqual(
    new Map([
      ['kept', '{"a":1}'],
      ['changed', '{"a":1}'],
      ['deleted', '1'],
    ]),
  );
  Object.assign(session, { cookie: { maxAge: 2 }, kept: { a: 1 }, changed: { a: 2 }, added: 3 });
  delete session.deleted;
  expect([...sessionChanges(req, start)]).toEqual([
    ['changed', { a: 2 }],
    ['deleted', undefined],
    ['added', 3],
  ]);
  expect([...sessionChanges(requestOf(), start).keys()]).toEqual(['kept', 'changed', 'deleted']);
});

describe('reloadSession', () => {
  /** A request with a stored session, which another request has changed since. */
  async function stored(content: object, meanwhile: object | undefined, cookie = (id: string) => `sid=s:${id}.mac`) {
    const store = new MemoryStore();
    const req = withSession(requestOf(), store, content);
    req.headers.cookie = cookie(req.sessionID);
    await soon(saveSession(req.session));
    if (meanwhile) store.set(req.sessionID, { ...JSON.parse(JSON.stringify(req.session)), ...meanwhile });
    else store.destroy(req.sessionID);
    return { req, store, before: req.session };
  }
  const changes = new Map<string, unknown>([
    ['mine', 1],
    ['gone', undefined],
  ]);

  test('takes what the store has, and repeats what this request has changed', async () => {
    const { req, before } = await stored({ gone: 1 }, { theirs: 2, mine: 0 });
    const session = await soon(reloadSession(req, changes));
    expect(session).toBe(req.session);
    expect(session).not.toBe(before);
    expect({ ...req.session, cookie: undefined }).toEqual({ theirs: 2, mine: 1, cookie: undefined });
    expect(session).not.toHaveProperty('gone');
  });

  test.for<[what: string, before: object, after: object | undefined, isThere: boolean]>([
    ['of the same user', { passport: { user: { id: 7 } } }, { passport: { user: { id: 7 } } }, true],
    ['of another user', { passport: { user: 7 } }, { passport: { user: 8 } }, false],
    ['of a user who has logged out', { passport: { user: 7 } }, { passport: {} }, false],
    ['that is gone', {}, undefined, false],
  ])('returns a session %s, or none', async ([, before, after, isThere]) => {
    const { req } = await stored(before, after);
    expect(await reloadSession(req, changes)).toBe(isThere ? req.session : undefined);
  });

  test.for<[what: string, cookie: (id: string) => string]>([
    ['has no cookie', () => ''],
    ['has that of another session', () => 'sid=s:another.mac'],
    ['has its id in the name of one', (id) => `${id}=1`],
  ])('leaves a session that the browser has not brought along: it %s', async ([, cookie]) => {
    const { req, before } = await stored({ kept: 1 }, { theirs: 2 }, cookie);
    expect(await reloadSession(req, changes)).toBe(before);
    expect(req.session).not.toHaveProperty('theirs');
  });

  test('leaves one that has no store or no id, and tells that there is none', async () => {
    const { req } = await stored({}, { theirs: 2 });
    const session = { kept: 1 };
    expect(await reloadSession(Object.assign(req, { session }), changes)).toBe(session);
    const reload = vi.fn((done: () => void) => done());
    for (const id of [{}, { sessionID: 7 }]) {
      const owner = requestOf({ cookie: 'sid=7' }, { session: { reload }, ...id });
      expect(await reloadSession(owner, changes)).toBe(owner.session);
    }
    expect(reload).not.toHaveBeenCalled();
    expect(await reloadSession(requestOf({ cookie: 'sid=7' }, { sessionID: '7' }), changes)).toBeUndefined();
    const withoutCookie = requestOf({}, { session: { reload }, sessionID: '7' });
    expect(await reloadSession(withoutCookie, changes)).toBe(withoutCookie.session);
  });

  test.for<[what: string, error: unknown]>([
    ['that is missing, as a store over files says it', Object.assign(new Error('no such file'), { code: 'ENOENT' })],
    ['that is missing, as express-session says it', new Error('Failed to load session')],
  ])('returns none %s', async ([, error]) => {
    const { req, store } = await stored({}, {});
    store.get = (_id, done) => done(error);
    expect(await reloadSession(req, changes)).toBeUndefined();
  });

  test('fails with the store', async () => {
    const { req, store } = await stored({}, {});
    store.get = (_id, done) => done(down);
    await expectFailed(reloadSession(req, changes));
    store.get = (_id, done) => done({ code: 'ENOENT', message: 'failed to load session' });
    await expectFailed(reloadSession(req, changes), 'a object was thrown');
  });

  test('returns none where the reload has taken the session away', async () => {
    const reload = (done: () => void) => {
      Reflect.set(req, 'session', undefined);
      done();
    };
    const req = requestOf({ cookie: 'sid=7' }, { sessionID: '7', session: { reload } });
    expect(await reloadSession(req, changes)).toBeUndefined();
  });
});

test('a session is saved now, where it has a method for that', async () => {
  const store = new MemoryStore();
  const req = withSession(requestOf(), store, { kept: 1 });
  expect(await soon(saveSession(req.session))).toBeUndefined();
  store.get(req.sessionID, (_error, saved) => expect(saved).toMatchObject({ kept: 1 }));
  await saveSession({});
  await saveSession({ save: 'text' });
  store.set = (_id, _session, done) => done?.(down);
  await expectFailed(saveSession(req.session));
});

describe('polyfillSessionMethods', () => {
  test.for([
    [false, { cookie: 1 }],
    [true, { cookie: 1, kept: 2 }],
  ] as const)('adds what Passport calls, and keeps the content: %s', ([keepsInfo, content]) => {
    const session: SessionLike = { cookie: 1, kept: 2 };
    polyfillSessionMethods(session, keepsInfo);
    expect(Object.keys(session)).toEqual(['cookie', 'kept']);
    const done = vi.fn();
    const { save, regenerate } = session as Record<'save' | 'regenerate', (done?: () => void) => void>;
    save();
    save(done);
    regenerate(done);
    expect(done.mock.calls).toEqual([[], []]);
    expect(session).toEqual(content);
    const own = () => undefined;
    session.save = own;
    expect(session.save).toBe(own);
    expect(Reflect.deleteProperty(session, 'save')).toBe(true);
  });

  test('leaves the methods that there are', () => {
    const own = { regenerate: () => undefined };
    polyfillSessionMethods(own, false);
    expect(Reflect.ownKeys(own)).toEqual(['regenerate']);
    const save = () => undefined;
    const saved: SessionLike = { save };
    polyfillSessionMethods(saved, false);
    expect(saved.save).toBe(save);
    expect(() => polyfillSessionMethods(undefined, false)).not.toThrow();
  });
});

test('a new session has another id and the content of the old one', async () => {
  const store = new MemoryStore();
  const req = withSession(requestOf(), store, { kept: 1 });
  const { session: before, sessionID } = req;
  Object.assign(before.cookie as object, { path: '/old' });
  const session = await soon(regenerateSession(req, before));
  expect(session).toBe(req.session);
  expect(session).not.toBe(before);
  expect(req.sessionID).not.toBe(sessionID);
  expect(session).toMatchObject({ kept: 1, cookie: { path: '/' } });
  store.destroy = (_id, done) => done?.(down);
  await expectFailed(regenerateSession(req, req.session));
  const plain = { kept: 1 };
  expect(await regenerateSession(req, plain)).toBe(plain);
  const own: SessionLike = { kept: 1, regenerate: (done: () => void) => done() };
  expect(await regenerateSession(requestOf(), own)).toBe(own);
});

test('an emptied session keeps the settings of its cookie', () => {
  const session = { cookie: 1, passport: 2, mine: 3 };
  emptySession(session);
  expect(session).toEqual({ cookie: 1 });
});

/** How a check of the session's cookie ends. */
function reasonOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    expect(error.code).toBe('ERR_SESSION_COOKIE');
    const [, reason] = /^The login would be lost: the session cookie (.*)$/.exec(error.message) ?? [];
    return reason ?? error.message;
  }
}

const secure = { session: { cookie: { secure: true } } };
test.for<[what: string, headers: object, added: object, isRefused: boolean]>([
  ['over plain http', {}, secure, true],
  ['over TLS', {}, { ...secure, ...overTls() }, false],
  ['over what is TLS in part', {}, { ...secure, socket: Object.assign(overTls().socket, { encrypted: 1 }) }, true],
  ['that Express takes for https', {}, { ...secure, secure: true }, false],
  ['that Express takes for half https', {}, { ...secure, secure: 1 }, true],
  ['that a proxy has got over https', { 'x-forwarded-proto': ' HTTPS, http' }, secure, false],
  ['that a proxy has got over https alone', { 'x-forwarded-proto': 'https' }, secure, false],
  ['that a proxy has got over http', { 'x-forwarded-proto': 'http, https' }, secure, true],
  ['that a proxy has got over another', { 'x-forwarded-proto': 'https2' }, secure, true],
  ['with a cookie for any connection', {}, { session: { cookie: { secure: 'auto' } } }, false],
  ['without a session', {}, {}, false],
])('a secure session cookie is refused where it would not be set: on a request %s', ([, headers, added, isRefused]) => {
  const reason =
    "is secure, and this request came over plain http, so that it is not set. Behind a proxy with https, set Express' trust proxy; without https, set cookie.secure to 'auto'.";
  const req = requestOf(headers as never, added);
  expect(reasonOf(() => refuseUnsetSession(req))).toBe(isRefused ? reason : undefined);
});

test.for<[sameSite: unknown, site: string | undefined, isRefused: boolean]>([
  ['strict', 'cross-site', true],
  [true, 'cross-site', true],
  ['lax', 'cross-site', false],
  [undefined, 'cross-site', false],
  ['strict', 'same-site', false],
  ['strict', undefined, false],
])('a session cookie with sameSite %j on a callback from %s is refused: %s', ([sameSite, site, isRefused]) => {
  const headers = site === undefined ? {} : { 'sec-fetch-site': site };
  const req = requestOf(headers, { session: { cookie: { sameSite } } });
  const reason =
    'is SameSite=Strict, and browsers leave it out of a redirect that follows a callback from another site. Set cookie.sameSite to lax.';
  expect(reasonOf(() => refuseStrictSession(req))).toBe(isRefused ? reason : undefined);
});

const PARTITION =
  "Set cookie.sameSite to 'none', cookie.secure and cookie.partitioned to true (express-session 1.18 or newer), and give the cookie a name that it did not have before.";
const foreignFrame = { 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'cross-site' };
const partitioned = { sameSite: 'none', secure: true, partitioned: true };
test.for<[cookie: object, headers: object, added: object, isRefused: boolean]>([
  [partitioned, foreignFrame, overTls(), false],
  [{ ...partitioned, sameSite: 'None' }, foreignFrame, overTls(), false],
  [{ ...partitioned, partitioned: false }, foreignFrame, overTls(), true],
  [{ ...partitioned, partitioned: 1 }, foreignFrame, overTls(), true],
  [{ ...partitioned, sameSite: 'lax' }, foreignFrame, overTls(), true],
  [{ ...partitioned, secure: false }, foreignFrame, overTls(), true],
  [{ ...partitioned, secure: false }, foreignFrame, {}, false],
  [{ sameSite: 'none', secure: true }, { ...foreignFrame, 'sec-fetch-site': 'same-origin' }, overTls(), false],
  [{ sameSite: 'none', secure: true }, {}, overTls(), false],
])(
  'a session cookie with the settings %j is refused in a frame of another site, unless it stays there: %j',
  ([cookie, headers, added, isRefused]) => {
    const req = requestOf(headers as never, { session: { cookie }, ...added });
    const reason = `is not Partitioned, which a login in a frame of another site needs: browsers block other cookies there, and where they do not, a foreign page could log the user's own tabs in. ${PARTITION}`;
    expect(reasonOf(() => refuseUnpartitionedSession(req))).toBe(isRefused ? reason : undefined);
  },
);

const twins = (name: string) =>
  `The browser has two cookies named ${name}, and sends the older one first: it was set before its attributes changed, such as Partitioned, domain or path. Give the session cookie another name.`;
const framed = (blocked: string) => `The application is in a frame, ${blocked}. ${PARTITION}`;
const mayBlock = framed('where browsers may block cookies');
const blocks = framed('where this browser blocks third-party cookies');
test.for<[cookie: string | undefined, headers: object, cause: string | undefined]>([
  [undefined, {}, undefined],
  ['a=1; b=2', {}, undefined],
  ['sid=1; a=2;  sid =3', {}, twins('sid')],
  ['a=1;sid=1; sid=2; a=2', {}, twins('sid')],
  [' __Host-a.%b=1; __Host-a.%b=2', {}, twins('__Host-a.%b')],
  ['a; a', {}, undefined],
  ['=1; =1', {}, undefined],
  ['a b=1; a b=2', {}, undefined],
  [`${'a'.repeat(64)}=1; ${'a'.repeat(64)}=2`, {}, twins('a'.repeat(64))],
  [`${'a'.repeat(65)}=1; ${'a'.repeat(65)}=2`, {}, undefined],
  ['<b>=1; <b>=2', {}, undefined],
  ['sid<=1; sid<=2', {}, undefined],
  ['a=1; b', { 'sec-fetch-dest': 'iframe' }, mayBlock],
  ['sid=1; sid=2', { 'sec-fetch-dest': 'iframe' }, twins('sid')],
  [undefined, { 'sec-fetch-dest': 'iframe', 'sec-fetch-storage-access': 'active' }, mayBlock],
  [undefined, { 'sec-fetch-dest': 'iframe', 'sec-fetch-storage-access': 'none' }, blocks],
  [undefined, { 'sec-fetch-dest': 'frame', 'sec-fetch-storage-access': 'inactive' }, blocks],
  [undefined, { 'sec-fetch-storage-access': 'none' }, undefined],
])('the cause of a lost session is seen in the cookies %j and the headers %j', ([cookie, headers, cause]) => {
  expect(lostCookieCause(requestOf({ ...(cookie === undefined ? {} : { cookie }), ...headers }))).toBe(cause);
});

const fixed = (session: object) => Object.defineProperty(session, 'save', { value: () => undefined });
test.for<[what: string, session: object, isRefused: boolean]>([
  ['of express-session', withSession(requestOf()).session, false],
  ['that is a plain object', {}, false],
  ['with a save that can be replaced', { save: () => undefined }, false],
  ['with a fixed save', fixed({}), true],
  ['with a fixed save and its own regenerate', fixed({ regenerate: () => undefined }), false],
  ['that is sealed', Object.seal({}), true],
  ['that is sealed and has its own regenerate', Object.seal({ regenerate: () => undefined }), false],
])('Passport can log in with a session %s, or it is refused', ([, session, isRefused]) => {
  const refuse = () => refuseFixedSession(session as SessionLike);
  if (!isRefused) return expect(refuse).not.toThrow();
  const message =
    'Passport cannot log in with this session: it has no method regenerate, and its save cannot be replaced (iron-session). Use express-session, or cookie-session with the option tokenStore.';
  expect(refuse).toThrow(new ConfigurationError(message, { code: 'ERR_SESSION_TYPE' }));
  expect(refuse).toThrow(expect.objectContaining({ code: 'ERR_SESSION_TYPE' }));
});

const none = { sameSite: 'none' };
test.for<[what: string, added: object, settings: object, isForFrames: boolean]>([
  ['of express-session', { session: { cookie: none }, sessionOptions: {} }, none, true],
  ['of cookie-session', { session: {}, sessionOptions: none }, none, true],
  ['in capitals', { session: { cookie: { sameSite: 'NONE' } } }, { sameSite: 'NONE' }, true],
  ['for the own site', { session: { cookie: { sameSite: 'lax' } } }, { sameSite: 'lax' }, false],
  ['that are a text', { session: { cookie: 'none' } }, {}, false],
  ['that are null', { session: {}, sessionOptions: null }, {}, false],
  ['that are missing', {}, {}, false],
])(
  'the settings of a session cookie %s are found, and whether they are for frames',
  ([, added, settings, forFrames]) => {
    const req = requestOf({}, added);
    expect([cookieSettingsOf(req), isForFrames(req)]).toEqual([settings, forFrames]);
  },
);
