import assert from 'node:assert/strict';
import { type Check, sampleGrant } from './trial.js';

/** Checks of `update`, and of `delete` with a version in stores that can compare versions. */
export const UPDATE_CHECKS: readonly Check[] = [
  {
    name: 'update replaces the whole grant if its version is the one given, and resolves to true',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1, { former: true }));
      assert.equal(await store.update?.(id, sampleGrant(9, { field: [1] }), 1), true);
      assert.deepEqual(await store.get(id), sampleGrant(9, { field: [1] }));
    },
  },
  {
    name: 'update leaves a grant of another version as it is, and resolves to false',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      assert.equal(await store.update?.(id, sampleGrant(2), 1), true);
      for (const version of [0, 1, 3]) {
        assert.equal(await store.update?.(id, sampleGrant(4), version), false, `version ${version} is not stored`);
      }
      assert.deepEqual(await store.get(id), sampleGrant(2));
    },
  },
  {
    name: 'update compares versions exactly, up to the largest safe integer',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(Number.MAX_SAFE_INTEGER));
      assert.equal(await store.update?.(id, sampleGrant(1), Number.MAX_SAFE_INTEGER - 1), false);
      assert.equal(await store.update?.(id, sampleGrant(0), Number.MAX_SAFE_INTEGER), true);
      assert.equal(await store.update?.(id, sampleGrant(1), 0), true);
    },
  },
  {
    name: 'update creates no grant where none was ever set',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      assert.equal(await store.update?.(id, sampleGrant(1), 0), false);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'update does not bring back a grant that was deleted',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(1));
      await store.delete(id);
      assert.equal(await store.update?.(id, sampleGrant(2), 1), false);
      assert.equal(await store.get(id), undefined);
    },
  },
  {
    name: 'delete of a version removes the grant only while its version is that',
    needs: 'update',
    run: async ({ store, newId }) => {
      const id = newId();
      await store.set(id, sampleGrant(2));
      for (const version of [0, 1, 3]) {
        await store.delete(id, version);
        assert.deepEqual(await store.get(id), sampleGrant(2), `version ${version} is not stored`);
      }
    },
  },
  {
    name: 'of 50 updates of one version at the same time, one resolves to true, and its grant is stored',
    needs: 'update',
    run: async ({ store, newId, stores }) => {
      const id = newId();
      const all = await stores(5);
      await (all[0] ?? store).set(id, sampleGrant(0));
      const updates = Array.from({ length: 50 }, (_, index) =>
        (all[index % 5] ?? store).update?.(id, sampleGrant(index + 1), 0),
      );
      const outcomes = await Promise.all(updates);
      assert.equal(outcomes.filter((outcome) => outcome === true).length, 1, 'updates that resolved to true');
      assert.deepEqual(await (all[0] ?? store).get(id), sampleGrant(outcomes.indexOf(true) + 1));
    },
  },
];
