import { randomBytes } from 'node:crypto';

const SIGNATURE = randomBytes(256).toString('base64url');
const LIFETIME_MS = 7_200_000;

/**
 * Gives a user a grant, as a login would: in the strategy's token store, with an access token of usual length.
 *
 * @param {number} now epoch milliseconds
 * @param {number} [expiresAt] epoch milliseconds
 */
export async function seedGrant(strategy, user, now, expiresAt = now + LIFETIME_MS) {
  const claims = { sub: user, iat: Math.floor(now / 1000), exp: Math.floor(expiresAt / 1000), jti: `${user}.1` };
  const content = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`;
  await strategy.importGrant(user, {
    accessToken: `${content}.${SIGNATURE}`,
    refreshToken: `${user}.1`,
    expiresAt,
  });
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
