import { beforeEach, describe, expect, test, vi } from 'vitest';
import { ServiceUnavailableError } from '../../src/errors.js';
import { type EndedGrant, endedGrant, type Grant, GrantCodec } from '../../src/grants/grant.js';
import { GrantRepository } from '../../src/grants/grant-repository.js';
import { TransportError } from '../../src/http/transport-error.js';
import { EndpointBackoff } from '../../src/refresh/backoff.js';
import { LockedRefreshes, type RefreshInFlight } from '../../src/refresh/locked-refreshes.js';
import { UnsavedGrants } from '../../src/refresh/unsaved-grants.js';
import { HeldLock } from '../../src/stores/held-lock.js';
import { stopTime } from '../support/stop-time.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';
import { gate, grantOf } from './fixture.js';
import { type Answer, DOWN, pairOf, REFUSAL, type WiredEndpoint, wiredEndpoint } from './wired-endpoint.js';

const RECORD_ID = 'oauth-app+id';
const MACHINE = { parameters: { grant_type: 'client_credentials' } };

const started = new TestClock().now();
/** A grant that has expired. */
const expired = (name: string, generation: number, changes: Partial<Grant> = {}) =>
  grantOf(name, { generation, expiresAt: started, ...changes });

const old = expired('old', 1);
const newer = expired('newer', 2);
const newest = expired('newest', 3);
const usable = grantOf('usable', { generation: 2 });
const login = grantOf('login', { lineage: 'another' });

/** An access token of this user. */
const jwt = (sub: string) => `x.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.x`;

const UNUSABLE: Answer = [200, { access_token: 'a b', token_type: 'bearer', refresh_token: 'refresh-rotated' }];

let clock: TestClock;
let store: TroubledStore;
let repository: GrantRepository;
let unsaved: UnsavedGrants;
let backoff: EndpointBackoff;
let locked: LockedRefreshes;
let answer: WiredEndpoint['answer'];
let sent: WiredEndpoint['sent'];
let lost: string[];
let discarded: Grant[];
let overtaking: AbortController;
let closing: AbortController;

beforeEach(() => {
  stopTime();
  // The process has run for a while.
  vi.advanceTimersByTime(60_000);
  [clock, store, backoff] = [new TestClock(), new TroubledStore(), new EndpointBackoff()];
  [lost, discarded] = [[], []];
  [overtaking, closing] = [new AbortController(), new AbortController()];
  repository = open();
  unsaved = new UnsavedGrants(repository, () => undefined);
  const wired = wiredEndpoint(clock);
  ({ answer, sent } = wired);
  locked = new LockedRefreshes({
    ...{ repository, endpoint: wired.endpoint, backoff, unsaved, clock: clock.now, signal: closing.signal },
    isUsable: ({ expiresAt }) => expiresAt > clock.now(),
    onLost: (id, reason) => void lost.push(`${id} ${reason}`),
    onDiscarded: (_id, grant) => void discarded.push(grant),
  });
});

function open(): GrantRepository {
  return new GrantRepository({
    ...{ strategyName: 'oauth-app', store, codec: new GrantCodec([]), cache: undefined, clock: clock.now },
    ...{ onUnreadable: () => undefined, onRecovery: () => undefined, onUnlockedRefresh: () => undefined },
  });
}

/** What another process puts into the store. */
async function put(grant: Grant | EndedGrant | undefined): Promise<void> {
  if (grant) await store.inner.set(RECORD_ID, await new GrantCodec([]).encode(RECORD_ID, grant));
  else await store.inner.delete(RECORD_ID);
}

const stored = () => open().peek('id');

const lockOf = (isHeld: () => Promise<boolean> = async () => true, leaseMs = 30_000) =>
  new HeldLock({ leaseMs, ageMs: 0, isHeld }, clock.now, async () => {}).limitTo(10_000);

/** Keeps a pair that the store could not save. */
function keep(grant: Grant): void {
  unsaved.keep('id', grant, old.version, 'expired', lockOf());
}

async function refresh(changes: Partial<RefreshInFlight> = {}, lock = lockOf(), kept?: Grant) {
  const run = { id: 'id', seen: old, trigger: 'expired', overtaken: overtaking.signal, ...changes } as const;
  const result = locked.refresh(run, lock, kept);
  await vi.advanceTimersByTimeAsync(20_000);
  return await result;
}

/** Lets another process do something before the n-th read from now on. */
function beforeRead(count: number, act: () => unknown): void {
  let reads = 0;
  store.before = async (method) => {
    if (method !== 'get') return;
    reads += 1;
    if (reads === count) await act();
  };
}

const NO_GRANT = { outcome: 'failed', error: { name: 'NotAuthorizedError' }, reused: false };
const failedWith = (name: string) => ({ outcome: 'failed', error: { name }, reused: false });

describe('what the store has under the lock', () => {
  test.for<
    [
      what: string,
      found: Grant | EndedGrant | undefined,
      changes: Partial<RefreshInFlight>,
      tokens: (string | undefined)[],
    ]
  >([
    ['is the grant of the caller', old, {}, ['refresh-old']],
    ['is a newer grant that has expired too', newer, {}, ['refresh-newer']],
    ['is the grant whose access token the API has refused', usable, { seen: usable }, ['refresh-usable']],
    ['is nothing, for a grant of the application', undefined, MACHINE, [undefined]],
    ['is the end of a grant, for one of the application', endedGrant(old), MACHINE, [undefined]],
    ['is an old grant of the application', { ...old, refreshToken: undefined }, MACHINE, [undefined]],
    ['was not to be refreshed until now', { ...old, retryAt: started }, {}, ['refresh-old']],
  ])('%s: it is refreshed and saved', async ([, found, changes, tokens]) => {
    await put(found);
    const result = await refresh(changes);
    expect(result).toMatchObject({ outcome: 'refreshed', grant: { accessToken: 'access-1' }, reused: false });
    const isFirst = !found || 'ended' in found;
    expect(await stored()).toMatchObject({
      accessToken: 'access-1',
      refreshToken: changes === MACHINE ? undefined : 'refresh-1',
      generation: isFirst ? 0 : found.generation + 1,
      refreshedAt: isFirst ? undefined : clock.now(),
    });
    expect([sent, lost, discarded]).toEqual([tokens, [], []]);
  });

  test.for<[what: string, found: Grant | EndedGrant | undefined, expected: object]>([
    [
      'is usable: it is adopted',
      usable,
      { outcome: 'adopted', grant: { accessToken: 'access-usable' }, reused: false },
    ],
    ['is nothing: the grant is gone', undefined, NO_GRANT],
    ['is the end of the grant: it is gone', endedGrant(newer), NO_GRANT],
    ['is not to be refreshed yet', { ...old, retryAt: started + 1 }, failedWith('ServiceUnavailableError')],
  ])('%s', async ([, found, expected]) => {
    await put(found);
    expect(await refresh()).toMatchObject(expected);
    expect([sent, lost]).toEqual([[], []]);
  });

  test('is left alone while the endpoint is in backoff, and once the strategy is closed, unless it is usable', async () => {
    await put(old);
    backoff.fail('id', new ServiceUnavailableError('down'), clock.now());
    expect(await refresh()).toMatchObject(failedWith('ServiceUnavailableError'));
    backoff.forget('id');
    closing.abort(new Error('closed'));
    expect(await refresh()).toMatchObject(failedWith('Error'));
    await put(usable);
    expect(await refresh()).toMatchObject({ outcome: 'adopted' });
    expect(sent).toEqual([]);
  });

  test('ends with its refresh token, though the endpoint is in backoff: the service is not asked', async () => {
    await put({ ...old, refreshTokenExpiresAt: started });
    backoff.fail('id', new ServiceUnavailableError('down'), clock.now());
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect([sent, lost, await stored()]).toMatchObject([[], ['id expired'], { ended: true }]);
    expect(backoff.remainingMs('id', clock.now())).toBe(0);
  });

  test('cannot be told: the refresh fails', async () => {
    store.fail('get');
    expect(await refresh()).toMatchObject(failedWith('TokenStoreError'));
  });
});

describe('a pair that is not saved yet', () => {
  test.for<[what: string, found: Grant | undefined, token: string]>([
    ['an older one', old, 'refresh-newer'],
    ['none', undefined, 'refresh-newer'],
    ['the same one', { ...newer, retryAt: started + 9_000 }, 'refresh-newer'],
    ['its successor', newest, 'refresh-newest'],
    ['that of another login', { ...login, expiresAt: started }, 'refresh-login'],
  ])('is refreshed in place of the stored one, if the store has %s', async ([, found, token]) => {
    await put(found);
    keep(newer);
    await refresh();
    expect(sent).toEqual([token]);
  });

  test('is refreshed under the lock that is held for it, with no read before', async () => {
    await put(old);
    keep(newer);
    store.calls.length = 0;
    const asked = vi.fn(async () => false);
    expect(await refresh({}, lockOf(asked), newer)).toMatchObject({ outcome: 'refreshed' });
    expect([store.calls, sent, asked.mock.calls]).toEqual([['update'], ['refresh-newer'], []]);
    expect(unsaved.byId.size).toBe(0);
  });

  test('gives way to another login, once its refresh token has expired', async () => {
    await put(login);
    const kept = { ...newer, refreshTokenExpiresAt: started };
    keep(kept);
    expect(await refresh({}, lockOf(), kept)).toMatchObject({
      outcome: 'adopted',
      grant: { accessToken: 'access-login' },
    });
    expect([unsaved.byId.size, lost, sent]).toEqual([0, [], []]);
  });
});

describe('a lock', () => {
  const lostLock = { outcome: 'lock-lost', reused: false };
  const none = () => new HeldLock('none', clock.now, async () => {}).limitTo(10_000);
  const aged = () => {
    const lock = lockOf();
    vi.advanceTimersByTime(17_001);
    return lock;
  };

  test.for<[what: string, lock: () => HeldLock, expected: object, tokens: string[]]>([
    ['that is held', lockOf, { outcome: 'refreshed' }, ['refresh-old']],
    ['of a store without locks', none, { outcome: 'refreshed' }, ['refresh-old']],
    ['that the store has lost', () => lockOf(async () => false), lostLock, []],
    ['that is too old', aged, lostLock, []],
    [
      'of which the store does not tell whether it is held',
      () => lockOf(() => new Promise(() => {})),
      failedWith('TokenStoreError'),
      [],
    ],
  ])('%s', async ([, lock, expected, tokens]) => {
    await put(old);
    const result = await refresh({}, lock());
    expect(result).toMatchObject(expected);
    expect(sent).toEqual(tokens);
    if (result.outcome === 'failed') expect(String(result.error)).toContain('(lock)');
  });

  test('that is lost does no harm where another process has refreshed the grant', async () => {
    await put(usable);
    expect(
      await refresh(
        {},
        lockOf(async () => false),
      ),
    ).toMatchObject({ outcome: 'adopted' });
  });

  test.for<[what: string, changes: Partial<RefreshInFlight>, ms: number, requests: number]>([
    ['it is young', {}, 0, 2],
    ['it has not grown too old', {}, 17_001, 1],
    ['it is young, for a grant of the application', MACHINE, 0, 2],
    ['it has not grown too old, for a grant of the application', MACHINE, 17_001, 1],
  ])('lets a request that could not be sent be made again while %s', async ([, changes, ms, requests]) => {
    await put(old);
    answer(() => {
      vi.advanceTimersByTime(ms);
      return new TransportError('connect', false);
    });
    await refresh(changes);
    expect(sent).toHaveLength(requests);
  });
});

describe('a refused refresh token', () => {
  /** When the store is read, in milliseconds. */
  function reads(): number[] {
    const [from, times] = [performance.now(), [] as number[]];
    store.before = (method) => void (method === 'get' && times.push(performance.now() - from));
    return times;
  }

  test('ends the grant, after a while in which another process may save its successor', async () => {
    await put(old);
    const times = reads();
    answer(REFUSAL);
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect(times).toEqual([0, 0, 50, 200, 500, 500]);
    expect([sent, lost, await stored()]).toMatchObject([['refresh-old'], ['id refused'], { ended: true }]);
  });

  test('is waited for longer where the store has failed within a minute', async () => {
    await put(old);
    store.fail('get');
    await open()
      .isGone('id')
      .catch(() => undefined);
    await repository.isGone('id').catch(() => undefined);
    const times = reads();
    answer(REFUSAL);
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect(times).toEqual([0, 0, 50, 200, 500, 1_000, 2_000, 2_000]);
  });

  test('ends the wait with the strategy', async () => {
    await put(old);
    answer(REFUSAL);
    setTimeout(() => closing.abort(new Error('closed')), 60);
    expect(await refresh()).toMatchObject(failedWith('Error'));
    expect(lost).toEqual([]);
  });

  const adopted = (name: string, reused: boolean) => ({
    outcome: 'adopted',
    grant: { accessToken: `access-${name}` },
    reused,
  });
  test.for<[what: string, found: Grant, read: number, expected: object, tokens: string[]]>([
    ['whose successor another process has saved', usable, 2, adopted('usable', true), ['refresh-old']],
    ['whose successor another process saves late', usable, 5, adopted('usable', true), ['refresh-old']],
    [
      'whose successor has expired as well',
      newer,
      3,
      { outcome: 'refreshed', reused: true },
      ['refresh-old', 'refresh-newer'],
    ],
    ['that a login has replaced', login, 2, adopted('login', false), ['refresh-old']],
  ])('%s ends nothing', async ([, found, read, expected, tokens]) => {
    await put(old);
    beforeRead(read, () => put(found));
    answer(REFUSAL);
    expect(await refresh()).toMatchObject(expected);
    expect([sent, lost]).toEqual([tokens, []]);
  });

  test('of the third pair is the last: a further one is adopted', async () => {
    const pairs = [2, 3, 4].map((generation) => expired(`${generation}`, generation));
    await put(old);
    answer(
      ...pairs.map((pair) => async () => {
        await put(pair);
        return REFUSAL;
      }),
    );
    expect(await refresh()).toMatchObject(adopted('4', true));
    expect(sent).toEqual(['refresh-old', 'refresh-2', 'refresh-3']);
  });

  test.for<[what: string, act: () => unknown]>([
    ['that was deleted meanwhile', () => put(undefined)],
    ['that a logout or a login has overtaken', () => overtaking.abort()],
  ])('of a grant %s is not waited for, and is no loss', async ([, act]) => {
    await put(old);
    answer(async () => {
      await act();
      return REFUSAL;
    });
    const times = reads();
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect([times.length, times.at(-1), lost]).toEqual([3, 0, []]);
  });

  test.for<[what: string, seen: Grant, tokens: string[]]>([
    ['the caller’s is newer: the store has lost a write', newer, ['refresh-old', 'refresh-newer']],
    ['the caller’s is as new', expired('sibling', 1), ['refresh-old', 'refresh-sibling']],
    ['the caller’s is older', expired('first', 0), ['refresh-old']],
    ['the caller’s is of another login', { ...login, generation: 2, expiresAt: started }, ['refresh-old']],
    ['the caller’s is the same', { ...newer, refreshToken: 'refresh-old' }, ['refresh-old']],
  ])('leads to that of the caller, if %s', async ([, seen, tokens]) => {
    await put(old);
    answer(REFUSAL);
    const isTried = tokens.length > 1;
    expect(await refresh({ seen })).toMatchObject(isTried ? { outcome: 'refreshed', reused: false } : NO_GRANT);
    expect([sent, lost]).toEqual([tokens, isTried ? [] : ['id refused']]);
  });

  test('that is none ends the grant at once', async () => {
    const seen = { ...old, refreshToken: undefined };
    await put(seen);
    const times = reads();
    expect(await refresh({ seen })).toMatchObject(NO_GRANT);
    expect([times, sent, lost]).toEqual([[0, 0], [], ['id refused']]);
  });

  test('ends no grant of a login that has come since, nor one that is gone by then', async () => {
    await put(old);
    answer(REFUSAL, REFUSAL);
    beforeRead(6, () => put(login));
    expect(await refresh()).toMatchObject(adopted('login', false));
    await put(old);
    let reads = 0;
    store.before = async (method) => {
      if (method !== 'get') return;
      reads += 1;
      if (reads === 6) await put(login);
      if (reads === 7) await put(undefined);
    };
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect([reads, lost]).toEqual([7, []]);
  });

  describe('that came with an unusable token response', () => {
    const rotated = { ...newer, refreshToken: 'refresh-rotated', previousRefreshToken: 'refresh-old' };

    test('leads to the one before it', async () => {
      await put(rotated);
      answer(REFUSAL);
      expect(await refresh()).toMatchObject({ outcome: 'refreshed', reused: false });
      expect(sent).toEqual(['refresh-rotated', 'refresh-old']);
    });

    test('leads to another lock, if this one has grown too old', async () => {
      await put(rotated);
      answer(() => {
        vi.advanceTimersByTime(17_001);
        return REFUSAL;
      });
      expect(await refresh()).toEqual({ outcome: 'lock-lost', reused: false });
      expect(sent).toEqual(['refresh-rotated']);
    });
  });
});

describe('an answer', () => {
  test('with the tokens of another user ends the grant', async () => {
    await put({ ...old, subject: 'user' });
    answer(pairOf('other', { access_token: jwt('other') }), pairOf('same', { access_token: jwt('user') }));
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect([lost, await stored()]).toMatchObject([['id other-subject'], { ended: true }]);
    await put({ ...old, subject: 'user' });
    expect(await refresh()).toMatchObject({ outcome: 'refreshed' });
  });

  test('with the tokens of another user is reported, whether or not the store still has the grant', async () => {
    await put({ ...old, subject: 'user' });
    answer(pairOf('other', { access_token: jwt('other') }));
    beforeRead(2, () => put(undefined));
    expect(await refresh()).toMatchObject(NO_GRANT);
    expect(lost).toEqual(['id other-subject']);
  });

  test('with the tokens of another user leaves the login that has come since', async () => {
    await put({ ...old, subject: 'user' });
    answer(pairOf('other', { access_token: jwt('other') }));
    beforeRead(2, () => put(login));
    expect(await refresh()).toEqual({
      outcome: 'adopted',
      grant: expect.objectContaining({ accessToken: 'access-login' }),
      reused: false,
    });
    expect([lost, discarded]).toEqual([[], []]);
  });

  test('that is unusable but for its refresh token leaves that for the next time', async () => {
    await put(old);
    answer(UNUSABLE);
    expect(await refresh()).toMatchObject(failedWith('TokenResponseError'));
    const kept = { refreshToken: 'refresh-rotated', previousRefreshToken: 'refresh-old', generation: 2 };
    expect(await stored()).toMatchObject({ accessToken: 'access-old', ...kept });
  });

  test('that is unusable, and has no new refresh token, changes nothing', async () => {
    for (const refresh_token of ['refresh-old', undefined]) {
      await put(old);
      store.calls.length = 0;
      answer([200, { access_token: 'a b', token_type: 'bearer', refresh_token }]);
      expect(await refresh()).toMatchObject(failedWith('TokenResponseError'));
      expect(store.calls).toEqual(['get']);
    }
  });

  test('that is unusable is the error, though the store fails too', async () => {
    await put(old);
    answer(() => {
      overtaking.abort();
      store.fail();
      return UNUSABLE;
    });
    expect(await refresh()).toMatchObject(failedWith('TokenResponseError'));
  });

  test('ends what was learned of failures before it, be it a refusal', async () => {
    const failure = new ServiceUnavailableError('down');
    for (const given of [pairOf('new'), REFUSAL, [400, { error: 'invalid_request' }] as const]) {
      backoff.fail('id', failure, clock.now());
      clock.advance(2);
      await put({ ...old, expiresAt: clock.now() });
      answer(given);
      await refresh();
      expect(backoff.fail('id', failure, clock.now()).retryAfter).toBe(1);
      backoff.forget('id');
    }
  });
});

describe('a token endpoint that is down', () => {
  const answeredAfter = (ms: number, act = () => undefined as unknown): (() => Answer)[] => [
    () => {
      vi.advanceTimersByTime(ms);
      act();
      return DOWN;
    },
  ];

  test.for<[what: string, ms: number, act: () => unknown, retryAt: number | undefined]>([
    ['is left alone by other processes too if it was slow', 1_000, () => undefined, started + 1_000],
    ['is no matter of other processes if it was quick', 999, () => undefined, undefined],
    ['is no matter of a login that has come since', 1_000, () => overtaking.abort(), undefined],
    ['is no matter of a pair that is not saved', 1_000, () => keep(newer), undefined],
  ])('%s', async ([, ms, act, retryAt]) => {
    await put(old);
    answer(...answeredAfter(ms, act));
    expect(await refresh()).toMatchObject(failedWith('ServiceUnavailableError'));
    expect(await stored()).toMatchObject(retryAt === undefined ? { retryAt } : { ...old, retryAt });
    expect(backoff.remainingMs('id', clock.now())).toBe(overtaking.signal.aborted ? 0 : 1_000);
    unsaved.drop('id');
  });

  test('keeps the lock until other processes can know', async () => {
    await put(old);
    answer(...answeredAfter(1_000));
    const released = vi.fn(async () => {});
    const lock = new HeldLock({ leaseMs: 30_000, ageMs: 0, isHeld: async () => true }, clock.now, released);
    const save = gate();
    store.before = (method) => (method === 'update' ? save.opened : undefined);
    const result = locked.refresh(
      { id: 'id', seen: old, trigger: 'expired', overtaken: overtaking.signal },
      lock.limitTo(10_000),
    );
    await vi.advanceTimersByTimeAsync(100);
    expect(await result).toMatchObject(failedWith('ServiceUnavailableError'));
    await lock.release();
    expect(released).not.toHaveBeenCalled();
    save.open();
    await vi.advanceTimersByTimeAsync(0);
    expect(released).toHaveBeenCalledTimes(1);
  });

  test('is told by its own words to whom a login has overtaken', async () => {
    await put(old);
    answer(...answeredAfter(0, () => overtaking.abort()));
    expect(await refresh()).toMatchObject({
      error: { message: expect.stringContaining('status 503'), retryAfter: undefined },
    });
  });

  test('that refuses slowly is not down', async () => {
    await put(old);
    answer(() => {
      vi.advanceTimersByTime(1_000);
      return [400, { error: 'invalid_request' }];
    });
    expect(await refresh()).toMatchObject(failedWith('TokenError'));
    expect(await stored()).toEqual(old);
  });
});

describe('a request for a grant of the application', () => {
  test.for<[what: string, answer: Answer, name: string, backoff: string | undefined]>([
    ['that is refused', [400, { error: 'invalid_scope' }], 'TokenError', 'TokenError'],
    ['with an unusable answer', [200, {}], 'TokenResponseError', 'TokenResponseError'],
    ['without an answer', DOWN, 'ServiceUnavailableError', 'ServiceUnavailableError'],
    ['of a client that is refused', [401, { error: 'invalid_client' }], 'TokenError', undefined],
  ])('%s is not repeated at once, unless a login has overtaken it', async ([, given, name, expected]) => {
    answer(given);
    expect(await refresh(MACHINE)).toMatchObject(failedWith(name));
    expect(backoff.error('id', clock.now())?.name).toBe(expected);
    expect(await stored()).toBeUndefined();
    backoff.forget('id');
    clock.advance(60);
    answer(() => {
      overtaking.abort();
      return given;
    });
    expect(await refresh(MACHINE)).toMatchObject(failedWith(name));
    expect(backoff.error('id', clock.now())).toBeUndefined();
  });

  test('that meets a bug says that the endpoint works', async () => {
    backoff.fail('id', new ServiceUnavailableError('down'), clock.now());
    clock.advance(2);
    answer(() => {
      throw new Error('a bug');
    });
    expect(await refresh(MACHINE)).toMatchObject(failedWith('Error'));
    expect(backoff.error('id', clock.now())).toBeUndefined();
    expect(backoff.fail('id', new ServiceUnavailableError('down'), clock.now()).retryAfter).toBe(1);
  });

  test('that a deletion has overtaken saves nothing', async () => {
    answer(() => {
      overtaking.abort();
      return pairOf('late');
    });
    expect(await refresh(MACHINE)).toEqual({ outcome: 'discarded', grant: undefined, reused: false });
    expect([await stored(), discarded]).toMatchObject([undefined, [{ accessToken: 'access-late' }]]);
  });
});

describe('a new pair', () => {
  const meanwhile = (act: () => unknown): (() => Promise<Answer>)[] => [
    async () => {
      await act();
      return pairOf('new');
    },
  ];

  test('is kept in memory if the store fails', async () => {
    await put(old);
    answer(...meanwhile(() => store.fail('update')));
    expect(await refresh()).toMatchObject({ outcome: 'unsaved', grant: { accessToken: 'access-new' }, reused: false });
    expect(unsaved.byId.get('id')).toMatchObject({
      grant: { accessToken: 'access-new' },
      ...{ storedVersion: old.version, trigger: 'expired' },
    });
    unsaved.drop('id');
  });

  test.for<[what: string, act: () => unknown, grant: Grant | undefined]>([
    ['a login of another process', () => put(login), login],
    ['a logout of another process', () => put(undefined), undefined],
    [
      'a login, and a store that fails to save it',
      async () => {
        await put(login);
        overtaking.abort();
        store.fail('update');
      },
      login,
    ],
  ])('is discarded after %s', async ([, act, grant]) => {
    await put(old);
    keep(old);
    answer(...meanwhile(act));
    expect(await refresh()).toEqual({ outcome: 'discarded', grant, reused: false });
    expect(discarded).toMatchObject([{ accessToken: 'access-new' }]);
    expect(unsaved.byId.size).toBe(0);
  });
});

test('the pair whose refresh token is sent is noted', async () => {
  await put(newer);
  const run: RefreshInFlight = { id: 'id', seen: old, trigger: 'expired', overtaken: overtaking.signal };
  await locked.refresh(run, lockOf());
  expect(run.current).toEqual(newer);
});
