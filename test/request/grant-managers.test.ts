import { MemoryStore } from 'express-session';
import { memoryTokenStore } from 'passport-oauth-app';
import { expect } from 'vitest';
import type { GrantManager } from '../../src/refresh/grant-manager.js';
import { GrantManagers } from '../../src/session/grant-managers.js';
import type { TokenStore } from '../../src/stores/token-store.js';
import { test as base, tokens } from '../refresh/fixture.js';
import { requestOf, turns } from './fixture.js';

const NO_STORE =
  'tokenStore: outside of a request there is no session that leads to a store. Set tokenStore: sessionTokenStore(store), with the store of your sessions.';
const noStore = expect.objectContaining({ message: NO_STORE, option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' });
const ofSession = (sessionStore: unknown) => requestOf({}, { sessionStore });

const test = base.extend<{ readonly create: (store: TokenStore) => GrantManager }>({
  create: async ({ grants }, use) => use((store) => grants.another({ store })),
});

test('of the option tokenStore there is one manager, whatever the sessions have', ({ create }) => {
  const store = memoryTokenStore();
  const managers = new GrantManagers(store, create);
  const manager = managers.only();
  expect([requestOf(), ofSession(new MemoryStore())].map((req) => managers.for(req))).toEqual([manager, manager]);
  expect(managers.onlyStore).toBe(store);
});

test('without it there is one for each session store', async ({ create }) => {
  const managers = new GrantManagers(undefined, create);
  for (const req of [requestOf(), ofSession(null), ofSession('text')]) expect(managers.for(req)).toBeUndefined();
  expect(managers.onlyStore).toBeUndefined();
  expect(() => managers.only()).toThrow(noStore);
  const [first, second] = [new MemoryStore(), new MemoryStore()];
  const manager = managers.for(ofSession(first));
  expect([managers.only(), managers.for(ofSession(first))]).toEqual([manager, manager]);
  await manager?.put('id', tokens('a'));
  expect(await managers.onlyStore?.get('oauth-app+id')).toBeDefined();
  const other = managers.for(ofSession(second));
  expect(other).not.toBe(manager);
  expect(await other?.has('id')).toBe(false);
  expect(managers.onlyStore).toBeUndefined();
  expect(() => managers.only()).toThrow(noStore);
});

test('all of them are closed, also those that come later', async ({ create }) => {
  const closed: string[] = [];
  const watched = (store: TokenStore) => {
    const manager = create(store);
    const close = manager.close.bind(manager);
    manager.close = async () => {
      await close();
      closed.push('closed');
    };
    return manager;
  };
  const managers = new GrantManagers(undefined, watched);
  for (const _store of [1, 2]) managers.for(ofSession(new MemoryStore()));
  expect(closed).toEqual([]);
  await managers.close();
  expect(closed).toEqual(['closed', 'closed']);
  managers.for(ofSession(new MemoryStore()));
  await turns();
  expect(closed).toHaveLength(3);
});
