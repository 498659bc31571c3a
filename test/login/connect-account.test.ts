import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import session from 'express-session';
import type { ApiClient } from 'passport-oauth-app';
import { beforeEach, describe, expect, test } from 'vitest';
import { randomGrantId } from '../../src/grants/grant.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import type { Runtime } from '../../src/runtime.js';
import { connectAccount } from '../../src/session/connect-account.js';
import { GrantHandoff } from '../../src/session/grant-handoff.js';
import { gate, tokens, withoutLock } from '../refresh/fixture.js';
import { TroubledStore } from '../support/troubled-store.js';
import { byUser } from '../support/world.js';
import { addSession, callbackOf, open, openSession, requestOf, settled, soon, storedSession } from './fixture.js';

const KEY = 'oauth-app';
const CONNECTED = 'oauth-app·connected';
const ADA = { id: 'ada' };
const PASSPORT = { passport: { user: 'ada' } };
const OTHER_SESSION = {
  kind: 'fail',
  reason: 'refused',
  info: {
    message:
      'The user has logged out, or logged in again, while this account was being connected. Please connect it again.',
  },
  status: 403,
};

let store: TroubledStore;
let sessions: session.MemoryStore;
beforeEach(() => {
  store = new TroubledStore();
  sessions = new session.MemoryStore();
});

const openHere = (options: object = {}) => open({ tokenStore: store, ...options });

/** A request of a user, with a session of express-session. */
async function requestWith(user: object | null = ADA, content: object = PASSPORT): Promise<IncomingMessage> {
  const req = requestOf({ user, protocol: 'https' });
  await addSession(req, sessions, content);
  return req;
}

/** The callback of a connection, and its end. */
function connection(req: IncomingMessage, runtime = openHere()) {
  const request = callbackOf(runtime, req, { isConnection: true, establishesSession: false });
  const connect = (brought: Partial<TokenSet> = {}, returnTo?: string) => {
    const verdict = { user: { id: 'connected' }, info: undefined };
    return connectAccount(runtime, request, { kind: 'success', tokens: tokens('a', brought), verdict, returnTo });
  };
  /** Connects the account. Returns the id of its grant. */
  const succeed = async (...args: Parameters<typeof connect>) => {
    const handoff = await connect(...args);
    if (!(handoff instanceof GrantHandoff)) throw new Error('It has failed');
    return handoff.grantId;
  };
  return { ...request, runtime, connect, succeed };
}

const idOf = (req: IncomingMessage) => String(Reflect.get(req, 'sessionID'));
const sessionOf = (req: IncomingMessage) => Reflect.get(req, 'session') as Record<string, unknown>;
const stored = (req: IncomingMessage) => storedSession(sessions, idOf(req));
/** The ids of the grants that the store has. */
const grantsIn = async () => {
  const ids: string[] = [];
  for await (const id of store.inner.list()) ids.push(id);
  return ids;
};
const gone = () => soon(async () => expect(await grantsIn()).toEqual([]));
const has = (runtime: Runtime, grantId: string) => runtime.managers.only().has(grantId);

describe('an account', () => {
  test('is connected to the session of its user, which is saved', async () => {
    const req = await requestWith();
    const id = idOf(req);
    const { runtime, res, succeed, events } = connection(req);
    runtime.clients.attach(req, res, 'apiClient');
    const grantId = await succeed();
    expect(idOf(req)).toBe(id);
    expect(await stored(req)).toEqual({ ...PASSPORT, [KEY]: grantId, [CONNECTED]: true });
    expect(await has(runtime, grantId)).toBe(true);
    expect((Reflect.get(req, 'apiClient') as ApiClient).grantId).toBe(grantId);
    expect(events).toEqual([{ name: 'login', event: expect.objectContaining({ outcome: 'success', grantId }) }]);
  });

  test('of nobody is connected to a session with a new id', async () => {
    const req = await requestWith(null, { cart: ['book'] });
    const id = idOf(req);
    const grantId = await connection(req).succeed();
    expect(idOf(req)).not.toBe(id);
    expect(await stored(req)).toEqual({ cart: ['book'], [KEY]: grantId, [CONNECTED]: 'anonymous' });
    expect(await storedSession(sessions, id)).toBeUndefined();
  });

  test('is connected to a session without methods', async () => {
    const session = {};
    const grantId = await connection(requestOf({ user: ADA, session })).succeed();
    expect(session).toEqual({ [KEY]: grantId, [CONNECTED]: true });
  });

  test.for([
    ['with a session', true],
    ['without a session', false],
  ] as const)('is stored under the id of its user, %s', async ([, hasSession]) => {
    const req = hasSession ? await requestWith() : requestOf({ user: ADA });
    const { runtime, succeed } = connection(req, openHere({ grantId: byUser }));
    expect(await succeed()).toBe('ada');
    expect(await has(runtime, 'ada')).toBe(true);
    if (hasSession) expect(await stored(req)).toEqual(PASSPORT);
  });

  test.for<[returnTo: string | undefined, ofSession: unknown, after: unknown]>([
    ['/page', '/of-session', '/page'],
    [undefined, '/of-session', '/of-session'],
    [undefined, '//evil.example', '/'],
    [undefined, undefined, undefined],
  ])('with the pages %s and %s leads to %s', async ([returnTo, ofSession, after]) => {
    const req = await requestWith(ADA, { ...PASSPORT, ...(ofSession ? { returnTo: ofSession } : {}) });
    await connection(req).succeed({}, returnTo);
    expect(Object(await stored(req)).returnTo).toBe(after);
  });

  test('leaves what this request and others have changed in the session', async () => {
    const req = await requestWith(ADA, { ...PASSPORT, both: 0, removed: 1, others: 0 });
    const { succeed } = connection(req);
    Object.assign(sessionOf(req), { both: 1, own: 1, removed: undefined });
    const others = { ...Object(await stored(req)), cookie: { originalMaxAge: null }, others: 1 };
    await promisify((done: () => void) => sessions.set(idOf(req), others, done))();
    const grantId = await succeed();
    const refers = { [KEY]: grantId, [CONNECTED]: true };
    expect(await stored(req)).toEqual({ ...PASSPORT, ...refers, both: 1, own: 1, others: 1 });
  });

  test('keeps the refresh token of the grant that it replaces, if it has brought none', async () => {
    const runtime = openHere();
    const former = randomGrantId();
    await runtime.managers.only().put(former, tokens('former', { subject: '7' }));
    const req = await requestWith(ADA, { ...PASSPORT, [KEY]: former, [CONNECTED]: true });
    const grantId = await connection(req, runtime).succeed({ subject: '7', refreshToken: undefined });
    expect(await runtime.managers.only().current(grantId)).toMatchObject({ refreshToken: 'refresh-former' });
    await soon(async () => expect(await has(runtime, former)).toBe(false));
  });
});

describe('an account of a user who has logged in with the strategy', () => {
  const MESSAGE =
    'passport.authorize: the user has logged in with this strategy and another account, and a session holds one grant for each strategy. Connect accounts with a second Strategy that has a name of its own.';
  type Case = [
    what: string,
    isRefused: boolean,
    subject?: string,
    brought?: string,
    user?: null | undefined,
    isConnected?: true,
  ];
  const cases: Case[] = [
    ['is connected if it is the same', false, '7', '7'],
    ['is refused if it is another one', true, '7', '8'],
    ['is refused if nothing tells', true],
    ['is connected in place of another connected one', false, '7', '8', undefined, true],
    ['is connected where nobody is logged in', false, '7', '8', null],
  ];
  const named = { grantId: (_req: unknown, user: unknown) => Object(user).id ?? 'nobody' };

  /** Connects an account over a grant of this id, and this content of the session. */
  async function connectOver(
    [, isRefused, subject, brought, user]: Case,
    options: object,
    id: string,
    content: object,
  ) {
    const runtime = openHere(options);
    await runtime.managers.only().put(id, tokens('former', { subject }));
    const all = { ...PASSPORT, ...content };
    const req = await requestWith(user, all);
    const connecting = connection(req, runtime).connect({ subject: brought });
    if (!isRefused) return expect(await connecting).toBeInstanceOf(GrantHandoff);
    const error = { name: 'ConfigurationError', code: 'ERR_OTHER_ACCOUNT', message: MESSAGE };
    await expect(connecting).rejects.toMatchObject(error);
    expect(await stored(req)).toEqual(all);
    expect(await runtime.managers.only().current(id)).toMatchObject({ accessToken: 'access-former' });
  }

  test.for(cases)('%s', async (row) => {
    const id = randomGrantId();
    await connectOver(row, {}, id, { [KEY]: id, ...(row[5] && { [CONNECTED]: true }) });
  });

  test.for(cases)('%s, under the id of the user', async (row) => {
    await connectOver(row, named, 'ada', row[5] ? {} : { [CONNECTED]: false });
  });

  test('is connected if that grant is gone, and not while the store fails', async () => {
    const content = { ...PASSPORT, [KEY]: randomGrantId() };
    expect(await connection(await requestWith(ADA, content)).connect()).toBeInstanceOf(GrantHandoff);
    store.fail('get');
    await expect(connection(await requestWith(ADA, content)).connect()).rejects.toMatchObject({
      code: 'ERR_TOKEN_STORE',
    });
  });
});

test('an account of a user without a grant is connected without a look for one', async () => {
  store.fail('get');
  expect(await connection(await requestWith()).connect()).toBeInstanceOf(GrantHandoff);
});

describe('a connection whose user leaves meanwhile', () => {
  const leave: Record<string, (req: IncomingMessage) => Promise<void>> = {
    'logs out': (req) => promisify(sessions.destroy.bind(sessions))(idOf(req)) as Promise<void>,
    'logs in as another': async (req) => {
      const other = { cookie: { originalMaxAge: null }, passport: { user: 'bob' } };
      await promisify((done: () => void) => sessions.set(idOf(req), other as never, done))();
    },
  };
  test.for(Object.keys(leave))('and %s is refused, and its grant goes', async (how) => {
    const req = await requestWith();
    const { connect, events } = connection(req);
    await leave[how]?.(req);
    expect(await connect()).toEqual(OTHER_SESSION);
    await gone();
    expect(events).toEqual([]);
  });

  test('is not stored under the id of the user', async () => {
    const runtime = openHere({ grantId: byUser });
    await runtime.managers.only().put('ada', tokens('former'));
    const req = await requestWith();
    const { connect } = connection(req, runtime);
    await leave['logs out']?.(req);
    expect(await connect()).toEqual(OTHER_SESSION);
    expect(await runtime.managers.only().current('ada')).toMatchObject({ accessToken: 'access-former' });
  });

  test('while it is stored under the id of the user is withdrawn', async () => {
    const req = await requestWith();
    const { connect } = connection(req, openHere({ grantId: byUser }));
    store.before = (method) => (method === 'set' ? leave['logs out']?.(req) : undefined);
    expect(await connect()).toEqual(OTHER_SESSION);
    await gone();
  });
});

describe('a connection fails', () => {
  const failed = (reason: string) => [{ name: 'login', event: expect.objectContaining({ outcome: 'error', reason }) }];

  test('if somebody else has sent the response, before anything is stored', async () => {
    const { connect, res } = connection(await requestWith());
    res.end();
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_RESPONSE_SENT' });
    expect(store.calls).toEqual([]);
  });

  test('if somebody else sends the response while the session is saved, which is saved as it was', async () => {
    const before = { ...PASSPORT, [KEY]: 'former', [CONNECTED]: true };
    const req = await requestWith(ADA, before);
    const { connect, res, events } = connection(req);
    const set = sessions.set.bind(sessions);
    sessions.set = (...args) => {
      res.end();
      set(...args);
    };
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_RESPONSE_SENT' });
    expect(await stored(req)).toEqual(before);
    await gone();
    expect(events).toEqual(failed('ERR_RESPONSE_SENT'));
  });

  test.for([
    ['of a user', ADA],
    ['of nobody', null],
  ] as const)(
    'if the session %s cannot be saved: it is left as it was, to the end of the response',
    async ([, user]) => {
      const req = await requestWith(user, { cart: 1 });
      const { connect, events } = connection(req);
      let saves = 0;
      sessions.set = (_id, _session, done) => {
        saves += 1;
        done?.(new Error('The store is down'));
      };
      await expect(connect()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' });
      const { cookie: _settings, ...content } = sessionOf(req);
      expect([content, saves]).toEqual([{ cart: 1 }, 1]);
      await gone();
      expect(events).toEqual(failed('ERR_SESSION_STORE'));
    },
  );

  test('if its session cannot be loaded: its grant goes', async () => {
    const { connect } = connection(await requestWith());
    sessions.get = (_id, done) => done(new Error('The store is down'));
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_SESSION_STORE' });
    await gone();
  });

  test('if its grant cannot be stored: its session is not written', async () => {
    const req = await requestWith();
    const { connect } = connection(req);
    store.fail('set');
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE' });
    expect(await stored(req)).toEqual(PASSPORT);
  });

  test('if the lock of its session cannot be had: its grant goes', async () => {
    const { connect } = connection(await requestWith());
    store.before = (method, id) => {
      if (method === 'lock' && id.startsWith('session:')) throw new Error('The store is down');
    };
    await expect(connect()).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE' });
    await gone();
  });
});

describe('connections of one session', () => {
  test.for(['with locks', 'without locks'])('write it one after the other, in a store %s', async (how) => {
    const tokenStore = how === 'with locks' ? store : withoutLock(store);
    const req = await requestWith();
    const others = requestOf({ user: ADA, protocol: 'https' });
    others.headers = req.headers;
    await openSession(others, sessions);
    const first = connection(req, openHere({ tokenStore }));
    const second = connection(others, openHere({ tokenStore, name: 'other' }));
    await settled(Promise.all([first.connect(), second.connect()]));
    expect(Object.keys(Object(await stored(req)))).toEqual(expect.arrayContaining([KEY, 'other']));
    expect(store.locks).toBe(0);
  });

  test('wait for another process that writes it', async () => {
    const req = await requestWith();
    const [held, end] = [gate(), gate()];
    const id = `session:${createHash('sha256').update(idOf(req)).digest('base64url')}`;
    const holding = store.inner.lock(id, async () => {
      held.open();
      await end.opened;
    });
    await held.opened;
    const connecting = connection(req).connect();
    await expect(settled(connecting)).rejects.toThrow('Nobody has fulfilled');
    expect(await stored(req)).toEqual(PASSPORT);
    end.open();
    await Promise.all([holding, connecting]);
    expect(await stored(req)).toMatchObject({ [CONNECTED]: true });
  });
});
