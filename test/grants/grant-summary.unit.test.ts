import { expect, test } from 'vitest';
import { endedGrant } from '../../src/grants/grant.js';
import { hasEnded } from '../../src/grants/grant-summary.js';
import { grantOf } from '../refresh/fixture.js';

const ENDS = 1_000;
const lasting = grantOf('lasting', { expiresAt: ENDS });
const dated = grantOf('dated', { expiresAt: ENDS, refreshTokenExpiresAt: 2 * ENDS });
const accessTokenOnly = grantOf('access', { expiresAt: ENDS, refreshToken: undefined });

test('a grant has ended once its refresh token has, or its access token where there is no other', () => {
  expect(hasEnded(lasting, Number.MAX_SAFE_INTEGER)).toBe(false);
  expect(hasEnded(dated, ENDS)).toBe(false);
  expect(hasEnded(dated, 2 * ENDS - 1)).toBe(false);
  expect(hasEnded(dated, 2 * ENDS)).toBe(true);
  expect(hasEnded(accessTokenOnly, ENDS - 1)).toBe(false);
  expect(hasEnded(accessTokenOnly, ENDS)).toBe(true);
});

test('a grant whose token can be asked for again ends with a refresh token that ends, and not without one', () => {
  expect(hasEnded(accessTokenOnly, ENDS, true)).toBe(false);
  expect(hasEnded(dated, 2 * ENDS, true)).toBe(true);
  expect(hasEnded(lasting, ENDS, true)).toBe(false);
});

test('a grant that the service has ended has ended, whatever its dates say', () => {
  const ended = endedGrant(dated);
  expect(hasEnded(ended, 0)).toBe(true);
});
