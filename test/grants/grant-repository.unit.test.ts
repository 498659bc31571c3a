import { describe, expect, vi } from 'vitest';
import { type Grants, REFUSAL, test, tokens } from '../refresh/fixture.js';
import { gate } from '../support/gate.js';
import { stopTime } from '../support/stop-time.js';
import type { TroubledStore } from '../support/troubled-store.js';

const gets = (store: TroubledStore) => store.calls.filter((call) => call === 'get').length;
describe('the cache', () => {
  test('spares the store for its time to live, and no longer', async ({ grants }) => {
    await grants.manager.put('id', tokens('a'));
    grants.clock.advance(29.999);
    await grants.use();
    expect(gets(grants.store)).toBe(0);
    grants.clock.advance(0.001);
    await grants.use();
    expect(gets(grants.store)).toBe(1);
  });

  test('is not used for what was seen in the future: the clock was set back', async ({ grants }) => {
    await grants.manager.put('id', tokens('a'));
    grants.clock.advance(-1);
    await grants.use();
    expect(gets(grants.store)).toBe(1);
  });

  test('evicts the grant that was seen longest ago', async ({ grants }) => {
    const manager = grants.another({ cache: { max: 2, ttlMs: 30_000 } });
    for (const id of ['a', 'b', 'a', 'c']) await manager.put(id, tokens(id));
    for (const [id, count] of [
      ['a', 0],
      ['c', 0],
      ['b', 1],
    ] as const) {
      await manager.current(id);
      expect(gets(grants.store)).toBe(count);
    }
  });
});

/** The next read of the store finds what is there now, and answers when the returned function is called. */
function holdRead({ store }: Grants): () => void {
  const { opened, open } = gate();
  store.get = async (id) => {
    store.get = store.inner.get;
    const found = await store.inner.get(id);
    await opened;
    return found;
  };
  return open;
}

describe('a read', () => {
  test('is shared by all who ask at once', async ({ grants }) => {
    await grants.manager.put('id', tokens('a'));
    grants.clock.advance(31);
    await Promise.all([grants.use(), grants.use()]);
    expect(gets(grants.store)).toBe(1);
  });

  test('that may hang is not joined', async ({ grants }) => {
    stopTime();
    const manager = grants.another({ cache: false });
    await manager.put('id', tokens('a'));
    grants.store.before = () => new Promise(() => {});
    const hanging = grants.use(manager);
    vi.advanceTimersByTime(499);
    const joined = grants.use(manager);
    grants.store.recover();
    vi.advanceTimersByTime(1);
    expect(await grants.use(manager)).toBe('access-a');
    expect(gets(grants.store)).toBe(2);
    vi.advanceTimersByTime(5_000);
    expect([await hanging, await joined]).toEqual([503, 503]);
  });

  test('that took long fills the cache, also if others have begun since', async ({ grants }) => {
    stopTime();
    const manager = grants.another();
    await grants.manager.put('id', tokens('a'));
    const gates = [gate(), gate()];
    grants.store.before = () => gates[gets(grants.store) - 1]?.opened;
    const reads = [grants.use(manager)];
    vi.advanceTimersByTime(600);
    reads.push(grants.use(manager));
    gates[0]?.open();
    await reads[0];
    expect(manager.current('id')).not.toBeInstanceOf(Promise);
    gates[1]?.open();
    await reads[1];
  });

  test('that finds no grant is not shared by those who ask later: a login may have been saved since', async ({
    grants,
  }) => {
    const open = holdRead(grants);
    const before = grants.use();
    await grants.another().put('id', tokens('a'));
    const after = grants.use();
    open();
    expect([await before, await after]).toEqual([401, 'access-a']);
  });

  test('whose answer comes after a suspension is cached from the moment at which it was asked for', async ({
    grants,
  }) => {
    const { store, clock } = grants;
    const manager = grants.another();
    await grants.manager.put('id', tokens('a'));
    store.get = async (id) => {
      store.get = store.inner.get;
      const found = await store.inner.get(id);
      clock.advance(40);
      return found;
    };
    expect(await grants.use(manager)).toBe('access-a');
    await grants.manager.remove('id');
    expect(await grants.use(manager)).toBe(401);
  });

  test('that a logout has overtaken does not fill the cache', async ({ grants }) => {
    const { manager } = grants;
    await manager.put('id', tokens('a'));
    grants.clock.advance(31);
    const open = holdRead(grants);
    const reading = grants.use();
    await manager.remove('id');
    open();
    expect(await reading).toBe('access-a');
    expect(await grants.use()).toBe(401);
  });

  test('that fails after a logout does not bring back the grant that was seen before', async ({ grants }) => {
    const { manager, store } = grants;
    await manager.put('id', tokens('a'));
    grants.clock.advance(31);
    const { opened, open } = gate();
    store.get = async () => {
      store.get = store.inner.get;
      await opened;
      throw new Error('The store is down');
    };
    const reading = grants.use();
    await manager.remove('id');
    open();
    expect(await reading).toBe(503);
  });

  test('believes the store that a grant is gone, also if the store fails then', async ({ grants }) => {
    await grants.manager.put('id', tokens('a'));
    await grants.store.inner.delete('oauth-app+id');
    grants.clock.advance(31);
    expect(await grants.use()).toBe(401);
    grants.store.fail('get');
    expect(await grants.use()).toBe(503);
  });

  test('returns no grant that was removed, also while the store fails', async ({ grants }) => {
    await grants.manager.put('id', tokens('a'));
    grants.store.fail('delete', 'get');
    await expect(grants.manager.remove('id')).rejects.toMatchObject({ name: 'TokenStoreError' });
    expect(await grants.use()).toBe(503);
  });
});

describe('the end of a refused grant', () => {
  test('leaves a grant that another process saves at that moment, and goes on with it', async ({ expired: grants }) => {
    grants.service.next(REFUSAL);
    grants.store.before = async (method) => {
      if (method !== 'update') return;
      grants.store.recover();
      await grants.another().put('id', tokens('new'));
    };
    expect(await grants.use()).toBe('access-new');
    expect(grants.lost).toEqual([]);
  });

  test('is no loss where a logout elsewhere has deleted it first', async ({ expired: grants }) => {
    grants.service.next(async (...exchange) => {
      await grants.another().remove('id');
      REFUSAL(...exchange);
    });
    expect(await grants.use()).toBe(401);
    expect(grants.lost).toEqual([]);
  });
});
