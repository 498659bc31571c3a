import { describe, expect, it, vi } from 'vitest';
import { TokenStoreError } from '../../src/errors.js';
import { grantOf, repositoryOver } from '../refresh/fixture.js';
import { TroubledStore } from '../support/troubled-store.js';

const [old, next, other] = [grantOf('old'), grantOf('next'), grantOf('other')];

/** A promise that the test fulfils. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** As a session store is: without `update` and `lock`. */
function plain(store: TroubledStore) {
  return {
    get: (id: string) => store.get(id),
    set: (...args: Parameters<TroubledStore['set']>) => store.set(...args),
    delete: (id: string) => store.delete(id),
  };
}

describe('reading', () => {
  it('asks the store once for all who ask at once, and not again while the cache has it', async () => {
    const store = new TroubledStore();
    const { repository, clock } = repositoryOver(store);
    await repository.create('id', old);
    clock.advance(31);
    store.calls.length = 0;
    expect(await Promise.all([repository.read('id'), repository.read('id')])).toEqual([old, old]);
    expect(store.calls).toEqual(['get']);
    expect(repository.cached('id')).toEqual(old);
    expect(repository.pending).toBe(0);
  });

  it('does not join a look that may be stuck', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    try {
      const store = new TroubledStore();
      const { repository } = repositoryOver(store, { cache: false });
      await repository.create('id', old);
      store.before = () => new Promise(() => {});
      const stuck = repository.read('id');
      stuck.catch(() => {});
      store.recover();
      vi.advanceTimersByTime(499);
      expect(repository.read('id')).toBe(stuck);
      vi.advanceTimersByTime(1);
      expect(await repository.read('id')).toEqual(old);
    } finally {
      vi.useRealTimers();
    }
  });

  it('lets a look that took long fill the cache, also after others have begun', async () => {
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    try {
      const store = new TroubledStore();
      const { repository, clock } = repositoryOver(store);
      await repository.create('id', old);
      clock.advance(31);
      const gates = [gate(), gate()];
      store.before = () => gates[store.calls.filter((call) => call === 'get').length - 1]?.opened;
      const looks = [repository.read('id')];
      vi.advanceTimersByTime(600);
      looks.push(repository.read('id'));
      gates[0]?.open();
      await looks[0];
      expect(repository.cached('id')).toEqual(old);
      gates[1]?.open();
      await looks[1];
      expect(repository.pending).toBe(0);
    } finally {
      vi.useRealTimers();
    }
  });

  it('believes the store that a grant is gone, also when the store then fails', async () => {
    const store = new TroubledStore();
    const { repository, clock } = repositoryOver(store);
    await repository.create('id', old);
    await store.inner.delete('id');
    clock.advance(31);
    expect(await repository.read('id')).toBeUndefined();
    store.fail('get');
    expect(repository.cached('id')).toBeUndefined();
    await expect(repository.read('id')).rejects.toBeInstanceOf(TokenStoreError);
  });

  it('does not put into the cache what a write has overtaken', async () => {
    const store = new TroubledStore();
    const { repository, clock } = repositoryOver(store);
    await repository.create('id', old);
    clock.advance(31);
    const { opened, open } = gate();
    store.get = async (id) => {
      const found = await store.inner.get(id);
      await opened;
      return found;
    };
    const reading = repository.read('id');
    await repository.remove('id');
    open();
    expect(await reading).toEqual(old);
    expect(repository.cached('id')).toBeUndefined();
  });

  it('gives what the store had last while it fails, and asks it again after a second', async () => {
    const store = new TroubledStore();
    const { repository, clock } = repositoryOver(store);
    await repository.create('id', old);
    clock.advance(31);
    store.fail();
    expect(repository.cached('id')).toBeUndefined();
    expect(await repository.read('id')).toEqual(old);
    expect(repository.cached('id')).toEqual(old);
    await expect(repository.read('unseen')).rejects.toBeInstanceOf(TokenStoreError);
    await expect(repository.readAnew('id')).rejects.toBeInstanceOf(TokenStoreError);
  });

  it('gives nothing that was removed, also while the store fails', async () => {
    const store = new TroubledStore();
    const { repository } = repositoryOver(store);
    await repository.create('id', old);
    store.fail('delete', 'get');
    await expect(repository.remove('id')).rejects.toBeInstanceOf(TokenStoreError);
    expect(repository.cached('id')).toBeUndefined();
    await expect(repository.read('id')).rejects.toBeInstanceOf(TokenStoreError);
  });

  it('tells of a record that cannot be read, and keeps it', async () => {
    const store = new TroubledStore();
    const { repository, unreadable } = repositoryOver(store);
    const record = { version: 1, expiresAt: 1, sealed: 'nonsense' };
    await store.inner.set('id', record);
    expect(await repository.read('id')).toBeUndefined();
    expect(unreadable).toEqual(['id']);
    expect(await store.inner.get('id')).toEqual(record);
  });
});

describe.each([
  ['with update', (store: TroubledStore) => store],
  ['without update', plain],
])('a store %s', (_how, view) => {
  it('replaces the version that it was told, and no other one', async () => {
    const store = new TroubledStore();
    const { repository } = repositoryOver(view(store));
    await repository.create('id', old);
    expect(await repository.replace('id', next, [old.version])).toBe(true);
    expect(repository.cached('id')).toEqual(next);
    expect(await repository.replace('id', other, [old.version])).toBe(false);
    expect(await repository.replace('id', other, [old.version, next.version])).toBe(true);
    expect(await repository.readAnew('id')).toEqual(other);
    expect(await repository.replace('gone', other, [old.version])).toBe(false);
  });

  it('takes its own write that came late for done', async () => {
    const store = new TroubledStore();
    const { repository } = repositoryOver(view(store));
    await repository.create('id', old);
    await repository.replace('id', next, [old.version]);
    expect(await repository.replace('id', next, [old.version])).toBe(true);
  });

  it('removes a refused grant, and not the one that took its place', async () => {
    const store = new TroubledStore();
    const { repository } = repositoryOver(view(store));
    await repository.create('id', next);
    expect(await repository.removeRefused('id', old)).toBe(false);
    expect(await repository.readAnew('id')).toEqual(next);
    expect(await repository.removeRefused('id', next)).toBe(true);
    expect(await store.inner.get('id')).toBeUndefined();
    expect(await repository.removeRefused('id', next)).toBe(true);
  });
});

it('THREATS 40: does not remove a pair that comes in between the look and the deletion', async () => {
  const store = new TroubledStore();
  const { repository } = repositoryOver(store);
  await repository.create('id', old);
  const rival = repositoryOver(store.inner).repository;
  store.before = async (method) => {
    if (method === 'update') await rival.replace('id', next, [old.version]);
  };
  expect(await repository.removeRefused('id', old)).toBe(false);
  expect(await repository.readAnew('id')).toEqual(next);
});

it('takes the mark that a crash has left in the place of a grant for none, and says nothing', async () => {
  const store = new TroubledStore();
  const { repository, unreadable } = repositoryOver(store);
  await repository.create('id', old);
  store.fail('delete');
  await expect(repository.removeRefused('id', old)).rejects.toBeInstanceOf(TokenStoreError);
  expect(await repository.readAnew('id')).toBeUndefined();
  expect(unreadable).toEqual([]);
  await repository.create('id', next);
  expect(await repository.readAnew('id')).toEqual(next);
});

it('writes in the order in which it was told, however slow the store is', async () => {
  const store = new TroubledStore();
  const { repository } = repositoryOver(store);
  const { opened, open } = gate();
  store.before = (method) => (method === 'set' ? opened : undefined);
  const writes = [repository.create('id', old), repository.remove('id')];
  await vi.waitFor(() => expect(store.calls).toEqual(['set']));
  open();
  await Promise.all(writes);
  expect(store.calls).toEqual(['set', 'delete']);
  expect(await store.inner.get('id')).toBeUndefined();
});

it('tells that the store is back, once, and believes for a while that others may still have something to save', async () => {
  const store = new TroubledStore();
  const { repository, recoveries } = repositoryOver(store);
  const usual = repository.pausesBeforeLoss.length;
  store.fail();
  await expect(repository.read('id')).rejects.toBeInstanceOf(TokenStoreError);
  store.recover();
  await repository.read('id');
  await repository.read('id');
  expect(recoveries()).toBe(1);
  expect(repository.pausesBeforeLoss.length).toBeGreaterThan(usual);
});

it('does not put into the cache what a write that was given up as lost has done', async () => {
  const store = new TroubledStore();
  const { repository } = repositoryOver(store);
  await repository.create('id', old);
  const { opened, open } = gate();
  const update = store.update.bind(store);
  const arrived = vi.fn();
  store.update = async (...args) => {
    const done = await update(...args);
    await opened;
    arrived();
    return done;
  };
  const replacing = repository.replace('id', next, [old.version]);
  await vi.waitFor(async () => expect((await store.inner.get('id'))?.version).toBe(next.version));
  repository.loseWrites();
  await expect(replacing).rejects.toBeInstanceOf(TokenStoreError);
  await repository.remove('id');
  open();
  await vi.waitFor(() => expect(arrived).toHaveBeenCalled());
  await new Promise((resolve) => setImmediate(resolve));
  expect(repository.cached('id')).toBeUndefined();
});

it('begins nothing more in a store without versions once it was given up as lost', async () => {
  const store = new TroubledStore();
  const { repository } = repositoryOver(plain(store));
  await repository.create('id', old);
  for (const write of [
    () => repository.replace('id', next, [old.version]),
    () => repository.removeRefused('id', old),
  ]) {
    await repository.create('id', old);
    const { opened, open } = gate();
    const found = await store.inner.get('id');
    const get = vi.spyOn(store, 'get').mockImplementationOnce(() => opened.then(() => found));
    const writing = write();
    await vi.waitFor(() => expect(get).toHaveBeenCalled());
    repository.loseWrites();
    await expect(writing).rejects.toBeInstanceOf(TokenStoreError);
    await repository.create('id', other);
    open();
    await new Promise((resolve) => setImmediate(resolve));
    expect((await store.inner.get('id'))?.version).toBe(other.version);
    get.mockRestore();
  }
});
