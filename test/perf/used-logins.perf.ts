import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { UsedLogins } from '../../src/login/pending-logins.js';
import type { StoreAccess } from '../../src/stores/store-access.js';
import { heapBytes } from '../support/heap.js';
import { TestClock } from '../support/test-clock.js';

const LOGINS = 20_000;

/** Bytes of a used login, of which there are 95. With an object for each there would be 178. */
const MAX_BYTES = 135;

test('a used login takes the memory of its state, and of an entry', async () => {
  const clock = new TestClock();
  const used = new UsedLogins<string>({ namespace: 'test', clock: clock.now });
  const access = { hasLock: false } as StoreAccess;
  const use = async () => {
    const state = randomBytes(32).toString('base64url');
    const login = { state, expiresAt: clock.now() + 600_000 };
    await used.use(
      login,
      access,
      async () => 'done',
      () => false,
    );
    clock.advance(0.001);
  };
  await use();
  const before = await heapBytes();
  for (let count = 0; count < LOGINS; count++) await use();
  expect(((await heapBytes()) - before) / LOGINS).toBeLessThan(MAX_BYTES);
  await used.close();
});
