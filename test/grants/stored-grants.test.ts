import { beforeEach, describe, expect, test, vi } from 'vitest';
import { type EndedGrant, endedGrant, type Grant, GrantCodec } from '../../src/grants/grant.js';
import { GrantRepository, type GrantRepositoryOptions } from '../../src/grants/grant-repository.js';
import { grantOf, withoutLock } from '../refresh/fixture.js';
import { TestClock } from '../support/test-clock.js';
import { TroubledStore } from '../support/troubled-store.js';

const RECORD_ID = 'oauth-app+id';
const UNREADABLE = { version: 1, expiresAt: 1, sealed: 'nonsense' };

let store: TroubledStore;
const onUnreadable = vi.fn();
beforeEach(() => {
  store = new TroubledStore();
  onUnreadable.mockClear();
});

const open = (changes: Partial<GrantRepositoryOptions> = {}) =>
  new GrantRepository({
    strategyName: 'oauth-app',
    store,
    codec: new GrantCodec([]),
    cache: { max: 1_000, ttlMs: 30_000 },
    clock: new TestClock().now,
    onUnreadable,
    onRecovery: () => undefined,
    onUnlockedRefresh: () => undefined,
    ...changes,
  });

/** What the store has before a call. */
async function put(grant: Grant | EndedGrant | undefined): Promise<void> {
  if (grant) await store.inner.set(RECORD_ID, await new GrantCodec([]).encode(RECORD_ID, grant));
}

/** What the store has. */
const stored = () => open().peek('id');

const login = grantOf('login', { generation: 1 });
const refreshed = grantOf('refreshed', { generation: 2 });
const newer = grantOf('newer', { generation: 3 });
const ofAnotherLogin = grantOf('another', { lineage: 'another' });
const later = { ...refreshed, ...grantOf('later', { generation: 2 }), expiresAt: refreshed.expiresAt + 1 };

describe('replace', () => {
  test.for<[what: string, found: Grant | EndedGrant | undefined, saved: Grant, isSaved: boolean, calls: string[]]>([
    ['the grant that was read', login, refreshed, true, ['update']],
    ['an older grant', { ...login, version: 7 }, refreshed, true, ['update', 'get', 'update']],
    ['the end of an older grant', endedGrant({ ...login, version: 7 }), refreshed, true, ['update', 'get', 'update']],
    ['nothing', undefined, refreshed, false, ['update', 'get']],
    ['a newer grant', newer, refreshed, false, ['update', 'get']],
    ['the end of a newer grant', endedGrant(newer), refreshed, false, ['update', 'get']],
    ['the end of this grant', endedGrant({ ...refreshed, version: 7 }), refreshed, false, ['update', 'get']],
    ['a grant of another login', ofAnotherLogin, refreshed, false, ['update', 'get']],
    ['one that was issued earlier: there is a lock', refreshed, later, false, ['update', 'get']],
    ['its own record, which arrived late', refreshed, refreshed, true, ['update', 'get']],
    ['its own end', endedGrant(refreshed), refreshed, true, ['update', 'get']],
    ['its record with another pause', refreshed, { ...refreshed, retryAt: 5 }, true, ['update', 'get', 'update']],
  ])('over %s', async ([, found, saved, isSaved, calls]) => {
    await put(found);
    const grants = open();
    const before = await stored();
    store.calls.length = 0;
    expect(await grants.replace('id', saved, login.version)).toBe(isSaved);
    expect(store.calls).toEqual(calls);
    const isWritten = isSaved && calls.at(-1) === 'update';
    expect(await stored()).toEqual(isWritten ? saved : before);
    expect(grants.cached('id')).toEqual(isSaved ? saved : undefined);
  });

  test.for<[what: string, found: Grant | EndedGrant | undefined, isSaved: boolean]>([
    ['nothing', undefined, true],
    ['the end of another login', endedGrant(ofAnotherLogin), true],
    ['an older grant', login, true],
    ['another login', ofAnotherLogin, false],
  ])('of what was never stored, over %s', async ([, found, isSaved]) => {
    await put(found);
    expect(await open().replace('id', refreshed, undefined)).toBe(isSaved);
    expect(await stored()).toEqual(isSaved ? refreshed : found);
  });

  test.for<[what: string, found: Grant | undefined, saved: Grant, isSaved: boolean]>([
    ['the grant that was read', login, refreshed, true],
    ['nothing', undefined, refreshed, false],
    ['another login', ofAnotherLogin, refreshed, false],
    ['one that was issued earlier', refreshed, later, true],
    ['one that was issued later', later, refreshed, false],
  ])('in a store without a lock, over %s', async ([, found, saved, isSaved]) => {
    await put(found);
    expect(await open({ store: withoutLock(store) }).replace('id', saved, login.version)).toBe(isSaved);
    expect(await stored()).toEqual(isSaved ? saved : found);
  });

  test('in a store without a lock and without add, of what was never stored', async () => {
    const grants = open({ store: withoutLock(store) });
    expect(await grants.replace('id', login, undefined)).toBe(true);
    expect(await stored()).toEqual(login);
  });

  test('is tried four times against other processes', async () => {
    await put(login);
    store.update = async () => {
      store.calls.push('update');
      return false;
    };
    const grants = open();
    await grants.create('id', grantOf('cached'), undefined);
    await put(login);
    store.calls.length = 0;
    expect(await grants.replace('id', refreshed, login.version)).toBe(false);
    expect(store.calls).toEqual(['update', 'get', 'update', 'get', 'update', 'get', 'update']);
    expect(grants.cached('id')).toBeUndefined();
  });
});

describe('remove', () => {
  const remove = async (grants: GrantRepository) => {
    const found: unknown[] = [];
    const removed = vi.fn();
    await grants.remove('id', removed, (grant, deletion) => void found.push([grant, deletion instanceof Promise]));
    expect(removed).toHaveBeenCalledTimes(1);
    expect(await store.inner.get(RECORD_ID)).toBeUndefined();
    expect(grants.cached('id')).toBeUndefined();
    return { found, removed: removed.mock.calls[0]?.[0] };
  };

  test('of a grant that was seen deletes it at once, and looks whether it is gone', async () => {
    const grants = open();
    await grants.create('id', login, undefined);
    store.calls.length = 0;
    expect(await remove(grants)).toEqual({ found: [[login, true]], removed: login });
    expect(store.calls).toEqual(['delete', 'get']);
  });

  test('of a grant that has been replaced since deletes that too, and tells both', async () => {
    const grants = open();
    await grants.create('id', login, undefined);
    await put(refreshed);
    const both = [
      [login, true],
      [refreshed, true],
    ];
    expect(await remove(grants)).toEqual({ found: both, removed: refreshed });
  });

  test.for<[what: string, record: Grant | EndedGrant | undefined, told: Grant | undefined]>([
    ['a grant that was not seen', login, login],
    ['nothing', undefined, undefined],
    ['the end of a grant', endedGrant(login), undefined],
  ])('of %s', async ([, record, told]) => {
    await put(record);
    expect(await remove(open())).toEqual({ found: told ? [[told, true]] : [], removed: told });
    expect(store.calls).toEqual(record ? ['get', 'delete', 'get'] : ['get']);
  });

  test('of a record that cannot be read', async () => {
    await store.inner.set(RECORD_ID, UNREADABLE);
    expect(await remove(open())).toEqual({ found: [], removed: undefined });
  });

  test('of what a store has that does not compare versions: it is read first', async () => {
    const grants = open({ store: withoutLock(store) });
    await grants.create('id', login, undefined);
    await put(refreshed);
    expect(await remove(grants)).toEqual({ found: [[refreshed, true]], removed: refreshed });
  });

  test('leaves a login that comes meanwhile', async () => {
    await put(login);
    const removed = vi.fn();
    store.before = async (method) => {
      if (store.calls.filter((call) => call === 'get').length === 2 && method === 'get') await put(ofAnotherLogin);
    };
    await open().remove('id', removed);
    expect(removed.mock.calls).toEqual([[login]]);
    expect(await stored()).toEqual(ofAnotherLogin);
  });

  test('fails if the grant is there after four deletions', async () => {
    await put(login);
    store.delete = async () => void store.calls.push('delete');
    const removed = vi.fn();
    await expect(open().remove('id', removed)).rejects.toMatchObject({
      name: 'TokenStoreError',
      cause: { message: 'The grant is still there after it was deleted' },
    });
    expect(store.calls.filter((call) => call === 'delete')).toHaveLength(4);
    expect(removed).not.toHaveBeenCalled();
  });
});

describe('end', () => {
  test.for<
    [
      what: string,
      found: Grant | EndedGrant | undefined,
      end: 'ended' | 'gone' | 'kept',
      left: Grant | EndedGrant | undefined,
    ]
  >([
    ['that grant', refreshed, 'ended', endedGrant(refreshed)],
    [
      'that grant with another version',
      { ...refreshed, version: 7 },
      'ended',
      endedGrant({ ...refreshed, version: 7 }),
    ],
    ['an older grant', login, 'ended', endedGrant(login)],
    ['nothing', undefined, 'gone', undefined],
    ['its end', endedGrant(newer), 'ended', endedGrant(newer)],
    ['a newer grant', newer, 'kept', newer],
    ['another login', ofAnotherLogin, 'kept', ofAnotherLogin],
    ['the same access token with another refresh token', { ...refreshed, refreshToken: 'x' }, 'kept', undefined],
    ['the same refresh token with another access token', { ...refreshed, accessToken: 'x' }, 'kept', undefined],
  ])('where the store has %s', async ([, found, end, left]) => {
    await put(found);
    const grants = open();
    await grants.read('id');
    expect(await grants.end('id', refreshed)).toBe(end);
    expect(await stored()).toEqual(left ?? found);
    expect(grants.cached('id')).toBeUndefined();
  });

  test('deletes the grant in a store that compares no versions', async () => {
    await put(refreshed);
    expect(await open({ store: withoutLock(store) }).end('id', refreshed)).toBe('ended');
    expect(await store.inner.get(RECORD_ID)).toBeUndefined();
  });

  test('is tried four times', async () => {
    await put(refreshed);
    const update = vi.fn(async () => false);
    store.update = update;
    expect(await open().end('id', refreshed)).toBe('kept');
    expect(update).toHaveBeenCalledTimes(4);
  });
});

test('a grant is gone where the store has none, or its end', async () => {
  const grants = open();
  expect(await grants.isGone('id')).toBe(true);
  await put(login);
  expect(await grants.isGone('id')).toBe(false);
  await put(endedGrant(login));
  expect(await grants.isGone('id')).toBe(true);
  await store.inner.set(RECORD_ID, UNREADABLE);
  expect(await grants.isGone('id')).toBe(false);
  store.fail('get');
  await expect(grants.isGone('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
});

test('peek tells what the store has, and caches nothing', async () => {
  const grants = open();
  for (const found of [undefined, login, endedGrant(login)]) {
    await put(found);
    expect(await grants.peek('id')).toEqual(found);
    expect(grants.cached('id')).toBeUndefined();
  }
  expect(onUnreadable).not.toHaveBeenCalled();
  await store.inner.set(RECORD_ID, UNREADABLE);
  expect(await grants.peek('id')).toBeUndefined();
  expect(onUnreadable.mock.calls).toEqual([['id']]);
});

test.for(['with add', 'without add'])('add replaces no grant, in a store %s', async (how) => {
  const grants = open({ store: how === 'with add' ? store : withoutLock(store) });
  const whenSaved = vi.fn(() => expect(grants.cached('id')).toBeUndefined());
  expect(await grants.add('id', login, whenSaved)).toBe(true);
  expect(whenSaved).toHaveBeenCalledTimes(1);
  expect(grants.cached('id')).toBe(login);
  expect(await grants.add('id', newer, whenSaved)).toBe(false);
  expect(whenSaved).toHaveBeenCalledTimes(1);
  expect(await stored()).toEqual(login);
  await put(endedGrant(login));
  expect(await grants.add('id', newer, whenSaved)).toBe(false);
});

describe('all', () => {
  const collect = async (grants: GrantRepository, signal?: AbortSignal) => {
    const all: (readonly [string, Grant | EndedGrant])[] = [];
    for await (const each of grants.all(signal)) all.push(each);
    return all;
  };

  test('yields grants and ends of this strategy, by their ids', async () => {
    const ids = Array.from({ length: 201 }, (_none, index) => `user ${index}`);
    const grants = open();
    for (const id of ids) await grants.create(id, login, undefined);
    await put(endedGrant(login));
    const codec = new GrantCodec([]);
    // No id of this strategy, or none that it has escaped.
    for (const id of ['other+id', 'oauth-app+%', 'oauth-app']) await store.inner.set(id, await codec.encode(id, login));
    const all = new Map(await collect(open()));
    expect([...all.keys()].sort()).toEqual([...ids, 'id'].sort());
    expect(all.get('user 7')).toEqual(login);
    expect(all.get('id')).toEqual(endedGrant(login));
  });

  test('leaves out a grant that is deleted meanwhile', async () => {
    await put(login);
    store.before = async (method) => {
      if (method === 'get') await store.inner.delete(RECORD_ID);
    };
    expect(await collect(open())).toEqual([]);
  });

  test('reads a page of 100 at once, and the next one when that is used', async () => {
    const grants = open();
    for (let index = 0; index < 101; index += 1) await grants.create(`${index}`, login, undefined);
    store.calls.length = 0;
    for await (const _each of open().all()) break;
    expect(store.calls.filter((call) => call === 'get')).toHaveLength(100);
  });

  test('ends with the reason of its signal', async () => {
    await put(login);
    const reason = new Error('enough');
    await expect(collect(open(), AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(store.calls).toEqual([]);
    expect(await collect(open(), new AbortController().signal)).toHaveLength(1);
  });

  test('needs a store that lists', async () => {
    await expect(collect(open({ store: withoutLock(store) }))).rejects.toMatchObject({
      name: 'ConfigurationError',
      option: 'tokenStore',
      code: 'ERR_NO_LIST',
      message: expect.stringMatching(/^tokenStore: expected a store with the method list, such as redisTokenStore/),
    });
  });

  test('fails as the store does, and lets go of its list', async () => {
    store.fail('list');
    await expect(collect(open())).rejects.toMatchObject({ name: 'TokenStoreError' });
    const returned = vi.fn(async () => ({ done: true as const, value: undefined }));
    const ids = { next: async () => ({ done: false, value: RECORD_ID }), return: returned };
    store.recover();
    store.list = () => ({ [Symbol.asyncIterator]: () => ids }) as unknown as ReturnType<TroubledStore['list']>;
    await put(login);
    for await (const _each of open().all()) break;
    expect(returned).toHaveBeenCalledTimes(1);
  });
});
