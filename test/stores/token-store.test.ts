import { inspect } from 'node:util';
import { memoryTokenStore } from 'passport-oauth-app';
import { expect, test } from 'vitest';

// The rest is in the conformance checks: test/stores/conformance.test.ts.
test('shows no grant when it is inspected or serialized', async () => {
  const store = memoryTokenStore();
  await store.set('id', { version: 1, expiresAt: 2, sealed: 'top-secret' });
  expect(inspect(store, { depth: 10, showHidden: true }) + JSON.stringify(store)).not.toContain('top-secret');
});
