import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ConfigurationError, ServiceUnavailableError } from '../../src/errors.js';
import type { RefreshEvent } from '../../src/events.js';
import { emptyGrant, type Grant, GrantCodec } from '../../src/grants/grant.js';
import { GrantRepository } from '../../src/grants/grant-repository.js';
import type { TokenParameters } from '../../src/oauth/token-endpoint.js';
import { Refresher } from '../../src/refresh/refresher.js';
import { UnsavedGrants } from '../../src/refresh/unsaved-grants.js';
import { HeldLock } from '../../src/stores/held-lock.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { gate, grantOf } from './fixture.js';
import { type Answer, DOWN, pairOf, REFUSAL, type WiredEndpoint, wiredEndpoint } from './wired-endpoint.js';

const started = new TestClock().now();
/** A grant that has expired. */
const expired = (name: string, generation: number, changes: Partial<Grant> = {}) =>
  grantOf(name, { generation, expiresAt: started, ...changes });

const old = expired('old', 1);
const usable = grantOf('usable', { generation: 2 });
const login = grantOf('login', { lineage: 'another' });

let clock: TestClock;
let store: TroubledStore;
let repository: GrantRepository;
let unsaved: UnsavedGrants;
let answer: WiredEndpoint['answer'];
let sent: WiredEndpoint['sent'];
let events: Omit<RefreshEvent, 'strategy' | 'grantId'>[];
let lost: string[];
let parametersOf: (id: string) => Promise<TokenParameters | undefined>;
let refresher: Refresher;

beforeEach(async () => {
  stopTime();
  // The process has run for a while.
  vi.advanceTimersByTime(60_000);
  [clock, store] = [new TestClock(), new TroubledStore()];
  [events, lost] = [[], []];
  parametersOf = async () => undefined;
  repository = new GrantRepository({
    ...{ strategyName: 'oauth-app', store, codec: new GrantCodec([]), cache: undefined, clock: clock.now },
    ...{ onUnreadable: () => undefined, onRecovery: () => undefined, onUnlockedRefresh: () => undefined },
  });
  unsaved = new UnsavedGrants(repository, () => undefined);
  const wired = wiredEndpoint(clock);
  ({ answer, sent } = wired);
  refresher = new Refresher({
    ...{ repository, unsaved, endpoint: wired.endpoint, clock: clock.now },
    isUsable: ({ expiresAt }) => expiresAt > clock.now(),
    onDiscarded: () => undefined,
    onRefresh: (_id, event) => void events.push(event),
    onLost: (id, reason) => void lost.push(`${id} ${reason}`),
    parametersOf: (id) => parametersOf(id),
  });
  await put(old);
});

/** What another process puts into the store. */
async function put(grant: Grant | undefined, id = 'id'): Promise<void> {
  const recordId = repository.storeId(id);
  if (grant) await store.inner.set(recordId, await new GrantCodec([]).encode(recordId, grant));
  else await store.inner.delete(recordId);
}

const passing = async (ms = 10_000) => void (await vi.advanceTimersByTimeAsync(ms));

/** Settles as the promise does, which may take some time. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  await passing();
  return await promise;
}

const refresh = (trigger: RefreshEvent['trigger'] = 'expired', seen = old, id = 'id') =>
  refresher.refresh(id, seen, trigger);

/** Plans an answer that comes when the test wants. */
function held(given: Answer) {
  const { opened, open } = gate();
  answer(async () => {
    await opened;
    return given;
  });
  return open;
}

const accessToken = (name: string) => ({ accessToken: `access-${name}` });
const NO_GRANT = { name: 'NotAuthorizedError', message: 'There is no grant (any more): the user has to log in again.' };

describe('callers at once', () => {
  test('get the same grant, from one refresh', async () => {
    const [one, other] = [refresh(), refresh('refused')];
    expect(await settled(one)).toBe(await other);
    expect([sent, events.length]).toEqual([['refresh-old'], 1]);
    await put({ ...old, accessToken: 'access-again' });
    await settled(refresh());
    expect(sent).toHaveLength(2);
  });

  test('get the same error', async () => {
    answer(DOWN);
    const [one, other] = [refresh(), refresh()].map((each) => each.catch((error: unknown) => error));
    expect(await settled(one as Promise<unknown>)).toBe(await other);
    expect(sent).toHaveLength(1);
  });

  test.for<[what: string, found: Grant | undefined, expected: object | string, sent: string[]]>([
    ['nothing', undefined, 'NotAuthorizedError', []],
    ['a usable grant', login, accessToken('login'), []],
    ['another grant that has expired', { ...login, expiresAt: started }, accessToken('1'), ['refresh-login']],
    ['the same grant', old, accessToken('1'), ['refresh-old']],
    ['the same grant, usable', { ...old, expiresAt: started + 1 }, accessToken('1'), ['refresh-old']],
  ])(
    'of a grant that is gone: the later one gets what the store has by then: %s',
    async ([, found, expected, tokens]) => {
      await put(undefined);
      const [hasRead, answered] = [gate(), gate()];
      const { get } = store;
      store.get = async (id) => {
        store.get = get;
        const record = await store.get(id);
        hasRead.open();
        await answered.opened;
        return record;
      };
      const early = refresh();
      await hasRead.opened;
      const late = refresh();
      const both = Promise.allSettled([early, late]);
      await put(found);
      answered.open();
      await settled(both);
      await expect(early).rejects.toMatchObject(NO_GRANT);
      if (typeof expected === 'string') await expect(late).rejects.toMatchObject(NO_GRANT);
      else expect(await late).toMatchObject(expected);
      expect(sent).toEqual(tokens);
    },
  );

  test.for<[what: string, late: Answer]>([
    ['brings', pairOf('late')],
    ['fails with', DOWN],
  ])('after a login have a refresh of their own, whatever the one before it %s', async ([, given]) => {
    const open = held(given);
    const before = refresh().catch(() => undefined);
    await passing(0);
    const joined = refresh().catch(() => undefined);
    const expiredLogin = { ...login, expiresAt: started };
    await put(expiredLogin);
    refresher.forget('id');
    const after = refresh('expired', expiredLogin);
    open();
    expect(await settled(after)).toMatchObject(accessToken('2'));
    await Promise.all([before, joined]);
    expect(sent).toEqual(['refresh-old', 'refresh-login']);
  });

  test('before a login get what the refresh brings that the login has overtaken', async () => {
    const open = held(pairOf('late'));
    const callers = [refresh(), refresh()];
    await passing(0);
    await put(login);
    refresher.forget('id');
    open();
    for (const caller of callers) expect(await settled(caller)).toMatchObject(accessToken('login'));
    expect(events).toMatchObject([{ outcome: 'discarded' }]);
  });
});

describe('the turns at the token endpoint', () => {
  /** Fills it: further requests wait until an answer comes. */
  async function fill(): Promise<() => void> {
    const opens: (() => void)[] = [];
    for (let index = 0; index < 16; index += 1) {
      await put(old, `${index}`);
      opens.push(held(pairOf(`${index}`)));
      void refresh('expired', old, `${index}`);
    }
    await passing(0);
    expect(sent).toHaveLength(16);
    return () => opens.shift()?.();
  }

  test.for<
    [
      what: string,
      first: RefreshEvent['trigger'],
      second: RefreshEvent['trigger'],
      joining: RefreshEvent['trigger'] | undefined,
      order: string[],
    ]
  >([
    ['a page comes before others', 'ahead', 'expired', undefined, ['b', 'a']],
    ['a refused token comes before others', 'keep-alive', 'refused', undefined, ['b', 'a']],
    ['of two that nobody waits for, the first comes first', 'keep-alive', 'ahead', undefined, ['a', 'b']],
    ['of two pages, the first comes first', 'expired', 'refused', undefined, ['a', 'b']],
    ['a page that joins lets a refresh come first', 'ahead', 'ahead', 'expired', ['b', 'a']],
    ['a refused token that joins lets a refresh come first', 'ahead', 'ahead', 'refused', ['b', 'a']],
    ['what nobody waits for lets none come first', 'ahead', 'ahead', 'ahead', ['a', 'b']],
  ])('%s', async ([, first, second, joining, order]) => {
    const next = await fill();
    for (const [id, trigger] of [
      ['a', first],
      ['b', second],
    ] as const) {
      await put(expired(id, 1), id);
      void refresh(trigger, expired(id, 1), id);
    }
    if (joining) void refresh(joining, expired('b', 1), 'b');
    await passing(0);
    for (let count = 0; count < 2; count += 1) {
      next();
      await passing(0);
    }
    expect(sent.slice(16)).toEqual(order.map((id) => `refresh-${id}`));
  });

  test('end with the strategy: what still waits sends nothing', async () => {
    const next = await fill();
    const late = refresh();
    const closing = refresher.close();
    for (let count = 0; count < 16; count += 1) next();
    await expect(settled(late)).rejects.toMatchObject({
      name: 'ServiceUnavailableError',
      message: 'The strategy is closed: it refreshes no more grants. The grant is kept.',
    });
    await closing;
    expect(sent).toHaveLength(16);
    const failure = { outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE', trigger: 'expired', durationMs: 0 };
    expect(events.filter(({ outcome }) => outcome !== 'refreshed')).toEqual([failure]);
    await expect(refresh()).rejects.toMatchObject({ name: 'ServiceUnavailableError' });
  });

  test('end when the endpoint turns out to be down, unless only one grant has failed', async () => {
    const [opens, late] = [[] as (() => void)[], vi.fn()];
    for (let index = 0; index < 16; index += 1) {
      await put(old, `${index}`);
      opens.push(held(DOWN));
      void refresh('expired', old, `${index}`).catch(() => undefined);
    }
    await passing(0);
    void refresh().catch(late);
    await passing(0);
    for (const open of opens.splice(0, 4)) open();
    await passing(0);
    expect(late).not.toHaveBeenCalled();
    opens.pop()?.();
    await passing(0);
    expect(late).toHaveBeenCalledWith(
      expect.objectContaining({ message: expect.stringContaining('has just failed; it is tried again later') }),
    );
    expect([sent.length, store.calls.filter((call) => call === 'lock').length]).toEqual([16, 16]);
  });

  test('end at once where nothing is to be sent', async () => {
    await put(usable);
    const adopted: Grant[] = [];
    for (let count = 0; count < 17; count += 1) {
      void refresh().then((grant) => adopted.push(grant));
      await passing(0);
    }
    expect(adopted).toHaveLength(17);
  });
});

describe('a refresh in the background makes sense', () => {
  test('unless one runs, the endpoint is in backoff, or the strategy is closed', async () => {
    expect(refresher.isIdle('id')).toBe(true);
    answer(DOWN);
    const running = refresh();
    expect([refresher.isIdle('id'), refresher.isIdle('other')]).toEqual([false, true]);
    await expect(settled(running)).rejects.toMatchObject({ status: 503 });
    expect([refresher.isIdle('id'), refresher.isIdle('other'), refresher.pauseMs()]).toEqual([false, true, 0]);
    refresher.forget('id');
    expect(refresher.isIdle('id')).toBe(true);
    await refresher.close();
    expect(refresher.isIdle('id')).toBe(false);
  });
});

describe('while a grant is in backoff', () => {
  beforeEach(async () => {
    answer(DOWN);
    await settled(refresh().catch(() => undefined));
    [events.length, sent.length, store.calls.length] = [0, 0, 0];
  });

  test.for<[what: string, found: Grant | undefined, expected: string]>([
    ['the new token of another process', usable, 'access-usable'],
    ['an error, if that has expired', { ...usable, expiresAt: started }, 'ServiceUnavailableError'],
    ['an error, if the token is the same', { ...usable, accessToken: 'access-old' }, 'ServiceUnavailableError'],
    ['an error, if the grant is gone', undefined, 'ServiceUnavailableError'],
  ])('a caller gets %s; nothing is locked, sent or told', async ([, found, expected]) => {
    await put(found);
    const result: unknown = await settled(refresh()).catch((error: unknown) => error);
    expect(result).toMatchObject(expected.startsWith('access') ? { accessToken: expected } : { name: expected });
    expect([sent, events, store.calls]).toEqual([[], [], ['get']]);
  });

  test('a caller gets its error though the store fails', async () => {
    store.fail();
    await expect(settled(refresh())).rejects.toMatchObject({ name: 'ServiceUnavailableError', retryAfter: 1 });
  });

  test('a caller whose read lasts until its end has the grant refreshed', async () => {
    store.before = () => {
      clock.advance(1);
      store.recover();
    };
    expect(await settled(refresh())).toMatchObject(accessToken('1'));
  });

  test('a grant whose refresh token has expired ends', async () => {
    const past = { ...old, refreshTokenExpiresAt: started };
    await put(past);
    await expect(settled(refresh('expired', past))).rejects.toMatchObject(NO_GRANT);
    expect(lost).toEqual(['id expired']);
  });

  test('another grant is refreshed', async () => {
    await put(old, 'other');
    expect(await settled(refresh('expired', old, 'other'))).toMatchObject(accessToken('1'));
  });
});

describe('a grant without a refresh token', () => {
  const single = (changes: Partial<Grant> = {}) => ({ ...old, refreshToken: undefined, ...changes });
  const forMachines = async (id: string) => ({ grant_type: 'client_credentials', id });

  test.for<[what: string, seen: Grant, expected: object]>([
    ['of a user is used as long as it is usable', single({ expiresAt: started + 1 }), accessToken('old')],
    ['of a user is none before its login', emptyGrant(), NO_GRANT],
  ])('%s', async ([, seen, expected]) => {
    const result: unknown = await settled(refresh('refused', seen)).catch((error: unknown) => error);
    expect(result).toMatchObject(expected);
    expect([sent, events, store.calls]).toEqual([[], [], []]);
  });

  test('of a user ends with its access token', async () => {
    await put(single());
    await expect(settled(refresh('expired', single()))).rejects.toMatchObject(NO_GRANT);
    expect(lost).toEqual(['id refused']);
  });

  test('of the application is asked for, whether or not it is usable', async () => {
    parametersOf = forMachines;
    for (const [index, seen] of [emptyGrant(), single(), single({ expiresAt: started + 1 })].entries()) {
      await put(index === 0 ? undefined : seen);
      expect(await settled(refresh('refused', seen))).toMatchObject(accessToken(`${index + 1}`));
    }
    expect(sent).toEqual([undefined, undefined, undefined]);
  });

  test('is asked for only if it has none', async () => {
    parametersOf = vi.fn(forMachines);
    await settled(refresh());
    expect([sent, vi.mocked(parametersOf).mock.calls]).toEqual([['refresh-old'], []]);
  });

  test.for<[error: Error, reason: string]>([
    [new ConfigurationError('bad'), 'ERR_CONFIGURATION'],
    [new Error('a bug'), 'ERR_UNKNOWN'],
  ])('fails with what the application throws: %s', async ([error, reason]) => {
    parametersOf = async () => {
      throw error;
    };
    await expect(settled(refresh('expired', single()))).rejects.toBe(error);
    expect(events).toEqual([{ outcome: 'failed', reason, trigger: 'expired', durationMs: 0 }]);
    expect(store.calls).toEqual([]);
  });
});

describe('an event', () => {
  const told = { trigger: 'expired', durationMs: 0 };

  test.for<[what: string, given: Answer | undefined, event: object]>([
    ['a refresh', undefined, { outcome: 'refreshed' }],
    [
      'the scopes, if they are others',
      pairOf('new', { scope: 'read write' }),
      { outcome: 'refreshed', scope: ['read', 'write'] },
    ],
    ['no scopes that are the same', pairOf('new', { scope: 'read' }), { outcome: 'refreshed' }],
    ['why it has failed', DOWN, { outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' }],
    ['that the grant was lost', REFUSAL, { outcome: 'failed', reason: 'ERR_NOT_AUTHORIZED', durationMs: 500 }],
  ])('tells %s', async ([, given, event]) => {
    const seen = { ...old, scope: ['read'] };
    await put(seen);
    if (given) answer(given);
    await settled(refresh('expired', seen).catch(() => undefined));
    expect(events).toEqual([{ ...told, ...event }]);
  });

  test('tells the scopes, if none were known', async () => {
    answer(pairOf('new', { scope: 'read' }));
    await settled(refresh());
    expect(events).toEqual([{ ...told, outcome: 'refreshed', scope: ['read'] }]);
  });

  test('tells that another process has used the refresh token, and by whom it was asked', async () => {
    answer(async () => {
      await put(usable);
      return REFUSAL;
    });
    expect(await settled(refresh('keep-alive'))).toMatchObject(accessToken('usable'));
    expect(events).toEqual([{ outcome: 'adopted', trigger: 'keep-alive', durationMs: 0, reused: true }]);
  });

  test.for<[waitsMs: number[], lockWaitMs: object]>([
    [[100], { lockWaitMs: 100 }],
    [[99], {}],
    [[60, 60], { lockWaitMs: 120, lostLease: true }],
  ])('tells that the lock was waited for: %j ms', async ([waitsMs, expected]) => {
    const durationMs = waitsMs.reduce((sum, ms) => sum + ms, 0);
    store.lock = async (_id, work) => {
      await new Promise((resolve) => setTimeout(resolve, waitsMs.shift()));
      return await work({ leaseMs: 30_000, ageMs: 0, isHeld: async () => waitsMs.length === 0 });
    };
    await settled(refresh());
    expect(events).toEqual([{ outcome: 'refreshed', trigger: 'expired', durationMs, ...expected }]);
  });

  test('tells none of a grant that a logout of another process has deleted, whose pair is discarded', async () => {
    answer(async () => {
      await put(undefined);
      return pairOf('late', { scope: 'read' });
    });
    await expect(settled(refresh())).rejects.toMatchObject(NO_GRANT);
    expect(events).toEqual([{ ...told, outcome: 'discarded' }]);
  });
});

describe('the lock of a refresh', () => {
  test.for<[what: string, agesMs: number[], locks: number, outcome: string]>([
    ['may be a second old', [1_000], 1, 'refreshed'],
    ['is taken again if it is older', [1_001], 2, 'refreshed'],
    ['may be five seconds old when it is taken again', [1_001, 5_000], 2, 'refreshed'],
    ['is taken twice again', [1_001, 5_001, 5_000], 3, 'refreshed'],
    ['is given up if it is too old each time', [1_001, 5_001, 5_001], 3, 'failed'],
  ])('%s', async ([, agesMs, locks, outcome]) => {
    let [taken, released] = [0, 0];
    store.lock = async (_id, work) => {
      taken += 1;
      const result = await work({ leaseMs: 30_000, ageMs: agesMs.shift() ?? 0, isHeld: async () => true });
      released += 1;
      return result;
    };
    const result: unknown = await settled(refresh()).catch((error: unknown) => error);
    await passing();
    expect([taken, released]).toEqual([locks, locks]);
    const failure = { outcome, reason: 'ERR_TOKEN_STORE_LOCKED' };
    const event = { trigger: 'expired', durationMs: 0, ...(locks > 1 ? { lostLease: true } : {}) };
    expect(events).toEqual([{ ...(outcome === 'failed' ? failure : { outcome }), ...event }]);
    if (outcome !== 'failed') return;
    const message = 'The lock of the grant was too old each time before its refresh. The grant is kept.';
    expect(result).toMatchObject({ name: 'TokenStoreError', code: 'ERR_TOKEN_STORE_LOCKED', message });
  });

  test.for([
    [[1], 1],
    [[1.001], 2],
    [[1.001, 5], 2],
    [[2, 6, 100], 3],
  ])('may be as old by the wall clock, until that has jumped twice: %j s', async ([jumpsS, locks]) => {
    store.before = (method) => {
      if (method === 'get') clock.advance((jumpsS as number[]).shift() ?? 0);
    };
    await settled(refresh());
    expect(store.calls.filter((call) => call === 'lock')).toHaveLength(locks as number);
    expect(events).toMatchObject([{ outcome: 'refreshed' }]);
  });

  test('that cannot be had is a failure', async () => {
    store.fail('lock');
    await expect(settled(refresh())).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(events).toEqual([{ outcome: 'failed', reason: 'ERR_TOKEN_STORE', trigger: 'expired', durationMs: 0 }]);
  });
});

describe('a lock that is held for a pair that is not saved', () => {
  const kept = expired('kept', 2);
  const keep = (changes: Partial<Grant> = {}) => {
    const release = vi.fn(async () => {});
    const lease = { leaseMs: 30_000, ageMs: 0, isHeld: async () => true };
    const lock = new HeldLock(lease, clock.now, release);
    unsaved.keep('id', { ...kept, ...changes }, old.version, 'expired', lock);
    void lock.release();
    return release;
  };

  test('serves the next refresh, until that has ended', async () => {
    const released = keep();
    const open = held(pairOf('new'));
    const refreshing = refresh();
    await passing(0);
    unsaved.drop('id');
    await passing(0);
    expect([sent, released.mock.calls]).toEqual([['refresh-kept'], []]);
    open();
    expect(await settled(refreshing)).toMatchObject(accessToken('new'));
    expect([released.mock.calls.length, store.calls.filter((call) => call === 'lock')]).toEqual([1, []]);
    expect(events).toEqual([{ outcome: 'refreshed', trigger: 'expired', durationMs: 0 }]);
  });

  test('is followed by another, if it has grown too old', async () => {
    keep({ previousRefreshToken: 'refresh-old' });
    store.fail('update');
    answer(async () => {
      vi.advanceTimersByTime(14_000);
      clock.advance(14);
      store.recover();
      vi.advanceTimersByTime(3_001);
      return REFUSAL;
    }, pairOf('new'));
    expect(await settled(refresh())).toMatchObject(accessToken('new'));
    expect(store.calls).toContain('lock');
  });
});

describe('a refresh that nobody waits for', () => {
  test.for<[what: string, act: (() => unknown) | undefined, given: Answer | undefined, expected: string | undefined]>([
    ['refreshed', undefined, undefined, 'refreshed'],
    ['refreshed, though the pair is not saved', () => store.fail('update'), undefined, 'refreshed'],
    ['nothing, if another process was faster', () => put(usable), undefined, undefined],
    ['nothing, if the grant is gone', () => put(undefined), undefined, undefined],
    ['that it has failed', undefined, DOWN, 'failed'],
    ['that the grant has ended', undefined, REFUSAL, 'ended'],
  ])('tells %s', async ([, act, given, expected]) => {
    await act?.();
    if (given) answer(given);
    expect(await settled(refresher.keepAlive('id', old))).toBe(expected);
    expect(events).toMatchObject([{ trigger: 'keep-alive' }]);
    unsaved.drop('id');
  });

  test('tells nothing, if a login or a logout has overtaken it', async () => {
    answer(async () => {
      refresher.forget('id');
      return REFUSAL;
    });
    expect(await settled(refresher.keepAlive('id', old))).toBeUndefined();
  });
});

test('a grant that this process has refreshed is told from others', async () => {
  const refreshed = await settled(refresh());
  expect([refreshed, { ...refreshed }, old].map((each) => refresher.hasRefreshed(each))).toEqual([true, false, false]);
  await put(usable);
  expect(refresher.hasRefreshed(await settled(refresh()))).toBe(false);
  await put(old);
  store.fail('update');
  expect(refresher.hasRefreshed(await settled(refresh()))).toBe(true);
  unsaved.drop('id');
});

describe('a login or a logout', () => {
  test('forgets the pair that is not saved, and the backoff', async () => {
    store.fail('update');
    await settled(refresh());
    answer(DOWN);
    await settled(refresh('expired', expired('1', 2)).catch(() => undefined));
    expect(unsaved.byId.size).toBe(1);
    refresher.forget('id');
    expect([unsaved.byId.size, refresher.isIdle('id')]).toEqual([0, true]);
    refresher.forget('unknown', login);
  });

  test.for<[what: string, successor: () => Grant | undefined, outcome: string]>([
    ['of the grant that it refreshes', () => ({ ...login, version: old.version }), 'unsaved'],
    ['of another grant', () => login, 'discarded'],
    ['that deletes it', () => undefined, 'discarded'],
  ])('%s ends a refresh whose pair cannot be saved, or not', async ([, successor, outcome]) => {
    answer(() => {
      refresher.forget('id', successor());
      store.fail('update');
      return pairOf('new');
    });
    await settled(refresh().catch(() => undefined));
    expect(events).toMatchObject([{ outcome }]);
    unsaved.drop('id');
  });

  test('before the refresh has read the grant overtakes it, too', async () => {
    const joined = refresh();
    refresher.forget('id', { ...login });
    const own = refresh('expired', old);
    await settled(Promise.all([joined, own]));
    expect(sent).toHaveLength(1);
  });
});

test('what is to end with the refreshes ends with them, and by its own signal', async () => {
  const [reason, aborter] = [new Error('enough'), new AbortController()];
  const [signal, other] = [refresher.untilClosed(aborter.signal), refresher.untilClosed(undefined)];
  aborter.abort(reason);
  expect([signal.reason, other.aborted]).toEqual([reason, false]);
  await refresher.close();
  expect(other.reason).toBeInstanceOf(ServiceUnavailableError);
});

test('close() waits for what runs, and saves what is not saved', async () => {
  store.fail('update');
  const open = held(pairOf('new'));
  const running = refresh();
  await passing(0);
  const closed = vi.fn();
  void refresher.close().then(closed);
  await passing(0);
  expect(closed).not.toHaveBeenCalled();
  open();
  await passing(0);
  expect(await running).toMatchObject(accessToken('new'));
  store.recover();
  await passing(1_000);
  expect([closed.mock.calls.length, unsaved.byId.size]).toEqual([1, 0]);
  expect(await repository.peek('id')).toMatchObject(accessToken('new'));
});
