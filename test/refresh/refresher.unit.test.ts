import { describe, expect } from 'vitest';
import { fastForward } from '../support/fast-forward.js';
import { json, reset } from '../support/faulty-server.js';
import { threats } from '../support/threats.js';
import { gate, LIFETIME_S, pair, REFUSAL, test, tokens } from './fixture.js';

describe('a refresh', () => {
  test('reads again, refreshes and saves under the lock', async ({ expired: grants }) => {
    // The first read is the one of the caller.
    expect(await grants.use()).toBe('access-1');
    expect(grants.store.calls).toEqual(['get', 'lock', 'get', 'update']);
    expect(await grants.use(grants.another())).toBe('access-1');
    expect(grants.events).toMatchObject([{ outcome: 'refreshed' }]);
  });

  test('adopts the pair of another process if that is usable', async ({ expired: grants }) => {
    const other = grants.another();
    grants.store.before = async (method) => {
      if (method !== 'lock') return;
      grants.store.recover();
      await other.current('id');
    };
    expect(await grants.use()).toBe('access-1');
    expect(grants.sent()).toEqual(['refresh-old']);
    expect(grants.events.map(({ outcome }) => outcome)).toEqual(['refreshed', 'adopted']);
  });

  test('fails as a failure of the store if the lock throws instead of rejecting', async ({ expired: grants }) => {
    grants.store.lock = () => {
      throw new Error('with a secret of the store');
    };
    await expect(grants.manager.current('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(grants.sent()).toEqual([]);
  });

  test('that waits for its turn at the token endpoint holds no lock, sends nothing, and reads again afterwards', async ({
    grants,
  }) => {
    const { manager, service, clock, store, events } = grants;
    const ids = Array.from({ length: 17 }, (_none, index) => `${index}`);
    for (const id of ids) await manager.put(id, tokens(id));
    clock.advance(LIFETIME_S);
    const held: (() => void)[] = [];
    service.always((socket, request) => {
      held.push(() => pair('late')(socket, request));
    });
    const pages = Promise.allSettled(ids.map((id) => manager.current(id)));
    await service.received(16);
    expect(store.calls.filter((call) => call === 'lock')).toHaveLength(16);
    // Another process has a queue of its own.
    service.next(pair('other'));
    expect(await grants.another().current('16')).toMatchObject({ accessToken: 'access-other' });
    for (const answer of held) answer();
    expect((await pages).at(-1)).toMatchObject({ value: { accessToken: 'access-other' } });
    expect(grants.sent().filter((token) => token === 'refresh-16')).toHaveLength(1);
    expect(events.map(({ outcome }) => outcome)).toContain('adopted');
  });

  test('that waits for its turn fails at once when the endpoint turns out to be down', async ({ grants }) => {
    const { manager, service, clock, store } = grants;
    const ids = Array.from({ length: 60 }, (_none, index) => `${index}`);
    for (const id of ids) await manager.put(id, tokens(id));
    clock.advance(LIFETIME_S);
    const held: (() => void)[] = [];
    service.always((socket) => {
      held.push(() => socket.destroy());
    });
    const pages = ids.map((id) => manager.current(id));
    const settled = Promise.allSettled(pages);
    await service.received(16);
    for (const fail of held.splice(0)) fail();
    const last = await Promise.allSettled(pages.slice(-5));
    for (const page of last)
      expect(page).toMatchObject({
        reason: { name: 'ServiceUnavailableError', message: expect.stringContaining('has just failed') },
      });
    service.always((socket) => socket.destroy());
    for (const fail of held.splice(0)) fail();
    await settled;
    // A refresh whose turn comes takes a lock and reads: no refresh does that only to find the backoff.
    expect(store.calls.filter((call) => call === 'lock').length).toBeLessThan(40);
  });

  test('that has found no grant says nothing to whoever came after a login of another process', async ({ grants }) => {
    const { manager, store } = grants;
    const other = grants.another();
    await manager.put('id', tokens('old'));
    await other.remove('id');
    const [hasRead, answer] = [gate(), gate()];
    const { get } = store;
    store.get = async (id) => {
      store.get = get;
      const record = await store.get(id);
      hasRead.open();
      await answer.opened;
      return record;
    };
    const early = manager.renew('id', 'access-old');
    await hasRead.opened;
    await other.put('id', tokens('new'));
    const late = manager.renew('id', 'access-old');
    answer.open();
    await expect(early).rejects.toMatchObject({ name: 'NotAuthorizedError' });
    expect(await late).toMatchObject({ accessToken: 'access-new' });
    expect(grants.sent()).toEqual([]);
  });

  test('ends a grant without a refresh token, and sends nothing', async ({ grants }) => {
    await grants.manager.put('id', tokens('single', { refreshToken: undefined }));
    grants.clock.advance(LIFETIME_S);
    expect(await grants.use()).toBe(401);
    expect(grants.sent()).toEqual([]);
    expect(grants.lost).toEqual(['expired']);
    expect(await grants.use(grants.another())).toBe(401);
  });
});

describe('a refused refresh token', threats(40), () => {
  test('leads to the refresh token of a faster process, if its access token has expired as well', async ({
    expired: grants,
  }) => {
    const rival = grants.another();
    grants.service.next((socket, request) => {
      grants.service.next(pair('theirs'));
      void Promise.resolve(rival.renew('id', 'access-old')).then(() => {
        grants.clock.advance(LIFETIME_S);
        REFUSAL(socket, request);
      });
    });
    // No lock: both refresh at once.
    grants.store.lock = (_id, work) => work();
    expect(await grants.use()).toBe('access-1');
    expect(grants.sent()).toEqual(['refresh-old', 'refresh-old', 'refresh-theirs']);
  });

  test('does not end a grant that is replaced between the read and the removal', async ({ expired: grants }) => {
    grants.service.next(REFUSAL);
    grants.store.before = async (method) => {
      if (method !== 'update') return;
      grants.store.recover();
      await grants.another().put('id', tokens('of-a-new-login'));
    };
    expect(await fastForward(() => grants.use())).toBe('access-of-a-new-login');
    expect(grants.lost).toEqual([]);
  });
});

describe('a login during a refresh', () => {
  test('has its own refresh: callers with the new grant do not join the former one', async ({ expired: grants }) => {
    grants.service.next(async (socket, request) => {
      await grants.manager.put('id', tokens('login', { lifetimeMs: 1_000 }));
      grants.clock.advance(1);
      pair('late')(socket, request);
    });
    const late = grants.use();
    await grants.service.received(1);
    grants.service.next(pair('new'));
    const used = [await late, await grants.use()];
    expect(used.at(-1)).toBe('access-new');
    expect(grants.sent()).toEqual(['refresh-old', 'refresh-login']);
  });

  test('discards the pair of the former grant, also if it cannot be saved', async ({ expired: grants }) => {
    grants.service.next(async (socket, request) => {
      await grants.manager.put('id', tokens('login'));
      grants.store.fail('update');
      pair('late')(socket, request);
    });
    expect(await grants.use()).toBe('access-login');
    expect(grants.events).toMatchObject([{ outcome: 'discarded' }]);
  });
});

describe('a token endpoint that fails', () => {
  test('is in backoff for all callers, with one event', async ({ expired: grants }) => {
    grants.service.next(reset());
    for (let index = 0; index < 2; index++)
      await expect(grants.manager.current('id')).rejects.toMatchObject({ status: 503, retryAfter: 1 });
    expect(grants.events).toMatchObject([{ outcome: 'failed', reason: 'ERR_SERVICE_UNAVAILABLE' }]);
    expect(grants.sent()).toHaveLength(1);
    grants.clock.advance(1);
    expect(await grants.use()).toBe('access-1');
  });

  test('is in backoff for one grant until five have failed without an answer in between', async ({ grants }) => {
    const ids = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const id of ids) await grants.manager.put(id, tokens(id));
    grants.clock.advance(LIFETIME_S);
    grants.service.next(json({}, 500), 5);
    for (const id of ids) await expect(grants.manager.current(id)).rejects.toMatchObject({ status: 503 });
    expect(grants.sent()).toHaveLength(5);
    grants.clock.advance(2);
    for (const id of ids) await grants.manager.current(id);
  });

  test('leaves no backoff of a grant that was removed meanwhile', async ({ expired: grants }) => {
    grants.service.next(async (socket, request) => {
      await grants.manager.remove('id');
      reset()(socket, request);
    });
    expect(await grants.use()).toBe(503);
    await grants.another().put('id', tokens('login', { lifetimeMs: 0 }));
    expect(await grants.use()).toBe('access-1');
  });
});
