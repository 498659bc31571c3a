import { describe, expect, vi } from 'vitest';
import { GrantCredentials } from '../../src/refresh/grant-credentials.js';
import { json } from '../support/faulty-server.js';
import { stopTime } from '../support/stop-time.js';
import { type Grants, LIFETIME_S, REFUSAL, test, tokens } from './fixture.js';

/** Credentials of the grant `id`, in a process without a cache. */
function open(grants: Grants, isRefused?: () => boolean) {
  const manager = grants.another({ cache: false });
  const source = new GrantCredentials(manager, 'id', isRefused);
  const reads = () => grants.store.calls.filter((call) => call === 'get').length;
  return { manager, source, reads };
}

const errorOf = (pending: unknown) => Promise.resolve(pending).catch((error: unknown) => error);

const FACTS = { organizationDomain: 'acme', scope: ['read'] };

describe('before and after its grant is known', () => {
  test('a client tells what it knows', async ({ grants }) => {
    const { manager, source } = open(grants);
    const told = () => [source.authorized, source.organizationDomain, source.scope];
    expect(told()).toEqual([true, undefined, undefined]);
    await manager.put('id', tokens('first', FACTS));
    expect(told()).toEqual([true, undefined, undefined]);
    await source.prepare();
    expect(told()).toEqual([true, 'acme', ['read']]);
    await manager.put('id', tokens('second'));
    await source.credential();
    expect(told()).toEqual([true, undefined, []]);
    await source.credential();
    expect(source.isAliveIn(manager)).toBe(true);
    expect(source.isAliveIn(grants.manager)).toBe(false);
    source.take(await manager.put('id', tokens('third', FACTS)));
    expect(told()).toEqual([true, 'acme', ['read']]);
    source.end();
    expect(told()).toEqual([false, undefined, undefined]);
    expect(source.isAliveIn(manager)).toBe(false);
  });

  test('a client without a grant has no authorization, until there is one', async ({ grants }) => {
    const { manager, source } = open(grants);
    await source.prepare();
    expect([source.authorized, source.scope]).toEqual([false, undefined]);
    source.take(await manager.put('id', tokens('first')));
    expect(source.authorized).toBe(true);
  });

  test('a client of a user whom the application refuses has no authorization, and gets no credential', async ({
    grants,
  }) => {
    let isRefused = false;
    const { manager, source, reads } = open(grants, () => isRefused);
    await manager.put('id', tokens('first'));
    expect([source.authorized, await source.credential()]).toMatchObject([true, { accessToken: 'access-first' }]);
    isRefused = true;
    await expect(source.credential()).rejects.toMatchObject({
      name: 'NotAuthorizedError',
      message: 'Passport has removed the user of this request: the user has to log in again.',
    });
    expect([source.authorized, reads()]).toEqual([false, 1]);
  });
});

describe('a grant that was prepared', () => {
  test.for<[how: string, prepare: (opened: ReturnType<typeof open>) => unknown, reads: number]>([
    ['by a read', ({ source }) => source.prepare(), 1],
    ['by a read that refreshes nothing', ({ source }) => source.prepare(false), 1],
    ['by a login', async ({ source, manager }) => source.take(await manager.put('id', tokens('first'))), 0],
  ])(
    '%s is that of the first call within a second, if no login or logout comes',
    async ([, prepare, count], { grants }) => {
      stopTime();
      vi.advanceTimersByTime(60_000);
      const opened = open(grants);
      const { manager, source, reads } = opened;
      await manager.put('id', tokens('first'));
      /** Reads of the store in a call. */
      const call = async (waitMs = 0) => {
        vi.advanceTimersByTime(waitMs);
        const before = reads();
        expect(await source.credential()).toMatchObject({ accessToken: 'access-first' });
        return reads() - before;
      };
      await prepare(opened);
      expect(reads()).toBe(count);
      expect([await call(999), await call()]).toEqual([0, 1]);
      await prepare(opened);
      expect(await call(1_000)).toBe(1);
      await prepare(opened);
      await manager.remove('another');
      expect(await call()).toBe(1);
    },
  );

  test('is cached: it is there at once', async ({ grants }) => {
    const { manager } = grants;
    const [source, other] = [new GrantCredentials(manager, 'id'), new GrantCredentials(manager, 'id')];
    await manager.put('id', tokens('first', FACTS));
    expect([source.prepare(), source.scope]).toEqual([undefined, ['read']]);
    expect(source.credential()).toMatchObject({ accessToken: 'access-first' });
    expect([other.prepare(false), other.scope]).toEqual([undefined, ['read']]);
  });

  test('may have expired until it is prepared in full', async ({ expired: grants }) => {
    const { source } = open(grants);
    expect(source.prepareFully()).toBeUndefined();
    await source.prepare(false);
    expect([source.authorized, grants.sent()]).toEqual([true, []]);
    grants.service.next(REFUSAL);
    await source.prepareFully();
    expect([source.authorized, grants.sent()]).toEqual([false, ['refresh-old']]);
    // Whoever has no authorization has nothing to prepare.
    await source.prepare(false);
    source.end();
    expect(source.prepareFully()).toBeUndefined();
  });

  test.for<[how: string, prepare: (source: GrantCredentials, grants: Grants) => unknown]>([
    ['with a refresh', (source) => source.prepare()],
    ['by a login', async (source, { manager }) => source.take(await manager.put('id', tokens('second')))],
  ])('%s is prepared in full', async ([, prepare], { grants }) => {
    const { manager, store } = grants;
    await manager.put('id', tokens('first'));
    const source = new GrantCredentials(manager, 'id');
    source.prepare(false);
    await prepare(source, grants);
    store.calls.length = 0;
    grants.clock.advance(LIFETIME_S);
    expect(source.prepareFully()).toBeUndefined();
    expect(grants.sent()).toEqual([]);
  });
});

describe('a grant that could not be prepared', () => {
  const DOWN = { name: 'TokenStoreError' };

  test('is an error of the calls within a second: each gets a copy, and the store is not read again', async ({
    grants,
  }) => {
    stopTime();
    const { manager, source, reads } = open(grants);
    await manager.put('id', tokens('first'));
    grants.store.fail('get');
    await source.prepare();
    expect([source.authorized, source.scope]).toEqual([true, undefined]);
    grants.store.recover();
    vi.advanceTimersByTime(999);
    const errors = await Promise.all([errorOf(source.credential()), errorOf(source.credential())]);
    expect(errors).toMatchObject([DOWN, DOWN]);
    expect(errors[0]).not.toBe(errors[1]);
    expect(reads()).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await source.credential()).toMatchObject({ accessToken: 'access-first' });
  });

  test('is none once a login has brought another, or once the user has logged out', async ({ grants }) => {
    const { manager, source } = open(grants);
    await source.prepare();
    source.take(await manager.put('id', tokens('first')));
    expect(await source.credential()).toMatchObject({ accessToken: 'access-first' });
    grants.store.fail('get');
    await source.prepare();
    grants.store.recover();
    source.end();
    expect(await source.credential()).toMatchObject({ accessToken: 'access-first' });
  });

  test('is no error of the preparation, whatever the manager does', async ({ grants }) => {
    const { manager, source } = open(grants);
    manager.current = () => {
      throw new Error('a bug');
    };
    await source.prepare();
    expect(source.authorized).toBe(true);
    expect(await errorOf(source.credential())).toMatchObject({ message: 'a bug' });
  });
});

describe('a call', () => {
  test('that finds no grant leaves the client without authorization; each gets an error of its own', async ({
    expired: grants,
  }) => {
    const [one, other] = [new GrantCredentials(grants.manager, 'id'), new GrantCredentials(grants.manager, 'id')];
    grants.service.next(REFUSAL);
    const errors = await Promise.all([errorOf(one.credential()), errorOf(other.credential())]);
    expect(errors).toMatchObject([{ name: 'NotAuthorizedError' }, { name: 'NotAuthorizedError' }]);
    expect(errors[0]).not.toBe(errors[1]);
    expect([one.authorized, other.authorized]).toEqual([false, false]);
  });

  test('that fails for now leaves the authorization', async ({ expired: grants }) => {
    const source = new GrantCredentials(grants.manager, 'id');
    grants.service.next(json({}, 500));
    expect(await errorOf(source.credential())).toMatchObject({ name: 'ServiceUnavailableError' });
    expect(source.authorized).toBe(true);
  });

  test('whose token is refused renews it; what cannot be renewed stays the same object', async ({ grants }) => {
    const { manager } = grants;
    const source = new GrantCredentials(manager, 'id');
    const first = await manager.put('id', tokens('first'));
    const renewed = await source.renew(first);
    expect(renewed).toMatchObject({ accessToken: 'access-1' });
    await expect(source.renew(first)).resolves.toBe(renewed);
    const copy = { ...renewed };
    source.reportOutcome(renewed, false);
    expect(await source.renew(copy)).toBe(copy);
    source.reportOutcome(renewed, true);
    expect(await source.renew(copy)).toMatchObject({ accessToken: 'access-2' });
    grants.service.next(REFUSAL);
    expect(await errorOf(source.renew(tokens('2')))).toMatchObject({ name: 'NotAuthorizedError' });
    expect(source.authorized).toBe(false);
  });
});
