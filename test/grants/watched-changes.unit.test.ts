import { describe, expect } from 'vitest';
import { memoryTokenStore, type TokenStore } from '../../src/index.js';
import { gate, pair, test, tokens } from '../refresh/fixture.js';
import { threats } from '../support/threats.js';
import { TroubledStore } from '../support/troubled-store.js';

/** A store that tells what a test lets it tell. */
class TellingStore extends TroubledStore implements TokenStore {
  tell: (id: string, version?: number) => void = () => undefined;
  watchers = 0;

  watch(changed: (id: string, version?: number) => void): () => void {
    this.tell = changed;
    this.watchers += 1;
    return () => {
      this.watchers -= 1;
    };
  }

  get reads(): number {
    return this.calls.filter((call) => call === 'get').length;
  }
}

const ID = 'oauth-app+id';

describe('a change that the store tells of', threats(92), () => {
  test('ends the use of a grant that was deleted, also while the store fails', async ({ grants }) => {
    const store = new TellingStore();
    const manager = grants.another({ store });
    await manager.put('id', tokens('a'));
    await store.inner.delete(ID);
    expect(await grants.use(manager)).toBe('access-a');
    store.tell(ID);
    expect(await grants.use(manager)).toBe(401);
    await manager.put('id', tokens('b'));
    store.fail('get');
    store.tell(ID);
    expect(await grants.use(manager)).toBe(503);
  });

  test('has a grant read again that was replaced, and kept if the store fails', async ({ grants }) => {
    const store = new TellingStore();
    const manager = grants.another({ store });
    await manager.put('id', tokens('a'));
    await grants.another({ store: store.inner }).put('id', tokens('b'));
    const { version = 0 } = (await store.inner.get(ID)) ?? {};
    expect(await grants.use(manager)).toBe('access-a');
    store.tell(ID, version);
    expect(await grants.use(manager)).toBe('access-b');
    store.fail('get');
    store.tell(ID, version - 1);
    expect(await grants.use(manager)).toBe('access-b');
  });

  test('is not known from the own writes, which cost no read', async ({ grants }) => {
    const inner = memoryTokenStore();
    let reads = 0;
    const store: TokenStore = {
      ...inner,
      get: (id) => {
        reads += 1;
        return inner.get(id);
      },
    };
    const manager = grants.another({ store });
    await manager.put('id', tokens('a'));
    await grants.use(manager);
    expect(reads).toBe(0);
    grants.clock.advance(7_200);
    await grants.use(manager);
    // The cached one is too old, and the refresh reads again under its lock.
    expect(reads).toBe(2);
    await grants.use(manager);
    expect(reads).toBe(2);
  });

  test('overtakes a read that runs: what it brings is not cached', async ({ grants }) => {
    const store = new TellingStore();
    const manager = grants.another({ store });
    await manager.put('other', tokens('o'));
    await grants.another({ store: store.inner }).put('id', tokens('a'));
    const [begun, answered] = [gate(), gate()];
    const { get } = store.inner;
    const slow = async (id: string) => {
      const grant = await get(id);
      begun.open();
      await answered.opened;
      return grant;
    };
    Object.assign(store.inner, { get: slow });
    const reading = grants.use(manager);
    await begun.opened;
    await store.inner.delete(ID);
    store.tell(ID);
    answered.open();
    expect(await reading).toBe('access-a');
    expect(await grants.use(manager)).toBe(401);
  });

  test.for([ID, ''])('overtakes a save whose answer is still to come (%j)', async (told, { grants }) => {
    const store = new TellingStore();
    const manager = grants.another({ store });
    await manager.put('id', tokens('a'));
    grants.clock.advance(7_200);
    const [begun, answered] = [gate(), gate()];
    const { update } = store.inner;
    store.inner.update = async (...args) => {
      const isSaved = await update(...args);
      begun.open();
      await answered.opened;
      return isSaved;
    };
    const refreshing = grants.use(manager);
    await begun.opened;
    await store.inner.delete(ID);
    store.tell(told);
    answered.open();
    expect(await refreshing).toBe('access-1');
    expect(await grants.use(manager)).toBe(401);
  });

  test('of another strategy, or with an id that is none, changes nothing', async ({ grants }) => {
    const store = new TellingStore();
    const manager = grants.another({ store });
    await manager.put('id', tokens('a'));
    for (const id of ['other+id', 'oauth-app+%E0%A4%A', 'id']) store.tell(id);
    await grants.use(manager);
    expect(store.reads).toBe(0);
  });
});

test('a connection that is back has everything read again, and keeps what the store may have lost', async ({
  grants,
}) => {
  const store = new TellingStore();
  const manager = grants.another({ store });
  await manager.put('id', tokens('a'));
  const before = (await store.inner.get(ID)) ?? { version: 0, expiresAt: 0, sealed: '' };
  grants.clock.advance(7_200);
  grants.service.next(pair('b'));
  expect(await grants.use(manager)).toBe('access-b');
  // As a failover does that loses the last write.
  await store.inner.set(ID, before);
  const { reads } = store;
  store.tell('');
  expect(await grants.use(manager)).toBe('access-b');
  expect(store.reads).toBeGreaterThan(reads);
  expect(grants.sent()).toEqual(['refresh-a']);
});

test('nothing is listened to before a grant is cached, without a cache, and after close', async ({ grants }) => {
  const [store, uncached] = [new TellingStore(), new TellingStore()];
  const managers = [grants.another({ store }), grants.another({ store: uncached, cache: false })] as const;
  expect(await grants.use(managers[0])).toBe(401);
  expect(store.watchers).toBe(0);
  for (const manager of managers) for (const name of ['a', 'b']) await manager.put(name, tokens(name));
  expect([store.watchers, uncached.watchers]).toEqual([1, 0]);
  for (const manager of managers) await manager.close();
  await managers[0].current('a');
  expect(store.watchers).toBe(0);
});
