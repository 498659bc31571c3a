import type { IncomingMessage } from 'node:http';
import { MemoryStore } from 'express-session';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { ConfigurationError } from '../../src/errors.js';
import { randomGrantId } from '../../src/grants/grant.js';
import { memoryTokenStore } from '../../src/index.js';
import type { GrantManager } from '../../src/refresh/grant-manager.js';
import { GrantManagers } from '../../src/session/grant-managers.js';
import { ANONYMOUS, connectionKey, RequestGrants, StrategyName } from '../../src/session/grant-reference.js';
import { threats } from '../support/threats.js';
import { requestOf } from './fixture.js';

type User = Readonly<Record<string, string & { readonly id: string }>>;

const managers = new GrantManagers(undefined, () => expect.unreachable());

/** Returns the id for the grant of a user. The user is `req.user` too. */
function newId(grantId: (req: { readonly user: User }, user: User) => unknown, user: object | string | null): string {
  const req = requestOf({}, { user, session: { account: { id: '9' } } });
  const strategyName = new StrategyName('oauth-app', 'of this test');
  try {
    return new RequestGrants({ name: 'oauth-app', grantId: grantId as never, strategyName }, managers).newId(req, user);
  } finally {
    strategyName.release();
  }
}

class Account {
  readonly #name = 'ada';
  readonly id = undefined;
  get name(): string {
    return this.#name;
  }
  key(): string {
    return `${this.#name}-${this.id}`;
  }
}

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object | string | null]>([
  [(_req, { id }) => `user_${id}`, { name: 'ada' }],
  [(_req, { id }) => `user_${id}`, { id: null }],
  [(_req, { id }) => `user_${id}`, 'ada'],
  [(_req, { id }) => `user_${id}`, Object.freeze({ id: undefined, username: 'us' })],
  [(_req, { id }) => `crowdin${id}`, {}],
  [(_req, { id }) => `${id}_svc`, {}],
  [(_req, { id }) => `user-${id}`, {}],
  [(_req, { id }) => String(id).toUpperCase(), {}],
  [(_req, { account }) => `u:${account?.id}`, { name: 'ada' }],
  [(_req, { tenant, id }) => (tenant ? `${tenant}/u:${id}` : `u:${id}`), {}],
  [(_req, { tenant, id }) => `${tenant}/u:${id}`, { tenant: 'acme' }],
  [() => 'user_undefined', null],
  [(_req, user) => `u:${'id' in user ? user.id : undefined}`, {}],
  [({ user }) => `user_${user.id}`, { name: 'ada' }],
  [(_req, user) => Reflect.apply(Account.prototype.key, user, []), new Account()],
])('an id that %o makes of %j is refused: all users without an id would share it', threats(69, 89), ([made, user]) => {
  const message = expect.stringMatching(/made of a missing user\.id\. .*userProfile/);
  expect(() => newId(made, user)).toThrow(expect.objectContaining({ option: 'grantId', message }));
  expect(() => newId(made, user)).toThrow(ConfigurationError);
});

test.for<[made: (req: { readonly user: User }, user: User) => unknown, user: object | string, id: string]>([
  [(_req, { id }) => id, { id: '7' }, '7'],
  [(_req, { id }) => `user_${id}`, { id: 'undefined-behavior' }, 'user_undefined-behavior'],
  [(_req, { nickname, username }) => nickname ?? username, { username: 'nullsoft' }, 'nullsoft'],
  [(_req, { username }) => String(username).toLowerCase(), { username: 'NullSoft' }, 'nullsoft'],
  [(_req, { email }) => email, { email: 'ada@null.example' }, 'ada@null.example'],
  [(_req, { username }) => username, { username: 'null' }, 'null'],
  [(_req, user) => `user:${user}`, 'nullsoft', 'user:nullsoft'],
  [(_req, { username }) => username, { username: 'Nan' }, 'Nan'],
  // They tell users apart all the same.
  [(_req, { domain, id }) => `${domain}/${id}`, { id: '7' }, 'undefined/7'],
  [(_req, { domain, username }) => `${domain}/${username}`, { username: 'ada.l' }, 'undefined/ada.l'],
  [(_req, { domain, username }) => `${domain}/${username}`, { username: 'ada+l' }, 'undefined/ada+l'],
  [(_req, { domain, name }) => `${domain}/${name}`, { id: '7', name: 'ada' }, 'undefined/ada'],
  [() => 'tenant-7', { name: 'ada' }, 'tenant-7'],
])('an id that %o makes of %j is %s', ([made, user, id]) => {
  expect(newId(made, user)).toBe(id);
});

test.for(['undefined', 'UNDEFINED', 'NaN', '[object Object]'])('the text %j stands for no user', (text) => {
  const message = `grantId: expected an id that differs for each user, got the text ${text}: the value it was made of is missing`;
  expect(() => newId((_req, { id }) => id, { id: text })).toThrow(
    new ConfigurationError(message, { option: 'grantId' }),
  );
});

/** A living strategy of this name. It ends with the test. */
function strategyOf(name: string, service: string): StrategyName {
  const strategy = new StrategyName(name, service);
  onTestFinished(() => strategy.release());
  return strategy;
}

const warnings: string[] = [];
const listen = ({ code, message }: Error & { readonly code?: string }) => {
  if (code === 'ERR_STRATEGY_NAME') warnings.push(message);
};
beforeAll(() => void process.on('warning', listen));
afterAll(() => void process.off('warning', listen));

/** The warnings that were given since the last call. */
async function warned(): Promise<string[]> {
  await new Promise(setImmediate);
  return warnings.splice(0);
}

describe('a name that two strategies share', () => {
  const inSession = (sessionID: unknown) => requestOf({}, { session: {}, sessionID });
  const message = (name: string) =>
    `Two strategies for different services have the name '${name}' and use one session. Set the option name of one of them to another name: the name given to passport.use does not set it.`;

  test('is one for two services, while both live', () => {
    const first = strategyOf('shared-1', 'a');
    expect(first.mayBeShared).toBe(false);
    const same = strategyOf('shared-1', 'a');
    strategyOf('other-1', 'b');
    expect([first.mayBeShared, same.mayBeShared]).toEqual([false, false]);
    const second = strategyOf('shared-1', 'b');
    expect([first, same, second].map(({ mayBeShared }) => mayBeShared)).toEqual([true, true, true]);
    second.release();
    expect([first.mayBeShared, same.mayBeShared]).toEqual([false, false]);
  });

  test('is warned of once, where both use one session', async () => {
    const [first, second] = [strategyOf('shared-2', 'a'), strategyOf('shared-2', 'b')];
    for (const id of ['one', 'one', 'two']) first.warnIfShared(inSession(id));
    second.warnIfShared(inSession('three'));
    strategyOf('other-2', 'b').warnIfShared(inSession('one'));
    expect(await warned()).toEqual([]);
    second.warnIfShared(inSession('one'));
    expect(await warned()).toEqual([message('shared-2')]);
    expect([first.mayBeShared, second.mayBeShared]).toEqual([true, false]);
    strategyOf('shared-2', 'c');
    expect([first.mayBeShared, second.mayBeShared]).toEqual([true, false]);
    // The first use of the session is the one that counts.
    first.warnIfShared(inSession('one'));
    expect(await warned()).toEqual([]);
  });

  test('is not warned of for what was used while it was not shared', async () => {
    const [name, req] = ['shared-5', requestOf({}, { session: {}, sessionID: 'one' })];
    const idOf = (strategyName: StrategyName) =>
      new RequestGrants({ name, grantId: undefined, strategyName }, managers).idOf(req);
    idOf(strategyOf(name, 'a'));
    idOf(strategyOf(name, 'b'));
    expect(await warned()).toEqual([]);
  });

  test('is not warned of without a session, and after the other strategy has ended', async () => {
    const [first, second] = [strategyOf('shared-3', 'a'), strategyOf('shared-3', 'b')];
    for (const strategy of [first, second]) {
      strategy.warnIfShared(inSession(7));
      strategy.warnIfShared(requestOf({}, { session: {} }));
      strategy.warnIfShared(requestOf({}, { sessionID: 'one' }));
    }
    first.warnIfShared(inSession('one'));
    first.release();
    second.warnIfShared(inSession('one'));
    second.release();
    second.warnIfShared(inSession('two'));
    expect(await warned()).toEqual([]);
  });

  test('is warned of in the thousand sessions that were used last', async () => {
    const first = strategyOf('shared-4', 'a');
    for (let session = 0; session < 1_000; session++) first.warnIfShared(inSession(`${session}`));
    for (const session of ['1', '1000', '1001']) first.warnIfShared(inSession(session));
    const [second, third] = [strategyOf('shared-4', 'b'), strategyOf('shared-4', 'c')];
    second.warnIfShared(inSession('1'));
    expect(await warned()).toEqual([message('shared-4')]);
    third.warnIfShared(inSession('0'));
    expect(await warned()).toEqual([]);
  });
});

const NAME = 'oauth-app';
const ID = randomGrantId();

/** How a strategy finds the grants of requests, by an id in the session unless it has the option. */
function grantsOf(grantId?: (req: IncomingMessage, user: unknown) => unknown, all = managers): RequestGrants {
  return new RequestGrants({ name: NAME, grantId, strategyName: strategyOf(NAME, 'a') }, all);
}

const byUser = (_req: IncomingMessage, user: unknown) => Reflect.get(Object(user), 'grant');

test.for<[what: string, added: object, id: string | undefined]>([
  ['a session with its id', { session: { [NAME]: ID } }, ID],
  ['a session with another text', { session: { [NAME]: 'id' } }, undefined],
  ['a session without one', { session: {} }, undefined],
  ['no session', {}, undefined],
  ['a user whom Passport knows', { session: { [NAME]: ID, passport: { user: 7 } } }, ID],
  ['a user whom Passport has refused', { session: { [NAME]: ID, passport: {} } }, undefined],
  [
    'a user whom Passport has refused, and an account that was connected before any login',
    { session: { [NAME]: ID, passport: {}, [connectionKey(NAME)]: ANONYMOUS } },
    ID,
  ],
  [
    'a user whom Passport has refused, and an account of that user',
    { session: { [NAME]: ID, passport: {}, [connectionKey(NAME)]: '7' } },
    undefined,
  ],
])('a request with %s has the grant of its session', ([, added, id]) => {
  const [grants, req] = [grantsOf(), requestOf({}, added)];
  expect(grants.idIsInSession).toBe(true);
  expect(grants.idOf(req)).toBe(id);
  expect(grants.canFindGrant(req)).toBe('session' in added);
});

test.for<[what: string, added: object, id: string | undefined, canFind: boolean]>([
  ['the grant of its user', { user: { grant: 'mine' } }, 'mine', true],
  ['none, where its user has none', { user: {} }, undefined, true],
  ['none, where the id is null', { user: { grant: null } }, undefined, true],
  ['none, where the id is empty', { user: { grant: '' } }, undefined, true],
  ['none without a user', { session: { [NAME]: ID } }, undefined, false],
  ['none where the user is null', { user: null }, undefined, false],
  ['none where the user is false', { user: false }, undefined, false],
])('with the option grantId a request has %s', ([, added, id, canFind]) => {
  const asked = vi.fn(byUser);
  const [grants, req] = [grantsOf(asked), requestOf({}, added)];
  expect(grants.idIsInSession).toBe(false);
  expect(grants.idOf(req)).toBe(id);
  expect(asked.mock.calls).toEqual(canFind ? [[req, Reflect.get(added, 'user')]] : []);
  expect(grants.canFindGrant(req)).toBe(canFind);
  expect(grants.referenceOf(req)).toBeUndefined();
});

test('an id of the option grantId is checked', () => {
  const req = requestOf({}, { user: 'ada' });
  expect(() => grantsOf(() => 7).idOf(req)).toThrow(/^grantId: expected a text of 1 to 800 characters/);
  for (const find of [() => grantsOf(async () => 'id').idOf(req), () => grantsOf(async () => 'id').newId(req, 'ada')])
    expect(find).toThrow(/^grantId: expected a function that returns its result, got a promise/);
  for (const id of [7, undefined])
    expect(() => grantsOf(() => id).newId(req, 'ada')).toThrow(/^grantId: expected a text of 1 to 800 characters/);
});

test('the reference of a session is read whoever is logged in, taken out and put back', () => {
  const grants = grantsOf();
  const session: Record<string, unknown> = { [NAME]: ID, passport: {}, mine: 1 };
  const req = requestOf({}, { session });
  expect(grants.referenceOf(req)).toBe(ID);
  expect(grants.takeReference(req)).toBe(ID);
  expect(session).toEqual({ passport: {}, mine: 1 });
  expect([grants.referenceOf(req), grants.takeReference(req)]).toEqual([undefined, undefined]);
  grants.restoreReference(req, ID);
  expect(session[NAME]).toBe(ID);
  session[NAME] = 'of another package';
  expect(grants.takeReference(req)).toBeUndefined();
  expect(session[NAME]).toBe('of another package');
  expect(grants.takeReference(requestOf())).toBeUndefined();
  expect(() => grants.restoreReference(requestOf(), ID)).not.toThrow();
});

test('without the option grantId each login has a new id', () => {
  const ids = [1, 2].map(() => grantsOf().newId(requestOf(), 'ada'));
  expect(ids).toEqual([expect.stringMatching(/^[\w-]{43}$/), expect.stringMatching(/^[\w-]{43}$/)]);
  expect(ids[0]).not.toBe(ids[1]);
});

test.for<[what: string, has: () => Promise<boolean>, added: object, isThere: boolean]>([
  ['that is there', async () => true, { session: { [NAME]: ID } }, true],
  ['that is gone', async () => false, { session: { [NAME]: ID } }, false],
  [
    'of which a store that fails tells nothing',
    () => Promise.reject(new Error('down')),
    { session: { [NAME]: ID } },
    true,
  ],
  ['that it does not name', async () => true, { session: {} }, false],
])('a request has a grant %s', async ([, has, added, isThere]) => {
  const asked = vi.fn(has);
  const manager = { has: asked } as unknown as GrantManager;
  expect(await grantsOf().hasGrant(requestOf({}, added), manager)).toBe(isThere);
  expect(asked.mock.calls).toEqual(NAME in Reflect.get(added, 'session') ? [[ID]] : []);
});

test('an account is anonymous that was connected before any login', () => {
  const sessions = [{ [connectionKey(NAME)]: ANONYMOUS }, { [connectionKey(NAME)]: '7' }, {}, undefined];
  expect(sessions.map((session) => grantsOf().isAnonymous(session))).toEqual([true, false, false, false]);
});

describe('userMarkOf', () => {
  const markOf = (grants: RequestGrants, added: object, isRequired = true) =>
    grants.userMarkOf(requestOf({}, added), isRequired);

  test('is a short text that differs for each user', () => {
    const grants = grantsOf();
    const ofUsers = [{ id: '1' }, { id: '2' }, { username: '3' }].map((user) => markOf(grants, { user }));
    // Passport has not read these yet.
    const ofRecords = ['1', '2', { id: 1 }].map((user) => markOf(grants, { session: { passport: { user } } }));
    const ofGrants = ['1', '4'].map((grant) => markOf(grantsOf(byUser), { user: { grant, id: '1' } }));
    const all = [...ofUsers, ...ofRecords, ...ofGrants];
    for (const mark of all) expect(mark).toMatch(/^[\w-]{11}$/);
    expect(new Set(all).size).toBe(all.length - 1);
    expect(ofGrants[0]).toBe(ofUsers[0]);
    const session = { passport: { user: '2' } };
    expect(markOf(grants, { user: { id: '1' }, session })).toBe(ofUsers[0]);
  });

  test('is empty if nobody is logged in', () => {
    for (const added of [{}, { user: null }, { session: {} }, { session: { passport: {} } }])
      expect(markOf(grantsOf(), added)).toBe('');
  });

  test('of a user who cannot be told apart is refused, or empty where it may be', () => {
    for (const [grants, user] of [
      [grantsOf(), { name: 'Ada' }],
      [grantsOf(byUser), { id: '1' }],
    ] as const) {
      expect(markOf(grants, { user }, false)).toBe('');
      const message =
        'passport.authorize: nothing tells who is logged in, so another user could finish the connection. Set the option grantId, or give req.user one of the properties id, _id, sub and username.';
      expect(() => markOf(grants, { user })).toThrow(expect.objectContaining({ message, code: 'ERR_NO_USER_ID' }));
    }
  });
});

describe('requireSessionAndStore', () => {
  const manager = {} as GrantManager;
  const all = new GrantManagers(memoryTokenStore(), () => manager);
  const NO_SESSION =
    'The request has no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.';
  const NO_STORE =
    'tokenStore: the session has no store to keep grants in (cookie-session has none). Set tokenStore, for example to redisTokenStore(…) or postgresTokenStore(…).';

  test.for<
    [
      what: string,
      grantId: typeof byUser | undefined,
      session: object | undefined,
      needsSession: boolean,
      code?: string,
    ]
  >([
    ['an id in its session', undefined, {}, false],
    ['no session', undefined, undefined, false, 'ERR_NO_SESSION'],
    ['a session that Passport cannot use', undefined, Object.freeze({}), false, 'ERR_SESSION_TYPE'],
    ['the option grantId and no session', byUser, undefined, false],
    ['the option grantId and no session, which it needs', byUser, undefined, true, 'ERR_NO_SESSION'],
    ['the option grantId and a session that nobody needs', byUser, Object.freeze({}), false],
    [
      'the option grantId and a session that it needs and Passport cannot use',
      byUser,
      Object.freeze({}),
      true,
      'ERR_SESSION_TYPE',
    ],
  ])('a login with %s', ([, grantId, session, needsSession, code]) => {
    const require = () => grantsOf(grantId, all).requireSessionAndStore(requestOf({}, { session }), needsSession);
    if (code === undefined) return expect(require()).toBe(manager);
    expect(require).toThrow(expect.objectContaining({ name: 'ConfigurationError', code }));
    if (code === 'ERR_NO_SESSION') expect(require).toThrow(NO_SESSION);
  });

  test('a request without a session tells of a store that is disconnected, once another has had one', () => {
    const grants = grantsOf(undefined, all);
    expect(() => grants.requireSessionAndStore(requestOf(), false)).toThrow(NO_SESSION);
    grants.idOf(requestOf());
    expect(() => grants.requireSessionAndStore(requestOf(), false)).toThrow(NO_SESSION);
    grants.idOf(requestOf({}, { session: {} }));
    expect(() => grants.requireSessionAndStore(requestOf(), false)).toThrow(
      expect.objectContaining({
        name: 'TokenStoreError',
        code: 'ERR_SESSION_STORE',
        message: 'The request has no session, although earlier requests had one: the session store is disconnected.',
      }),
    );
  });

  test('a session has to lead to a store of grants', () => {
    const ofSessions = new GrantManagers(undefined, () => manager);
    const grants = grantsOf(undefined, ofSessions);
    const error = expect.objectContaining({ message: NO_STORE, option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' });
    expect(() => grants.requireSessionAndStore(requestOf({}, { session: {} }), false)).toThrow(error);
    const req = requestOf({}, { session: {}, sessionStore: new MemoryStore() });
    expect(grants.requireSessionAndStore(req, false)).toBe(manager);
  });

  test.for<[what: string, grantId: typeof byUser | undefined, isWarned: boolean]>([
    ['an id in the session', undefined, true],
    ['the option grantId', byUser, false],
  ])('a shared name matters with %s', async ([, grantId, isWarned]) => {
    const name = `shared-by-${isWarned}`;
    for (const use of ['idOf', 'requireSessionAndStore'] as const) {
      const [strategyName, other] = [strategyOf(name, 'a'), strategyOf(name, use)];
      const req = requestOf({}, { session: {}, sessionID: use, user: {} });
      other.warnIfShared(req);
      new RequestGrants({ name, grantId, strategyName }, all)[use](req, undefined as never);
      expect(await warned()).toEqual(isWarned ? [expect.stringContaining(`have the name '${name}'`)] : []);
      for (const strategy of [strategyName, other]) strategy.release();
    }
  });
});
