import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, vi } from 'vitest';
import { grantList } from '../../src/jobs/grant-list.js';
import { keepAlive } from '../../src/jobs/keep-alive.js';
import type { TokenSet } from '../../src/oauth/token-response.js';
import { json } from '../support/faulty-server.js';
import { stopTime } from '../support/stop-time.js';
import type { TroubledStore } from '../support/troubled-store.js';
import { until } from '../support/until.js';
import { type Grants, gate, LIFETIME_S, pair, REFUSAL, test, tokens, withoutLock } from './fixture.js';

const MACHINE = { grant_type: 'client_credentials' };
/** The application's grants are those whose ids begin with `machine`. */
const parametersOf = async (id: string) => (id.startsWith('machine') ? MACHINE : undefined);

const NO_GRANT = {
  name: 'NotAuthorizedError',
  message: 'There is no grant (any more): the user has to log in again.',
};

/** The same store without `add`, and with locks. */
function withoutAdd(store: TroubledStore) {
  return { ...withoutLock(store), lock: store.lock.bind(store), update: store.update.bind(store) };
}

const count = ({ store }: Grants, method: string) => store.calls.filter((call) => call === method).length;

describe('a grant', () => {
  test('is the one that the request has loaded, where no cache has it', async ({ grants }) => {
    const manager = grants.another({ cache: false });
    const loaded = await manager.put('id', tokens('first'));
    expect(manager.current('id', loaded)).toBe(loaded);
    const cached = await grants.manager.put('id', tokens('second'));
    expect(grants.manager.current('id', loaded)).toBe(cached);
    expect(count(grants, 'get')).toBe(0);
  });

  test.for(['current', 'stored'] as const)(
    'is used by a request that read the store while its login was saved: %s',
    async (method, { grants }) => {
      const { store } = grants;
      const { opened, open } = gate();
      const slow = Object.assign(withoutAdd(store), { get: (id: string) => store.get(id).finally(() => opened) });
      const manager = grants.another({ store: slow });
      const grant = manager[method]('id');
      await manager.put('id', tokens('first'));
      open();
      expect(await grant).toMatchObject({ accessToken: 'access-first' });
    },
  );

  test('is there until its refresh token has expired, or it is deleted', async ({ grants }) => {
    const { manager, clock, store } = grants;
    expect(await manager.has('id')).toBe(false);
    await manager.put('id', tokens('first', { refreshTokenLifetimeMs: 1_000 }));
    await manager.put('expired', tokens('expired', { lifetimeMs: 0 }));
    const other = grants.another();
    for (const each of [manager, other])
      expect([await each.has('id'), await each.has('expired')]).toEqual([true, true]);
    clock.advance(1);
    for (const each of [manager, other])
      expect([await each.has('id'), await each.has('expired')]).toEqual([false, true]);
    store.fail('get');
    await expect(manager.has('unknown')).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(grants.sent()).toEqual([]);
  });

  test('is stored as it is: expired, cached or not, in the store or not yet', async ({ expired: grants }) => {
    const { manager, store } = grants;
    expect(await manager.stored('id')).toMatchObject({ accessToken: 'access-old' });
    expect(manager.stored('id')).toMatchObject({ accessToken: 'access-old' });
    await expect(manager.stored('unknown')).rejects.toMatchObject(NO_GRANT);
    store.fail('update');
    const uncached = grants.another({ cache: false });
    await uncached.current('id');
    store.recover();
    store.fail('update', 'set');
    expect(uncached.stored('id')).toMatchObject({ accessToken: 'access-1' });
    store.recover();
  });

  test('is stored in memory though the store has answered with the pair before', async ({ expired: grants }) => {
    const { store } = grants;
    const manager = grants.another({ cache: false });
    const loaded = await manager.stored('id');
    const answer = gate();
    const { get } = store;
    store.get = async (id) => {
      store.get = get;
      const record = await store.get(id);
      await answer.opened;
      return record;
    };
    const late = [manager.stored('id'), manager.current('id')];
    store.fail('update');
    await manager.current('id', loaded);
    answer.open();
    for (const grant of late) expect(await grant).toMatchObject({ accessToken: 'access-1' });
    expect(grants.sent()).toEqual(['refresh-old']);
    store.recover();
  });

  test('of the application is empty before its first token, that of a user is none', async ({ grants }) => {
    const manager = grants.another({ parametersOf });
    expect(await manager.stored('machine')).toMatchObject({ accessToken: '', refreshToken: undefined });
    await expect(manager.stored('id')).rejects.toMatchObject(NO_GRANT);
    await expect(manager.current('id')).rejects.toMatchObject(NO_GRANT);
    expect(await manager.current('machine')).toMatchObject({ accessToken: 'access-1', refreshToken: undefined });
    expect(grants.service.requests.map(({ body }) => JSON.parse(`${body}`).grant_type)).toEqual(['client_credentials']);
  });

  test('without a refresh token is refreshed ahead only if it may be the application’s', async ({ grants }) => {
    const single = tokens('single', { refreshToken: undefined });
    const machines = grants.another({ parametersOf });
    for (const [manager, id] of [
      [grants.manager, 'id'],
      [machines, 'machine'],
    ] as const)
      await manager.put(id, single);
    grants.clock.advance(LIFETIME_S - 60);
    await grants.manager.current('id');
    await machines.current('machine');
    await grants.idle();
    expect(grants.events).toMatchObject([{ outcome: 'refreshed', trigger: 'ahead' }]);
    expect(grants.service.requests).toHaveLength(1);
  });
});

describe('a refresh ahead of the end', () => {
  test.for<[what: string, change: (grants: Grants) => unknown, sent: string[]]>([
    ['the grant of the store', () => undefined, ['refresh-first']],
    [
      'no grant that another process has refreshed',
      ({ another }) => another().renew('id', 'access-first'),
      ['refresh-first'],
    ],
    ['no grant that another process has deleted', ({ another }) => another().remove('id'), []],
  ])('refreshes %s', async ([, change, sent], { grants }) => {
    const manager = grants.another({ cache: false });
    const loaded = await manager.put('id', tokens('first'));
    grants.clock.advance(LIFETIME_S - 60);
    await change(grants);
    expect(manager.current('id', loaded)).toBe(loaded);
    await grants.idle();
    await manager.close();
    expect(grants.sent()).toEqual(sent);
    const [event] = grants.events;
    if (change.length === 0) expect(event).toMatchObject({ trigger: 'ahead' });
  });

  test('reads the grant under its lock alone, if that is cached', async ({ grants }) => {
    const manager = grants.another({ cache: { max: 1_000, ttlMs: Number.POSITIVE_INFINITY } });
    await manager.put('id', tokens('first'));
    grants.clock.advance(LIFETIME_S - 60);
    await manager.current('id');
    await grants.idle();
    await manager.close();
    expect(grants.store.calls).toEqual(['set', 'lock', 'get', 'update']);
  });
});

describe('a token that the API has refused', () => {
  test('stays in use while nothing can replace it, whatever the token endpoint does', async ({ grants }) => {
    const { manager, service } = grants;
    const single = await manager.put('single', tokens('single', { refreshToken: undefined }));
    await manager.put('id', tokens('first'));
    service.next(json({}, 503, { 'retry-after': '20' }));
    await expect(manager.renew('id', 'access-first')).rejects.toMatchObject({ status: 503, retryAfter: 20 });
    expect(await manager.renew('single', 'access-single')).toBe(single);
  });

  test.for<[what: string, refused: string, renewed: string, sent: string[]]>([
    ['the current one', 'access-first', 'access-1', ['refresh-first']],
    ['an older one', 'access-before', 'access-first', []],
  ])('is renewed if it is %s, cached or not', async ([, refused, renewed, sent], { startGrants }) => {
    for (const isCached of [true, false]) {
      const grants = await startGrants();
      await grants.manager.put('id', tokens('first'));
      const manager = isCached ? grants.manager : grants.another();
      expect(await manager.renew('id', refused)).toMatchObject({ accessToken: renewed });
      expect(grants.sent()).toEqual(sent);
    }
  });

  test('is an error if there is no grant, and a new token if it is the application’s', async ({ grants }) => {
    await expect(grants.manager.renew('id', 'any')).rejects.toMatchObject(NO_GRANT);
    const machines = grants.another({ parametersOf });
    expect(await machines.renew('machine', 'any')).toMatchObject({ accessToken: 'access-1' });
    expect(await machines.renew('machine', 'access-1')).toMatchObject({ accessToken: 'access-2' });
    expect(grants.events.map(({ trigger }) => trigger)).toEqual(['expired', 'refused']);
  });

  test('is asked for again while new ones are accepted, or come from another process', async ({ grants }) => {
    const { manager, clock } = grants;
    await manager.put('id', tokens('first'));
    const renewed = await manager.renew('id', 'access-first');
    /** Refreshes of a renewal of the current token. */
    const renew = async () => {
      const before = grants.sent().length;
      const { accessToken } = await manager.current('id');
      await manager.renew('id', accessToken);
      return grants.sent().length - before;
    };
    manager.reportOutcome('id', { ...renewed }, false);
    expect(await renew()).toBe(1);
    const report = async (accepted: boolean) => manager.reportOutcome('id', await manager.current('id'), accepted);
    await report(false);
    clock.advance(0.9);
    // A second refusal during the pause makes it no longer.
    await report(false);
    expect(await renew()).toBe(0);
    clock.advance(0.1);
    expect(await renew()).toBe(1);
    await report(false);
    await report(true);
    expect(await renew()).toBe(1);
    await report(false);
    expect(await renew()).toBe(0);
    await manager.put('id', tokens('login'));
    expect(await renew()).toBe(1);
  });
});

describe('a login without a refresh token', () => {
  const USER = { subject: 'user' };
  const OTHER = { subject: 'other' };
  const ENDS = { ...USER, refreshTokenLifetimeMs: 60_000 };

  test.for<
    [
      what: string,
      former: Partial<TokenSet> | undefined,
      login: Partial<TokenSet>,
      formerId: string | undefined,
      expected: string | undefined,
    ]
  >([
    ['keeps that of the same user', USER, USER, 'former', 'refresh-former'],
    ['keeps that of the same id and user', USER, USER, 'id', 'refresh-former'],
    ['keeps none of another user', USER, OTHER, 'former', undefined],
    ['keeps none of another user with the same id', USER, OTHER, 'id', undefined],
    ['keeps that of the same id, if no user is known', {}, {}, 'id', 'refresh-former'],
    ['keeps none of another id, if no user is known', {}, {}, 'former', undefined],
    ['keeps none of a grant whose user is not known', {}, USER, 'id', undefined],
    ['keeps none if its own user is not known', USER, {}, 'id', undefined],
    ['keeps none without a former grant', undefined, USER, 'former', undefined],
    ['keeps none without the id of a former grant', USER, USER, undefined, undefined],
    ['keeps one that has not expired', ENDS, USER, 'former', 'refresh-former'],
    ['keeps none that has expired', { ...ENDS, refreshTokenLifetimeMs: 30_000 }, USER, 'former', undefined],
  ])('%s', async ([, former, login, formerId, expected], { grants }) => {
    const { manager, store, clock } = grants;
    if (former) await grants.another().put(formerId ?? 'former', tokens('former', former));
    clock.advance(30);
    const saved = await manager.put('id', tokens('login', { refreshToken: undefined, ...login }), false, formerId);
    expect(saved).toMatchObject({ accessToken: 'access-login', refreshToken: expected });
    const end = former === ENDS ? clock.now() + 30_000 : undefined;
    expect(saved.refreshTokenExpiresAt).toBe(end);
    expect(await grants.another().stored('id')).toMatchObject({ refreshToken: expected });
    expect([count(grants, 'lock'), store.locks]).toEqual([formerId === undefined ? 0 : 1, 0]);
    expect(grants.actions.at(-1)).toBe('id stored');
  });

  test('keeps that of a pair that could not be saved', async ({ expired: grants }) => {
    const { manager, store } = grants;
    store.leaseMs = 1_000;
    store.fail('update');
    await manager.current('id');
    expect(await manager.put('id', tokens('login', { refreshToken: undefined }), false, 'id')).toMatchObject({
      refreshToken: 'refresh-1',
    });
  });

  test('is none of one that has brought its own: nothing is locked or read', async ({ grants }) => {
    await grants.manager.put('former', tokens('former'));
    grants.store.calls.length = 0;
    await grants.manager.put('id', tokens('login'), true, 'former');
    expect(grants.store.calls).toEqual(['set']);
  });

  test('gives its lock back if it cannot be saved', async ({ grants }) => {
    const { manager, store } = grants;
    store.fail('set');
    await expect(manager.put('id', tokens('a', { refreshToken: undefined }), false, 'id')).rejects.toMatchObject({
      name: 'TokenStoreError',
    });
    expect(store.locks).toBe(0);
    expect(grants.actions).toEqual([]);
  });
});

test('a grant that cannot be read is lost, and no grant', async ({ grants }) => {
  await grants.store.inner.set('oauth-app+id', { version: 1, expiresAt: 1, sealed: 'nonsense' });
  expect(await grants.use()).toBe(401);
  expect(grants.lost).toEqual(['unreadable']);
});

test('changes are logins and logouts that may have replaced or deleted a grant', async ({ grants }) => {
  const { manager } = grants;
  const steps: (() => unknown)[] = [
    () => manager.put('new', tokens('new'), true),
    () => manager.put('id', tokens('first')),
    () => manager.import(() => 'id', tokens('second'), true),
    () => manager.import(() => 'id', tokens('third'), false),
    () => manager.import(() => 'other', tokens('third'), false),
  ];
  const changes: number[] = [];
  for (const step of steps) {
    await step();
    changes.push(manager.changes);
  }
  expect(changes).toEqual([0, 1, 2, 2, 3]);
  await manager.discard('id');
  expect(manager.changes).toBeGreaterThan(3);
  const { changes: before } = manager;
  await manager.remove('other');
  expect(manager.changes).toBeGreaterThan(before);
  expect(grants.actions).toEqual([
    ...['new stored', 'id stored', 'id imported', 'other imported', 'id deleted', 'other deleted'],
  ]);
});

describe('an import', () => {
  test.for<[what: string, open: (store: TroubledStore) => ReturnType<typeof withoutLock>, locks: number]>([
    ['that adds', (store) => store, 0],
    ['with locks', (store) => withoutAdd(store), 2],
    ['with neither', (store) => withoutLock(store), 0],
  ])('replaces no grant unless it shall, in a store %s', async ([, open, locks], { grants }) => {
    const manager = grants.another({ store: open(grants.store) });
    expect(await manager.import(() => 'id', tokens('first'), false)).toMatchObject({ grantId: 'id' });
    expect(await manager.import(() => 'id', tokens('second'), false)).toBeUndefined();
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
    expect(await manager.import(() => 'id', tokens('third'), true)).toMatchObject({ grantId: 'id' });
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-third' });
    expect(grants.actions).toEqual(['id imported', 'id imported']);
    expect([count(grants, 'lock'), grants.store.locks]).toEqual([locks, 0]);
  });

  test('wins alone against others at once, in a store with locks alone', async ({ grants }) => {
    const managers = [1, 2, 3].map(() => grants.another({ store: withoutAdd(grants.store) }));
    const imported = await Promise.all(
      managers.map((manager, index) => manager.import(() => 'id', tokens(`${index}`), false)),
    );
    expect(imported.filter(Boolean)).toHaveLength(1);
  });

  test('gives its lock back if the store fails', async ({ grants }) => {
    grants.store.fail('set');
    const manager = grants.another({ store: withoutAdd(grants.store) });
    await expect(manager.import(() => 'id', tokens('first'), false)).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(grants.store.locks).toBe(0);
  });
});

describe('a logout', () => {
  test.for([
    ['is told', false, ['id stored', 'id deleted'], []],
    ['revokes the tokens', true, ['id stored', 'id deleted', 'id revoked'], ['refresh-first']],
  ] as const)('%s', async ([, revokes, actions, revoked], { grants }) => {
    const manager = grants.another({ revokes });
    await manager.remove('unknown');
    await manager.put('id', tokens('first'));
    await manager.remove('id');
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([actions, revoked]);
    await expect(grants.another().current('id')).rejects.toMatchObject(NO_GRANT);
  });

  test.for<[what: string, change: (grants: Grants) => unknown, revoked: string]>([
    ['the pair that could not be saved', () => undefined, 'refresh-1'],
    ['that of a later login', ({ another }) => another().put('id', tokens('later')), 'refresh-later'],
    [
      'the pair that could not be saved, if there is no other',
      ({ store }) => store.inner.delete('oauth-app+id'),
      'refresh-1',
    ],
  ])('revokes %s', async ([, change, revoked], { expired: grants }) => {
    const { store } = grants;
    const manager = grants.another({ revokes: true });
    store.fail('update');
    expect(await grants.use(manager)).toBe('access-1');
    store.before = (method) => {
      if (method === 'update') throw new Error('still');
    };
    await change(grants);
    grants.actions.length = 0;
    await manager.remove('id');
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([['id deleted', 'id revoked'], [revoked]]);
  });

  test('that fails deletes nothing, revokes nothing, and is told by nobody', async ({ grants }) => {
    const manager = grants.another({ revokes: true });
    await manager.put('id', tokens('first'));
    grants.store.fail('delete');
    await expect(manager.remove('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([['id stored'], []]);
  });

  test('whose answer is lost revokes the tokens all the same, once', async ({ grants }) => {
    const { store } = grants;
    const manager = grants.another({ revokes: true });
    await manager.put('id', tokens('first'));
    const { delete: remove } = store;
    store.delete = async (...args) => {
      await remove.apply(store, args);
      throw new Error('lost');
    };
    await expect(manager.remove('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([['id stored', 'id revoked'], ['refresh-first']]);
  });

  test.for<[what: string, late: (deleteNow: () => Promise<unknown>) => unknown, actions: string[]]>([
    ['before it is given up', (deleteNow) => deleteNow(), ['id deleted', 'id revoked']],
    [
      'later than anybody waits',
      async (deleteNow) => {
        await vi.advanceTimersByTimeAsync(20_000);
        await deleteNow();
      },
      ['id revoked'],
    ],
  ])('that a slow store carries out %s revokes the tokens then, once', async ([, late, actions], { grants }) => {
    stopTime();
    const manager = grants.another({ revokes: true });
    await manager.put('id', tokens('first'));
    const { opened, open } = gate();
    grants.store.before = (method) => (method === 'delete' ? opened : undefined);
    const failed = expect(manager.remove('id')).rejects.toMatchObject({ code: 'ERR_TOKEN_STORE_TIMEOUT' });
    await vi.advanceTimersByTimeAsync(5_000);
    await failed;
    grants.actions.length = 0;
    expect(grants.revoked()).toEqual([]);
    await late(async () => open());
    await until(() => expect(grants.actions).toContain('id revoked'));
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([actions, ['refresh-first']]);
  });

  test('that has failed is looked after for some seconds: the store may have got it all the same', async ({
    grants,
  }) => {
    stopTime();
    const manager = grants.another({ revokes: true });
    await manager.put('id', tokens('first'));
    grants.store.fail('delete');
    await expect(manager.remove('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    await vi.advanceTimersByTimeAsync(0);
    await grants.store.inner.delete('oauth-app+id');
    await vi.advanceTimersByTimeAsync(250);
    await manager.close();
    expect(grants.revoked()).toEqual(['refresh-first']);
  });

  const logOut = (manager: Grants['manager']) => manager.remove('id');
  const logIn = (manager: Grants['manager']) => manager.put('id', tokens('login'));
  test.for<[what: string, change: typeof logIn | typeof logOut, isUnsaved: boolean, revoked: string[]]>([
    ['is revoked after a logout', logOut, false, ['refresh-new']],
    ['is revoked after a logout, if it could not be saved', logOut, true, ['refresh-new']],
    ['is not revoked after a login', logIn, false, []],
    ['is not revoked after a login, if it could not be saved', logIn, true, []],
  ])(
    'in another process: what a refresh brings then %s',
    async ([, change, isUnsaved, revoked], { expired: grants }) => {
      const { service, store, events } = grants;
      const manager = grants.another({ revokes: true });
      service.next(async (socket, request) => {
        if (isUnsaved) store.fail('update');
        else await change(grants.another());
        pair('new')(socket, request);
      });
      await grants.use(manager);
      store.recover();
      if (isUnsaved) await change(grants.another());
      await manager.has('other');
      await until(() => expect(events.at(-1)).toMatchObject({ outcome: 'discarded' }));
      await manager.close();
      expect(grants.revoked()).toEqual(revoked);
      expect(grants.actions).not.toContain('id revocation-failed');
    },
  );

  test('that finds nothing to delete, and fails, revokes nothing', async ({ grants }) => {
    const manager = grants.another({ revokes: true });
    grants.store.fail('get');
    await expect(manager.remove('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    grants.store.recover();
    await manager.close();
    expect([grants.actions, grants.revoked()]).toEqual([[], []]);
  });
});

describe('a grant that a login has replaced', () => {
  test.for([
    [true, 1],
    [false, 0],
  ] as const)(
    'is deleted, and not revoked; it waits for a refresh only if tokens are revoked: %j',
    async ([revokes, locks], { grants }) => {
      const manager = grants.another({ revokes });
      await manager.put('id', tokens('first'));
      await manager.discard('id');
      await manager.discard('id');
      await manager.close();
      expect([grants.actions, grants.revoked()]).toEqual([['id stored', 'id deleted'], []]);
      expect([count(grants, 'lock'), grants.store.locks]).toEqual([2 * locks, 0]);
      expect(await grants.use(manager)).toBe(401);
    },
  );

  test('is deleted though its lock cannot be had; the lock is given back though it cannot be deleted', async ({
    grants,
  }) => {
    const { store } = grants;
    const manager = grants.another({ revokes: true });
    await manager.put('id', tokens('first'));
    store.fail('delete');
    await expect(manager.discard('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(store.locks).toBe(0);
    store.fail('lock');
    await manager.discard('id');
    expect(grants.actions).toEqual(['id stored', 'id deleted']);
  });
});

async function collect<T>(iteration: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const each of iteration) all.push(each);
  return all;
}

describe('what is known', () => {
  test('of a grant: whether it has ended, and what could not be saved', async ({ expired: grants }) => {
    const { manager, store, service } = grants;
    expect(await manager.summary('unknown')).toBeUndefined();
    await manager.put('single', tokens('single', { refreshToken: undefined, lifetimeMs: 0 }));
    await manager.put('ended', tokens('ended', { lifetimeMs: 0 }));
    service.next(REFUSAL);
    await expect(manager.current('ended')).rejects.toMatchObject(NO_GRANT);
    store.fail('update');
    await manager.current('id');
    const refreshedAt = grants.clock.now();
    const expected = [
      { grantId: 'ended', ended: true },
      { grantId: 'id', ended: false, refreshedAt },
      { grantId: 'single', ended: true },
    ];
    for (const summary of expected) expect(await manager.summary(summary.grantId)).toMatchObject(summary);
    const summaries = await collect(grantList(manager));
    expect(summaries.sort((one, other) => one.grantId.localeCompare(other.grantId))).toMatchObject(expected);
    const machines = grants.another({ parametersOf });
    expect(await machines.summary('single')).toMatchObject({ ended: false });
    const reason = new Error('enough');
    await expect(collect(grantList(manager, AbortSignal.abort(reason)))).rejects.toBe(reason);
    store.recover();
  });
});

test('keepAlive refreshes the pair that could not be saved, and ends with the manager', async ({ expired: grants }) => {
  const { manager, store } = grants;
  const settings = { olderThan: 3_600, rate: 1_000, signal: undefined };
  store.fail('update');
  await manager.current('id');
  store.recover();
  store.before = (method) => {
    if (method === 'update') throw new Error('still');
  };
  expect(await keepAlive(manager, settings)).toEqual({ seen: 1, refreshed: 0, ended: 0, failed: 0 });
  store.recover();
  const reason = new Error('enough');
  await expect(keepAlive(manager, { ...settings, signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await manager.close();
  await expect(keepAlive(manager, settings)).rejects.toMatchObject({ name: 'ServiceUnavailableError' });
});

test('close() waits for the refreshes that run, the writes and the revocations, and each call joins the first', async ({
  expired: grants,
}) => {
  const { service, store } = grants;
  const manager = grants.another({ revokes: true });
  await manager.put('other', tokens('other'));
  const [answer, save] = [gate(), gate()];
  service.next(async (socket, request) => {
    await answer.opened;
    pair('new')(socket, request);
  });
  const used = grants.use(manager);
  await service.received(1);
  let isClosed = false;
  const closing = manager.close();
  expect(manager.close()).toBe(closing);
  void closing.then(() => {
    isClosed = true;
  });
  store.before = (method) => (method === 'set' ? save.opened : undefined);
  const saved = manager.put('late', tokens('late'));
  answer.open();
  expect(await used).toBe('access-new');
  await turn();
  expect(isClosed).toBe(false);
  service.next(json({}, 500));
  await manager.remove('other');
  save.open();
  await saved;
  await closing;
  expect(grants.actions).toEqual(['id stored', 'other stored', 'other deleted', 'late stored', 'other revoked']);
});

test('an application is warned once of a store without a lock, in which two processes have refreshed', async ({
  grants,
}) => {
  const store = withoutLock(grants.store);
  const [manager, other] = [grants.another({ store, cache: { max: 10, ttlMs: 1 } }), grants.another({ store })];
  await manager.put('id', tokens('first'));
  for (const refused of ['access-first', 'access-1', 'access-2']) {
    await other.renew('id', refused);
    grants.clock.advance(1);
    await manager.current('id');
  }
  expect(grants.warnings).toEqual(['no lock']);
});
