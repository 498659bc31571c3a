import { describe, expect, vi } from 'vitest';
import { GrantCredentials } from '../../src/refresh/grant-credentials.js';
import { fastForward } from '../support/fast-forward.js';
import { json } from '../support/faulty-server.js';
import { stopTime } from '../support/stop-time.js';
import { threats } from '../support/threats.js';
import { until } from '../support/until.js';
import { type Grants, gate, LIFETIME_S, type ManagerOptions, pair, REFUSAL, test, tokens } from './fixture.js';

const FOREVER = { max: 1_000, ttlMs: Number.POSITIVE_INFINITY };

describe('a grant', () => {
  test('is returned at once while it is cached: no promise, no read of the store', async ({ grants }) => {
    const { manager, store } = grants;
    await manager.put('id', tokens('first'));
    store.calls.length = 0;
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
    expect(store.calls).toEqual([]);
  });

  test('does not exist after a login that could not be saved', async ({ grants }) => {
    grants.store.fail('set');
    await expect(grants.manager.put('id', tokens('first'))).rejects.toMatchObject({ name: 'TokenStoreError' });
    grants.store.recover();
    expect(await grants.use()).toBe(401);
  });

  test('is separate for each strategy, with any characters in names and ids', async ({ grants }) => {
    const pairs = ['a', 'a+b', 'b', 'a%2Bb', '\u00e9'].flatMap((name) => ['b+c', 'c', 'B+c'].map((id) => [name, id]));
    for (const [index, [strategyName = '', id = '']] of pairs.entries())
      await grants.another({ strategyName }).put(id, tokens(`${index}`));
    for (const [index, [strategyName = '', id = '']] of pairs.entries())
      expect(await grants.another({ strategyName }).current(id)).toMatchObject({ accessToken: `access-${index}` });
  });
});

describe('the time of a refresh', () => {
  /** Asks for a grant so many milliseconds before it expires: whether the caller waits, and whether a refresh starts. */
  async function ask(grants: Grants, lifetimeMs: number, leftMs: number, options: ManagerOptions = {}) {
    const manager = grants.another({ cache: FOREVER, ...options });
    await manager.put('id', tokens('first', { lifetimeMs }));
    const before = grants.sent().length;
    grants.clock.advance((lifetimeMs - leftMs) / 1000);
    const grant = manager.current('id');
    const isWaiting = grant instanceof Promise;
    await grant;
    await grants.idle();
    await manager.close();
    return `${isWaiting ? 'waits' : 'goes on'}, ${grants.sent().length - before} refreshes`;
  }

  test.for([
    [7_200_000, 1],
    [600_000, 0.5],
    [60_000, 0.05],
  ] as const)('is in proportion to a lifetime below 20 minutes (%i ms)', async ([lifetimeMs, share], { grants }) => {
    expect(await ask(grants, lifetimeMs, -1)).toBe('waits, 1 refreshes');
    expect(await ask(grants, lifetimeMs, 30_000 * share)).toBe('waits, 1 refreshes');
    expect(await ask(grants, lifetimeMs, 30_000 * share + 1)).toBe('goes on, 1 refreshes');
    expect(await ask(grants, lifetimeMs, 300_000 * share)).toBe('goes on, 1 refreshes');
    expect(await ask(grants, lifetimeMs, 300_000 * share + 1)).toBe('goes on, 0 refreshes');
  });

  test('leaves half of the lifetime to requests, even with a long leeway', async ({ grants }) => {
    const window = { leewayMs: 86_400_000, aheadMs: 0 };
    expect(await ask(grants, 7_200_000, 3_600_001, { window })).toBe('goes on, 0 refreshes');
    expect(await ask(grants, 7_200_000, 3_600_000, { window })).toBe('waits, 1 refreshes');
  });

  test('does not refresh a token that a refresh has just returned, even with a long ahead', async ({ grants }) => {
    const manager = grants.another({ cache: FOREVER, window: { leewayMs: 0, aheadMs: 86_400_000 } });
    await manager.put('id', tokens('first'));
    grants.clock.advance(LIFETIME_S);
    await manager.current('id');
    await manager.current('id');
    await grants.idle();
    expect(grants.sent()).toHaveLength(1);
    grants.clock.advance(0.11 * LIFETIME_S);
    await manager.current('id');
    await grants.idle();
    expect(grants.sent()).toHaveLength(2);
  });

  test('has not come for a token that lasts longer than its lifetime: the clock was set back', async ({ grants }) => {
    expect(await ask(grants, 7_200_000, 3 * 7_200_000)).toMatch('0 refreshes');
  });
});

describe('a refresh in the background', () => {
  test('starts at once, and the caller gets the valid token meanwhile', async ({ grants }) => {
    const { manager, service } = grants;
    await manager.put('id', tokens('first'));
    grants.clock.advance(LIFETIME_S - 60);
    await manager.current('id');
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
    await until(() => expect(manager.current('id')).toMatchObject({ accessToken: 'access-1' }));
    expect(service.requests).toHaveLength(1);
  });

  test('begins only as fast as the endpoint answers; the others wait, and close() drops them', async ({ grants }) => {
    const { manager, service } = grants;
    const ids = Array.from({ length: 50 }, (_none, index) => `${index}`);
    for (const id of ids) await manager.put(id, tokens(id));
    const held: (() => void)[] = [];
    service.always((socket) => void held.push(() => socket.destroy()));
    grants.clock.advance(LIFETIME_S - 60);
    await Promise.all(ids.map((id) => manager.current(id)));
    await service.received(16);
    const closing = manager.close();
    for (const end of held) end();
    await closing;
    expect(service.requests).toHaveLength(16);
  });

  test('backs off after a failure, by grant, for a time that doubles', async ({ grants }) => {
    const { manager, service, clock } = grants;
    const lasting = grants.another({ cache: FOREVER });
    await lasting.put('id', tokens('first'));
    service.always(json({ error: 'invalid_client' }, 401));
    clock.advance(LIFETIME_S - 250);
    for (const [seconds, count] of [
      [0, 1],
      [0.9, 1],
      [0.2, 2],
      [1.8, 2],
      [0.3, 3],
    ] as const) {
      clock.advance(seconds);
      expect(await lasting.current('id')).toMatchObject({ accessToken: 'access-first' });
      await grants.idle();
      expect(service.requests).toHaveLength(count);
    }
    await manager.close();
  });

  test('follows in the order in which the grants became due, 32 in a tenth of a second', async ({ grants }) => {
    stopTime();
    const { manager, service } = grants;
    const ids = Array.from({ length: 200 }, (_none, index) => `${index}`);
    for (const id of ids) await manager.put(id, tokens(id));
    grants.clock.advance(LIFETIME_S - 60);
    for (const id of ids) await manager.current(id);
    for (let started = 32; started < 232; started += 32) {
      await service.received(Math.min(started, 200));
      await grants.idle();
      const batch = ids.slice(started - 32, started).map((id) => `refresh-${id}`);
      expect(new Set(grants.sent().slice(started - 32))).toEqual(new Set(batch));
      vi.advanceTimersByTime(100);
    }
  });

  test('does not start any more when the turn comes, if a request has refreshed the grant meanwhile', async ({
    grants,
  }) => {
    stopTime();
    const { manager, service, clock } = grants;
    const ids = Array.from({ length: 33 }, (_none, index) => `${index}`);
    for (const id of ids) await manager.put(id, tokens(id));
    const refusal = json({ error: 'invalid_request' }, 400);
    const held: (() => void)[] = [];
    service.always((socket, request) => {
      held.push(() => refusal(socket, request));
    });
    clock.advance(LIFETIME_S - 60);
    for (const id of ids) await manager.current(id);
    await service.received(16);
    const renewed = manager.renew('32', 'access-32');
    service.next(json({ access_token: 'asked-for', token_type: 'bearer', expires_in: LIFETIME_S }));
    held.shift()?.();
    expect(await renewed).toMatchObject({ accessToken: 'asked-for' });
    service.always(refusal);
    for (const answer of held) answer();
    await grants.idle();
    vi.advanceTimersByTime(100);
    await grants.idle();
    expect(service.requests).toHaveLength(33);
  });
});

describe('a token that the API has refused', () => {
  test('is renewed once; others take the new one; while new ones are refused, none is requested', async ({
    grants,
  }) => {
    const { manager, service, clock } = grants;
    await manager.put('id', tokens('first'));
    const renewed = await manager.renew('id', 'access-first');
    expect(await manager.renew('id', 'access-first')).toBe(renewed);
    manager.reportOutcome('id', renewed, false);
    expect((await manager.renew('id', renewed.accessToken)).accessToken).toBe(renewed.accessToken);
    expect(service.requests).toHaveLength(1);
    clock.advance(1);
    expect((await manager.renew('id', renewed.accessToken)).accessToken).not.toBe(renewed.accessToken);
  });

  test('is kept while it is valid and there is no refresh token', async ({ grants }) => {
    const { manager, clock } = grants;
    await manager.put('id', tokens('only', { refreshToken: undefined }));
    expect(await manager.renew('id', 'access-only')).toMatchObject({ accessToken: 'access-only' });
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-only' });
    clock.advance(LIFETIME_S);
    await expect(manager.renew('id', 'access-only')).rejects.toMatchObject({ status: 401 });
  });
});

describe('a logout or login during a refresh', threats(49), () => {
  test.for([false, true])(
    'leaves nothing of the grant that was removed (the save fails: %s)',
    async (fails, { expired: grants }) => {
      const { manager, store } = grants;
      store.before = async (method) => {
        if (method !== 'update') return;
        void manager.remove('id').catch(() => {});
        if (fails) throw new Error('The store fails');
      };
      await grants.use();
      store.recover();
      await until(async () => expect(await store.inner.get('oauth-app+id')).toBeUndefined());
      expect(await grants.use()).toBe(401);
    },
  );

  test('leaves nothing of a refresh that began while the grant was being removed, if its save fails', async ({
    expired: grants,
  }) => {
    const { manager, store, service } = grants;
    const { opened, open } = gate();
    store.before = (method) => {
      if (method === 'update') throw new Error('The store fails');
      return method === 'delete' ? opened : undefined;
    };
    const removing = manager.remove('id');
    const late = grants.use();
    await service.received(1);
    open();
    await removing;
    expect(await late).toBe(401);
    expect(await grants.use()).toBe(401);
  });

  test('keeps what the refresh brings if the login cannot be saved', async ({ expired: grants }) => {
    const { manager, store, service } = grants;
    let answer = () => {};
    service.next((socket, request) => {
      answer = () => pair('next')(socket, request);
    });
    const refreshed = manager.current('id');
    await service.received(1);
    store.fail('set', 'update');
    await expect(manager.put('id', tokens('second'))).rejects.toThrow('The token store failed');
    answer();
    expect(await refreshed).toMatchObject({ accessToken: 'access-next' });
    expect(manager.current('id')).toMatchObject({ accessToken: 'access-next', refreshToken: 'refresh-next' });
    await manager.remove('id').catch(() => {});
  });

  test('is over for a refused token that a logout has deleted meanwhile: no grant counts as lost', async ({
    expired: grants,
  }) => {
    const { manager, service } = grants;
    service.next(async (socket, request) => {
      await manager.remove('id');
      REFUSAL(socket, request);
    });
    expect(await grants.use()).toBe(401);
    expect(grants.lost).toEqual([]);
  });

  test('goes on if it is of the very grant that the login saves: its pair is kept if it cannot be saved', async ({
    grants,
  }) => {
    const { manager, store, service } = grants;
    const { opened, open } = gate();
    store.set = async (id, record) => {
      await store.inner.set(id, record);
      await opened;
    };
    const login = manager.put('id', tokens('first', { lifetimeMs: 1 }));
    service.next(async (socket, request) => {
      open();
      await login;
      store.fail('update');
      pair('next')(socket, request);
    });
    await until(async () => expect(await store.inner.get('oauth-app+id')).toBeDefined());
    grants.clock.advance(1);
    expect(await grants.use()).toBe('access-next');
    expect(grants.events).toMatchObject([{ outcome: 'unsaved' }]);
    store.recover();
  });

  test('in another process leaves the refresh token of the login before unused', async ({ grants }) => {
    const manager = grants.another({ cache: FOREVER });
    await manager.put('id', tokens('first'));
    await grants.manager.put('id', tokens('second'));
    grants.clock.advance(LIFETIME_S);
    grants.service.always(REFUSAL);
    expect(await fastForward(() => grants.use(manager))).toBe(401);
    expect(grants.sent()).toEqual(['refresh-second']);
  });

  test('gives a call that a logout has overtaken its token, and its client stays without authorization', async ({
    grants,
  }) => {
    const { manager, clock } = grants;
    await manager.put('id', tokens('first'));
    clock.advance(31);
    const source = new GrantCredentials(manager, 'id');
    const asked = source.credential();
    source.end();
    expect(await asked).toMatchObject({ accessToken: 'access-first' });
    expect([source.authorized, source.isAliveIn(manager)]).toEqual([false, false]);
  });
});

describe('a request without a cache', () => {
  const gets = ({ store }: Grants) => store.calls.filter((call) => call === 'get').length;

  test('reads the store once for its first call, and again for each one after it', async ({ grants }) => {
    const manager = grants.another({ cache: false });
    await manager.put('id', tokens('first'));
    const source = new GrantCredentials(manager, 'id');
    await source.prepare();
    expect(await source.credential()).toMatchObject({ accessToken: 'access-first' });
    expect(gets(grants)).toBe(1);
    await source.credential();
    expect(gets(grants)).toBe(2);
  });

  test('uses no grant that has expired, was deleted or was replaced since it was read', async ({ grants }) => {
    const manager = grants.another({ cache: false });
    const prepared = async () => {
      await manager.put('id', tokens('first'));
      const source = new GrantCredentials(manager, 'id');
      await source.prepare();
      return source;
    };
    const ofReplaced = await prepared();
    await manager.put('id', tokens('second'));
    expect(await ofReplaced.credential()).toMatchObject({ accessToken: 'access-second' });
    const ofDeleted = await prepared();
    await manager.remove('id');
    await expect(ofDeleted.credential()).rejects.toMatchObject({ status: 401 });
    const ofExpired = await prepared();
    grants.clock.advance(LIFETIME_S);
    expect(await ofExpired.credential()).toMatchObject({ accessToken: 'access-1' });
  });
});

test('a closed manager refreshes nothing: the new pair might be lost', async ({ grants }) => {
  const { manager, clock } = grants;
  await manager.put('id', tokens('first'));
  await manager.close();
  expect(manager.current('id')).toMatchObject({ accessToken: 'access-first' });
  clock.advance(LIFETIME_S);
  await expect(manager.current('id')).rejects.toMatchObject({
    status: 503,
    message: expect.stringContaining('closed'),
  });
  expect(grants.sent()).toEqual([]);
});

describe('a token response with a new refresh token that is otherwise unusable', () => {
  const sendUnusable = async ({ manager, service }: Grants, refresh_token: string) => {
    service.next(json({ access_token: 'a b', token_type: 'bearer', refresh_token }));
    await expect(manager.current('id')).rejects.toMatchObject({ name: 'TokenResponseError' });
  };

  test('costs no login: the next refresh sends the new refresh token, also of another process', async ({
    expired: grants,
  }) => {
    await sendUnusable(grants, 'refresh-rotated');
    expect(await grants.use(grants.another())).toBe('access-1');
    expect(grants.sent()).toEqual(['refresh-old', 'refresh-rotated']);
  });

  test('costs no login if the service refuses the new refresh token: the previous one is sent then', async ({
    expired: grants,
  }) => {
    await sendUnusable(grants, 'made-up');
    grants.service.next(REFUSAL);
    const grant = await grants.manager.current('id');
    expect(grants.sent()).toEqual(['refresh-old', 'made-up', 'refresh-old']);
    expect(grant).not.toHaveProperty('previousRefreshToken');
  });

  test('keeps the previous refresh token if it works and the response brings no other', async ({ expired: grants }) => {
    await sendUnusable(grants, 'made-up');
    grants.service.next(REFUSAL);
    grants.service.next(json({ access_token: 'second', token_type: 'bearer', expires_in: 7200 }));
    const grant = await grants.manager.current('id');
    expect(grant).toMatchObject({ accessToken: 'second', refreshToken: 'refresh-old' });
  });
});
