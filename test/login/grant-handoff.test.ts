import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import session from 'express-session';
import passportModule from 'passport';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { randomGrantId } from '../../src/grants/grant.js';
import type { CallbackRequest, CallbackRoute } from '../../src/login/callback-request.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { GrantCredentials } from '../../src/refresh/grant-credentials.js';
import type { Runtime } from '../../src/runtime.js';
import { GrantHandoff, type HandedGrant, sentResponseError } from '../../src/session/grant-handoff.js';
import { tokens } from '../refresh/fixture.js';
import { TroubledStore } from '../support/troubled-store.js';
import type { Handler, Req } from '../support/world.js';
import { addSession, callbackOf, exchangeOf, open, requestOf, settled, soon, storedSession } from './fixture.js';

const KEY = 'oauth-app';
const CONNECTED = 'oauth-app·connected';

let runtime: Runtime;
let store: TroubledStore;
let sessions: session.MemoryStore;
let grantId: string;
beforeEach(() => {
  store = new TroubledStore();
  runtime = open({ tokenStore: store });
  sessions = new session.MemoryStore();
  grantId = randomGrantId();
});

const has = (id = grantId) => runtime.managers.only().has(id);
const putGrant = (id = grantId) => runtime.managers.only().put(id, tokens('a'));
/** Resolves once a grant is there no more. */
const gone = (id = grantId) => soon(async () => expect(await has(id)).toBe(false));

interface Opened {
  readonly callback: ReturnType<typeof callbackOf>;
  readonly handoff: GrantHandoff;
  readonly req: IncomingMessage;
}

/** A login whose grant is handed over. */
function openFor(req: IncomingMessage, grant: Partial<HandedGrant> = {}, route: Partial<CallbackRoute> = {}): Opened {
  const callback = callbackOf(runtime, req, route);
  const handed = { key: KEY, grantId, idIsInSession: true, scope: ['project'], ...grant };
  return { callback, handoff: new GrantHandoff(callback, handed), req };
}

/** Adds `req.logIn`, as Passport does. */
async function addPassport(req: IncomingMessage): Promise<void> {
  const passport = new passportModule.Passport();
  passport.serializeUser((user, done) => done(null, user));
  passport.deserializeUser((user: Express.User, done) => done(null, user));
  // Without a session its own middleware refuses the request, and adds the method all the same.
  await promisify(passport.session() as Handler)(req as Req, exchangeOf().res).catch(() => {});
}

/** A request with a session of express-session and Passport. */
async function withSession(content: object = {}): Promise<IncomingMessage> {
  const req = requestOf();
  await addSession(req, sessions, content);
  await addPassport(req);
  return req;
}

type LogIn = (user: unknown, ...rest: unknown[]) => unknown;
const logInOf = (req: IncomingMessage) => Reflect.get(req, 'logIn') as LogIn;
const sessionOf = (req: IncomingMessage) => Reflect.get(req, 'session') as Record<string, unknown>;
const contentOf = (req: IncomingMessage) => {
  const { cookie: _settings, ...content } = sessionOf(req) ?? {};
  return content;
};
/** Logs a user in. Resolves to the error that is told. */
const logIn = (req: IncomingMessage, options?: object): Promise<unknown> =>
  settled(
    new Promise((resolve) => {
      const user = '7';
      if (options) logInOf(req).call(req, user, options, resolve);
      else logInOf(req).call(req, user, resolve);
    }),
  );
const SUCCESS = () => ({
  name: 'login',
  event: expect.objectContaining({ outcome: 'success', grantId, scope: ['project'] }),
});
const FAILURE = (reason: string) => ({ name: 'login', event: expect.objectContaining({ outcome: 'error', reason }) });

describe('a grant is stored', () => {
  test('under its id, and is returned', async () => {
    const { handoff } = openFor(requestOf());
    expect(handoff.grantId).toBe(grantId);
    const grant = await handoff.store(tokens('a'), undefined);
    expect(grant).toMatchObject({ accessToken: 'access-a' });
    expect(await runtime.managers.only().stored(grantId)).toEqual(grant);
  });

  test('with the refresh token of the grant that it replaces, if it has brought none', async () => {
    const former = randomGrantId();
    const subject = '7';
    await runtime.managers.only().put(former, tokens('former', { subject }));
    const brought: TokenSet = tokens('new', { subject, refreshToken: undefined });
    const grant = await openFor(requestOf()).handoff.store(brought, former);
    expect(grant).toMatchObject({ accessToken: 'access-new', refreshToken: 'refresh-former' });
  });

  test('in place of the one of that id, which this process forgets', async () => {
    await putGrant();
    await openFor(requestOf(), { idIsInSession: false }).handoff.store(tokens('b'), undefined);
    expect(await runtime.managers.only().current(grantId)).toMatchObject({ accessToken: 'access-b' });
  });

  test.for([
    ['is removed', true],
    ['stays under an id of the application', false],
  ] as const)('and %s if somebody else has sent the response meanwhile', async ([, idIsInSession]) => {
    const { handoff, callback } = openFor(requestOf(), { idIsInSession });
    store.before = (method) => void (method === 'set' && callback.res.end());
    await expect(handoff.store(tokens('a'), undefined)).rejects.toMatchObject({ code: 'ERR_RESPONSE_SENT' });
    if (idIsInSession) await gone();
    else expect(await has()).toBe(true);
  });

  test('and is removed if the store says that it could not be saved', async () => {
    const set = store.inner.set.bind(store.inner);
    store.set = async (...args) => {
      await set(...args);
      throw new Error('The connection was lost');
    };
    await expect(openFor(requestOf()).handoff.store(tokens('a'), undefined)).rejects.toMatchObject({
      code: 'ERR_TOKEN_STORE',
    });
    await gone();
  });
});

describe('a login', () => {
  test.for(['logIn', 'login'])('by req.%s gets a new session that refers to the grant', async (method) => {
    const req = await withSession({ old: true });
    const before = Reflect.get(req, 'sessionID');
    const { handoff, callback } = openFor(req);
    handoff.hookLogIn(undefined);
    expect(await settled(new Promise((resolve) => Reflect.get(req, method).call(req, '7', resolve)))).toBeUndefined();
    const content = { passport: { user: '7' }, [KEY]: grantId };
    expect([contentOf(req), await storedSession(sessions, Reflect.get(req, 'sessionID'))]).toEqual([content, content]);
    expect(await storedSession(sessions, before)).toBeUndefined();
    expect(Object.getOwnPropertyNames(sessionOf(req))).not.toEqual(expect.arrayContaining(['save']));
    expect(callback.events).toEqual([SUCCESS()]);
  });

  test.for<[what: string, grant: Partial<HandedGrant>, isConnection: boolean, before: object, after: object]>([
    ['logs in', {}, false, { [CONNECTED]: true }, { [KEY]: true }],
    ['connects an account', {}, true, {}, { [KEY]: true, [CONNECTED]: true }],
    ['logs in under an id of the application', { idIsInSession: false }, false, {}, { [CONNECTED]: false }],
    ['connects an account under such an id', { idIsInSession: false }, true, {}, {}],
  ])('that %s is noted in the session', async ([, grant, isConnection, before, after]) => {
    for (const keepSessionInfo of [false, true]) {
      const req = await withSession({ other: 1, ...before });
      openFor(req, grant, { isConnection }).handoff.hookLogIn(undefined);
      await logIn(req, { keepSessionInfo });
      expect(contentOf(req)).toEqual({
        passport: { user: '7' },
        ...(keepSessionInfo && { other: 1 }),
        ...Object.fromEntries(Object.entries(after).map(([name, value]) => [name, name === KEY ? grantId : value])),
      });
    }
  });

  test.for<[what: string, isRemoved: boolean, isSame: boolean, grant: Partial<HandedGrant>]>([
    ['another one', true, false, {}],
    ['its own', false, true, {}],
    ['one that the application names otherwise', false, false, { idIsInSession: false }],
  ])('over a session whose grant is %s removes that: %s', async ([, isRemoved, isSame, grant]) => {
    const former = isSame ? grantId : randomGrantId();
    await putGrant(former);
    const req = await withSession({ [KEY]: former });
    openFor(req, grant).handoff.hookLogIn(undefined);
    await logIn(req);
    if (isRemoved) await gone(former);
    else {
      await promisify(setImmediate)();
      expect(await has(former)).toBe(true);
    }
  });

  test('removes nothing under what no random id can be', async () => {
    const req = await withSession({ [KEY]: 'an id' });
    openFor(req).handoff.hookLogIn(undefined);
    await logIn(req);
    expect(store.calls).toEqual([]);
  });

  test.for<[options: object, returnTo: string | undefined, ofSession: unknown, after: string | undefined]>([
    [{ successReturnToOrRedirect: '/' }, '/page', undefined, '/page'],
    [{ successReturnToOrRedirect: '/' }, '/page', '/of-session', '/page'],
    [{ successReturnToOrRedirect: '/' }, undefined, '/of-session', '/of-session'],
    [{ successReturnToOrRedirect: '/' }, undefined, '//evil.example', '/'],
    [{ successReturnToOrRedirect: '/' }, undefined, undefined, undefined],
    [{ successReturnToOrRedirect: '/', session: false }, '/page', undefined, '/page'],
    [{ successReturnToOrRedirect: '/', successRedirect: '/' }, '/page', undefined, '/page'],
    [{ successRedirect: '/' }, '/page', undefined, undefined],
    [{}, '/page', undefined, '/page'],
    [{ session: false }, '/page', undefined, undefined],
  ])('with %j and the pages %s and %s leads to %s', async ([options, returnTo, ofSession, after]) => {
    const req = await withSession(ofSession ? { returnTo: ofSession } : {});
    openFor(req).handoff.hookLogIn(returnTo);
    await logIn(req, options);
    expect(sessionOf(req).returnTo).toBe(after);
  });

  test('without sessions leads to its page', async () => {
    const req = requestOf();
    await addPassport(req);
    openFor(req).handoff.hookLogIn('/page');
    expect(await logIn(req, { session: false, successReturnToOrRedirect: '/' })).toBeUndefined();
    expect(Reflect.get(req, 'session')).toEqual({ returnTo: '/page' });
    expect(Object.keys(req)).not.toContain('session');
    // Nor is it in the way of who adds one later.
    expect([Reflect.set(req, 'session', {}), Reflect.deleteProperty(req, 'session')]).toEqual([true, true]);
  });

  test('without a session writes none, and is reported when it has ended', async () => {
    const req = await withSession({ old: true });
    const { handoff, callback } = openFor(req);
    handoff.hookLogIn(undefined);
    expect(await logIn(req, { session: false })).toBeUndefined();
    expect([contentOf(req), callback.events]).toEqual([{ old: true }, []]);
    handoff.reportUnwritten();
    expect(callback.events).toEqual([SUCCESS()]);
  });

  test.for([false, true])(
    'in a session without methods refers to the grant, with keepSessionInfo %s',
    async (keepSessionInfo) => {
      const session = { old: true };
      const req = requestOf({ session });
      await addPassport(req);
      openFor(req).handoff.hookLogIn(undefined);
      expect(await logIn(req, { keepSessionInfo })).toBeUndefined();
      expect(session).toEqual({ ...(keepSessionInfo && { old: true }), passport: { user: '7' }, [KEY]: grantId });
      expect(Object.getOwnPropertyNames(session)).toEqual(expect.arrayContaining(['regenerate', 'save']));
    },
  );

  test('without granted scopes is reported with none', () => {
    const { handoff, callback } = openFor(requestOf(), { scope: undefined });
    handoff.reportUnwritten();
    expect(callback.events).toEqual([expect.objectContaining({ event: expect.objectContaining({ scope: [] }) })]);
  });

  test('of an application that has no req.logIn is left alone', () => {
    const req = requestOf();
    openFor(req).handoff.hookLogIn(undefined);
    expect([Reflect.get(req, 'logIn'), Reflect.get(req, 'login')]).toEqual([undefined, undefined]);
  });

  test('by a method that returns a promise is told once', async () => {
    const done = vi.fn();
    const req = await withSession();
    const own = logInOf(req);
    Reflect.set(req, 'logIn', (user: unknown, options: unknown, told: () => void) =>
      promisify(own.bind(req) as (user: unknown, options: unknown, told: () => void) => void)(user, options).then(told),
    );
    openFor(req).handoff.hookLogIn(undefined);
    const returned = logInOf(req).call(req, '7', {}, done);
    expect(returned).toBeInstanceOf(Promise);
    await settled(returned as Promise<unknown>);
    await promisify(setImmediate)();
    expect(done.mock.calls).toEqual([[undefined]]);
  });

  test.for<[what: string, work: (req: IncomingMessage, done: () => void) => void, content: object]>([
    [
      'saves the session and waits for nothing',
      (req, done) =>
        (sessionOf(req).regenerate as LogIn)(() => {
          (sessionOf(req).save as () => void)();
          done();
        }),
      { [KEY]: true },
    ],
    [
      'leaves no session',
      (req, done) =>
        (sessionOf(req).regenerate as LogIn)(() => {
          done();
        }),
      {},
    ],
    [
      'replaces what stands in front of its session',
      (req, done) => {
        sessionOf(req).regenerate = done;
        (sessionOf(req).regenerate as () => void)();
      },
      { [KEY]: true },
    ],
  ])('by a method that %s', async ([what, work, content]) => {
    const req = await withSession();
    if (what === 'leaves no session')
      sessions.regenerate = (_req, done) => {
        Reflect.deleteProperty(req, 'session');
        done();
      };
    Reflect.set(req, 'logIn', (_user: unknown, _options: unknown, done: () => void) => work(req, done));
    openFor(req).handoff.hookLogIn(undefined);
    expect(await logIn(req, {})).toBeUndefined();
    expect(contentOf(req)).toEqual(KEY in content ? { [KEY]: grantId } : {});
  });

  test('by a method that rejects is undone, and needs nobody to be told', async () => {
    const req = await withSession({ old: true });
    const { handoff, callback } = openFor(req);
    Reflect.set(req, 'logIn', () => Promise.reject(new Error('Its own')));
    handoff.hookLogIn(undefined);
    await expect(logInOf(req).call(req, '7')).rejects.toThrow('Its own');
    await soon(() => expect(callback.events).toEqual([FAILURE('ERR_APPLICATION')]));
    expect(contentOf(req)).toEqual({ old: true });
  });
});

describe('a login that fails', () => {
  test.for<[what: string, method: 'regenerate' | 'set', left: object]>([
    ['regenerated', 'regenerate', { old: true, [KEY]: 'former', [CONNECTED]: true }],
    ['saved', 'set', {}],
  ])('since the session cannot be %s leaves neither a user nor the grant', async ([, method, left]) => {
    await putGrant();
    const req = await withSession({ old: true, [KEY]: 'former', [CONNECTED]: true });
    const { handoff, callback } = openFor(req);
    handoff.source = new GrantCredentials(runtime.managers.only(), grantId);
    handoff.hookLogIn('/page');
    const [before, destroy, { save }] = [Reflect.get(req, 'sessionID'), vi.spyOn(sessions, 'destroy'), sessionOf(req)];
    sessions[method] = (...args: unknown[]) => (args.at(-1) as (error: Error) => void)(new Error('The store is down'));
    expect(await logIn(req, { successReturnToOrRedirect: '/' })).toMatchObject({ code: 'ERR_SESSION_STORE' });
    expect(contentOf(req)).toEqual(left);
    if (method === 'regenerate') expect(sessionOf(req).save).toBe(save);
    expect(destroy.mock.calls.map(([id]) => id)).toEqual(method === 'set' ? [before] : []);
    await gone();
    expect(callback.events).toEqual([FAILURE('ERR_SESSION_STORE')]);
    handoff.reportUnwritten();
    handoff.restore(sessionOf(req));
    expect(contentOf(req)).toEqual(left);
    expect(callback.events).toHaveLength(1);
    await expect((async () => handoff.source?.credential())()).rejects.toMatchObject({ status: 401 });
  });

  test('leaves a grant under an id of the application', async () => {
    await putGrant();
    const req = await withSession();
    openFor(req, { idIsInSession: false }).handoff.hookLogIn(undefined);
    sessions.set = (_id, _session, done) => done?.(new Error('The store is down'));
    expect(await logIn(req)).toMatchObject({ code: 'ERR_SESSION_STORE' });
    await promisify(setImmediate)();
    expect(await has()).toBe(true);
  });

  test.for<[what: string, options: object, error: unknown, left: object | undefined]>([
    ['is undone: its session is destroyed', {}, { code: 'ERR_RESPONSE_SENT' }, undefined],
    ['without a session is left alone', { session: false }, undefined, {}],
  ])('since somebody else has sent the response %s', async ([, options, error, left]) => {
    const req = await withSession();
    const { handoff, callback } = openFor(req);
    handoff.hookLogIn(undefined);
    callback.res.end();
    const told = await logIn(req, options);
    if (error) expect(told).toMatchObject(error);
    else expect(told).toBeUndefined();
    expect(await storedSession(sessions, Reflect.get(req, 'sessionID'))).toEqual(left);
    expect(contentOf(req)).toEqual({});
  });

  test('by an error that it throws is undone', async () => {
    await putGrant();
    const req = await withSession({ old: true });
    const { handoff, callback } = openFor(req);
    const thrown = new Error('Its own');
    Reflect.set(req, 'logIn', () => {
      throw thrown;
    });
    handoff.hookLogIn(undefined);
    expect(() => logInOf(req).call(req, '7', { session: false })).toThrow(thrown);
    expect(callback.events).toEqual([]);
    expect(() => logInOf(req).call(req, '7', {})).toThrow(thrown);
    expect([contentOf(req), callback.events]).toStrictEqual([{ old: true }, [FAILURE('ERR_APPLICATION')]]);
    await gone();
  });

  test('where the application has no session is told of it', async () => {
    const req = requestOf();
    await addPassport(req);
    const { handoff, callback } = openFor(req);
    handoff.hookLogIn(undefined);
    expect(await logIn(req)).toMatchObject({ message: expect.stringContaining('session support') });
    expect(callback.events).toEqual([FAILURE('ERR_APPLICATION')]);
  });

  test('by an error of its own callback, once it has succeeded, stays', async () => {
    await putGrant();
    const req = requestOf({ session: {} });
    Reflect.set(req, 'logIn', (_user: unknown, _options: unknown, done: () => void) =>
      (sessionOf(req).regenerate as LogIn)(done),
    );
    const { handoff, callback } = openFor(req);
    handoff.hookLogIn(undefined);
    const throws = () => {
      throw new Error('Its own');
    };
    expect(() => logInOf(req).call(req, '7', throws)).toThrow('Its own');
    expect([contentOf(req), callback.events]).toEqual([{ [KEY]: grantId }, [SUCCESS()]]);
    expect(await has()).toBe(true);
  });

  test('since somebody else has sent the response is undone in a session that it has put in place', async () => {
    const req = requestOf({ session: {} });
    const { handoff, callback } = openFor(req);
    const replaced = { user: '7' };
    Reflect.set(req, 'logIn', (_user: unknown, _options: unknown, done: () => void) => {
      Reflect.set(req, 'session', replaced);
      callback.res.end();
      done();
    });
    handoff.hookLogIn(undefined);
    expect(await logIn(req, {})).toMatchObject({ code: 'ERR_RESPONSE_SENT' });
    expect(replaced).toEqual({});
  });

  test('while its session is written is not reported before', () => {
    const { handoff, callback } = openFor(requestOf());
    handoff.begin({});
    handoff.reportUnwritten();
    expect(callback.events).toEqual([]);
  });
});

test.for<[how: string, isSent: boolean, send: (callback: CallbackRequest) => void]>([
  ['untouched', false, () => undefined],
  ['that has its headers', true, ({ res }) => res.flushHeaders()],
  ['that has ended', true, ({ res }) => res.end()],
])('a response %s was sent: %s', ([, isSent, send]) => {
  const { callback } = openFor(requestOf());
  send(callback);
  const message =
    'The response was sent before the login ended, most likely by a time-out middleware: nobody was logged in. Give the callback route more time than the option timeout.';
  const error = { name: 'ConfigurationError', code: 'ERR_RESPONSE_SENT', message };
  if (isSent) expect(sentResponseError(callback.res)).toMatchObject(error);
  else expect(sentResponseError(callback.res)).toBeUndefined();
});
