import { expect, test } from 'vitest';
import { endedGrant, hasEnded } from '../../src/grants/grant.js';
import { grantOf } from '../refresh/fixture.js';

const ENDS = 1_000;
const lasting = grantOf('lasting', { expiresAt: ENDS });
const dated = grantOf('dated', { expiresAt: ENDS, refreshTokenExpiresAt: 2 * ENDS });
const accessTokenOnly = grantOf('access', { expiresAt: ENDS, refreshToken: undefined });

test('a grant has ended once nothing can replace its access token, and that has expired', () => {
  expect(hasEnded(lasting, Number.MAX_SAFE_INTEGER)).toBe(false);
  expect(hasEnded(dated, 2 * ENDS - 1)).toBe(false);
  expect(hasEnded(dated, 2 * ENDS)).toBe(true);
  expect(hasEnded({ ...dated, expiresAt: 3 * ENDS }, 3 * ENDS - 1)).toBe(false);
  expect(hasEnded(accessTokenOnly, ENDS - 1)).toBe(false);
  expect(hasEnded(accessTokenOnly, ENDS)).toBe(true);
  expect(hasEnded({ ...accessTokenOnly, application: true }, ENDS)).toBe(false);
});

test('a grant that the service has ended has ended, whatever its dates say', () => {
  const ended = endedGrant(dated);
  expect(hasEnded(ended, 0)).toBe(true);
});
