import { randomBytes } from 'node:crypto';

const SIGNATURE = randomBytes(256).toString('base64url');
const LIFETIME_MS = 7_200_000;

/**
 * What a strategy of ours has to be told of the service, the same for all that are measured.
 *
 * @param {{ url: string, clientID: string, clientSecret: string }} service
 * @param {string} [origin] of the application; a client that nobody logs in through has none
 */
export function strategyOptions({ url, clientID, clientSecret }, origin = 'http://127.0.0.1') {
  return { authUrl: url, baseUrl: url, clientID, clientSecret, callbackURL: `${origin}/callback`, scope: 'project' };
}

/** Gives a user a grant, as a login would: an access token of usual length. Times in epoch milliseconds. */
export async function seedGrant(strategy, user, now, expiresAt = now + LIFETIME_MS) {
  const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const claims = { sub: user, iat: Math.floor(now / 1000), exp: Math.floor(expiresAt / 1000), jti: `${user}.1` };
  const accessToken = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}.${SIGNATURE}`;
  await strategy.importGrant(user, { accessToken, refreshToken: `${user}.1`, expiresAt });
}
