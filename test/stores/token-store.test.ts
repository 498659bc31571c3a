import { inspect } from 'node:util';
import { memoryTokenStore } from 'passport-oauth-app';
import { expect, test } from 'vitest';

const grant = { version: 1, expiresAt: 2, sealed: 'top-secret' };

test('keeps copies, so that what a caller does to its grant later changes nothing', async () => {
  const store = memoryTokenStore();
  const mine = { ...grant };
  await store.set('id', mine);
  mine.sealed = 'changed';
  expect(await store.get('id')).toEqual(grant);
  expect(await store.get('id')).not.toBe(await store.get('id'));
});

test('shows no grant when it is inspected or serialized', async () => {
  const store = memoryTokenStore();
  await store.set('id', grant);
  expect(inspect(store, { depth: 10, showHidden: true }) + JSON.stringify(store)).not.toContain('top-secret');
});

test('holds the lock of one id until the work before it has ended, in order, and of other ids not at all', async () => {
  const store = memoryTokenStore();
  const order: string[] = [];
  let release = (): void => undefined;
  const first = new Promise<void>((resolve) => {
    release = resolve;
  });
  const work = (name: string, until?: Promise<void>) => async () => {
    await until;
    order.push(name);
  };
  const held = store.lock('a', work('first', first));
  const waiting = store.lock('a', work('second'));
  await store.lock('b', work('other'));
  release();
  await Promise.all([held, waiting]);
  expect(order).toEqual(['other', 'first', 'second']);
});

test('frees the lock after work that failed', async () => {
  const store = memoryTokenStore();
  await expect(store.lock('a', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
  expect(await store.lock('a', async () => 'yes')).toBe('yes');
});
