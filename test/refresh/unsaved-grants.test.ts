import { expect, it, vi } from 'vitest';
import { UnsavedGrants } from '../../src/refresh/unsaved-grants.js';
import { TroubledStore } from '../support/troubled-store.js';
import { grantOf, repositoryOver } from './fixture.js';

const [old, next] = [grantOf('old'), grantOf('next')];

async function setUp() {
  const store = new TroubledStore();
  const { repository } = repositoryOver(store);
  await repository.create('id', old);
  const settled: [string, boolean][] = [];
  const unsaved = new UnsavedGrants(repository, (id, saved) => void settled.push([id, saved]));
  return { store, repository, unsaved, settled };
}

it('gives the grant until it is saved, and saves it by itself', async () => {
  const { store, repository, unsaved, settled } = await setUp();
  store.fail('update');
  unsaved.keep('id', next, [old.version], 'expired');
  expect(unsaved.get('id')).toBe(next);
  await vi.waitFor(() => expect(store.calls.filter((call) => call === 'update').length).toBeGreaterThan(1));
  expect(unsaved.size).toBe(1);
  store.recover();
  await vi.waitFor(() => expect(settled).toEqual([['id', true]]));
  expect(unsaved.size).toBe(0);
  expect(await repository.readAnew('id')).toEqual(next);
});

it('gives it up where the store has another one by now', async () => {
  const { repository, unsaved, settled } = await setUp();
  await repository.create('id', grantOf('of a new login'));
  unsaved.keep('id', next, [old.version], 'expired');
  await unsaved.flush();
  expect(settled).toEqual([['id', false]]);
  expect(unsaved.size).toBe(0);
});

it('forgets what it is told to drop, also while it is being saved', async () => {
  const { unsaved, settled } = await setUp();
  unsaved.keep('id', next, [old.version], 'expired');
  const saving = unsaved.flush();
  unsaved.drop('id');
  await saving;
  expect(settled).toEqual([]);
  expect(unsaved.size).toBe(0);
});

it('remembers every version that the store may have, up to eight', async () => {
  const { store, unsaved } = await setUp();
  store.fail();
  let before = old;
  for (let index = 0; index < 20; index++) {
    const after = grantOf(`${index}`);
    unsaved.keep('id', after, unsaved.versionsBefore('id', before), 'expired');
    before = after;
  }
  const versions = unsaved.versionsBefore('id', before);
  expect(versions).toHaveLength(8);
  expect(versions.at(-1)).toBe(before.version);
});

it('tries at the end until all are saved, and not for ever', async () => {
  const { store, unsaved } = await setUp();
  store.fail('update');
  unsaved.keep('id', next, [old.version], 'expired');
  const done = unsaved.saveAll();
  await vi.waitFor(() => expect(store.calls.filter((call) => call === 'update').length).toBeGreaterThan(2));
  store.recover();
  await done;
  expect(unsaved.size).toBe(0);
  store.fail('update');
  unsaved.keep('id', grantOf('last'), [next.version], 'expired');
  await unsaved.saveAll();
  expect(unsaved.size).toBe(1);
  unsaved.drop('id');
});
