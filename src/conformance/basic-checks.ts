import assert from 'node:assert/strict';
import type { StoredGrant, TokenStore } from '../stores/token-store.js';
import { type Check, EXPIRED, sampleGrant, type Trial } from './trial.js';

/** All characters that an id may contain: printable ASCII without white space. */
const ID_CHARACTERS: string = Array.from({ length: 94 }, (_, index) => String.fromCharCode(33 + index)).join('');

/** Values that JSON can express and that stores have been seen to lose. */
const UNKNOWN_FIELDS: object = {
  note: 'ünïcode \u{1f511} "quoted" \\ \t',
  nested: { list: [1, 'two', null, true, { three: 3 }], empty: {}, none: [] },
  fraction: 0.1,
  time: '2030-01-01T00:00:00.000Z',
};

/** Ends of ids that a store might confuse: by decoding, normalizing or cutting them, or by taking them for patterns. */
const SIMILAR_ENDS: readonly string[] = [
  ...['', 'a', 'aa', '.', '..', '+', '%20', '%2520', '*', '_', '%', '?', ':a', '/a', '/../a'],
];

/** The checks of `get`, `set` and `delete`. */
export const BASIC_CHECKS: readonly Check[] = [
  {
    name: 'get resolves to undefined for an id that was never set',
    run: async ({ store, newId }) => {
      assert.equal(await store.get(newId()), undefined);
    },
  },
  {
    name: 'get gives back what was set, fields that the store does not know included',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, UNKNOWN_FIELDS));
      assert.deepEqual(await store.get(id), sampleGrant(1, UNKNOWN_FIELDS));
    },
  },
  {
    name: 'set replaces the whole grant',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, { former: true }));
      await store.set(id, sampleGrant(2));
      assert.deepEqual(await store.get(id), sampleGrant(2));
    },
  },
  {
    name: 'set takes any safe integer as a version, one lower than the last included',
    run: async ({ store, newId }) => {
      const id = newId();
      for (const version of [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER - 1, 7, 0]) {
        await store.set(id, sampleGrant(version));
        assert.deepEqual(await store.get(id), sampleGrant(version));
      }
    },
  },
  {
    name: 'a grant stays after its access token has expired',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, EXPIRED));
      assert.deepEqual(await store.get(id), sampleGrant(1, EXPIRED));
    },
  },
  {
    name: 'ids that look alike have separate grants',
    run: async (trial) => {
      const id = trial.newId();
      await keepsApart(
        trial,
        SIMILAR_ENDS.map((end) => id + end),
      );
    },
  },
  {
    name: 'ids that differ only by case have separate grants',
    run: async (trial) => {
      const id = trial.newId();
      await keepsApart(trial, [`${id}Ada`, `${id}ada`, `${id}ADA`]);
    },
  },
  {
    name: 'ids of 1,024 characters that differ in the last one have separate grants',
    run: async (trial) => {
      const id = trial.newId().padEnd(1023, 'a');
      await keepsApart(trial, [`${id}a`, `${id}b`]);
    },
  },
  {
    name: 'an id may hold all printable ASCII characters, and 1,024 of them',
    run: async ({ store, newId, note }) => {
      const id = note(newId().padEnd(1024, ID_CHARACTERS));
      await store.set(id, sampleGrant(1));
      assert.deepEqual(await store.get(id), sampleGrant(1));
      await store.delete(id);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'a grant may be 32 KiB large',
    run: async ({ store, newId }) => {
      const id = newId();
      const grant = sampleGrant(1, { sealed: 'x'.repeat(32 * 1024) });
      await store.set(id, grant);
      assert.deepEqual(await store.get(id), grant);
    },
  },
  {
    name: 'what a caller does to a grant that it gave or got does not change the stored one',
    run: async ({ store, newId }) => {
      const id = newId();
      const given = sampleGrant(1, { nested: { list: [1] } });
      await store.set(id, given);
      Object.assign(given, { sealed: 'changed', nested: undefined });
      Object.assign((await store.get(id)) ?? {}, { sealed: 'changed', nested: undefined });
      assert.deepEqual(await store.get(id), sampleGrant(1, { nested: { list: [1] } }));
    },
  },
  {
    name: 'delete with the version of the grant removes it',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(Number.MAX_SAFE_INTEGER));
      await store.delete(id, Number.MAX_SAFE_INTEGER);
      assert.equal(await store.get(id), undefined);
      await store.delete(id, 1);
    },
  },
  {
    name: 'delete removes the grant and no other, and resolves also if there was none',
    run: async ({ store, newId }) => {
      const [id, other] = [newId(), newId()];
      await Promise.all([store.set(id, sampleGrant(1)), store.set(other, sampleGrant(2))]);
      await store.delete(id);
      await store.delete(id);
      await store.delete(newId());
      assert.equal(await store.get(id), undefined);
      assert.deepEqual(await store.get(other), sampleGrant(2));
    },
  },
  {
    name: 'a grant can be set again after it was deleted',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      await store.delete(id);
      await store.set(id, sampleGrant(1));
      assert.deepEqual(await store.get(id), sampleGrant(1));
    },
  },
  {
    name: 'sets and gets at the same time never return a grant that was never set',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, versionedGrant(0));
      const sets = Array.from({ length: 20 }, (_, index) => store.set(id, versionedGrant(index + 1)));
      const gets = Array.from({ length: 20 }, () => readOften(store, id));
      await Promise.all([...sets, ...gets]);
      await readOften(store, id);
    },
  },
  {
    name: 'get reads what another store over the same storage has just written',
    run: async ({ newId, stores }) => {
      const id = newId();
      const [one, other] = await stores(2);
      if (!one || !other) return;
      assert.equal(await other.get(id), undefined);
      for (const version of [1, 2, 3]) {
        await one.set(id, sampleGrant(version));
        assert.deepEqual(await other.get(id), sampleGrant(version));
      }
      if (await one.update?.(id, sampleGrant(4), 3)) assert.deepEqual(await other.get(id), sampleGrant(4));
      await one.delete(id);
      assert.equal(await other.get(id), undefined);
    },
  },
];

/** Gives each id a grant and expects to find them all, then deletes the first and expects to find the others. */
async function keepsApart({ store, note }: Trial, ids: readonly string[]): Promise<void> {
  const expected = ids.map((_, index) => sampleGrant(index));
  await Promise.all(ids.map((id, index) => store.set(note(id), sampleGrant(index))));
  assert.deepEqual(await Promise.all(ids.map((id) => store.get(id))), expected);
  await store.delete(ids[0] ?? '');
  assert.deepEqual(await Promise.all(ids.slice(1).map((id) => store.get(id))), expected.slice(1));
}

/** Returns a grant whose parts must agree, so that a mix of two grants shows. */
function versionedGrant(version: number): StoredGrant {
  return sampleGrant(version, { sealed: `${version} `.repeat(1000) });
}

async function readOften(store: TokenStore, id: string): Promise<void> {
  for (let reads = 0; reads < 10; reads += 1) {
    const grant = await store.get(id);
    assert.deepEqual(grant, versionedGrant(grant?.version ?? 0));
  }
}
