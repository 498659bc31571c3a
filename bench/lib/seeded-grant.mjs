import { randomBytes } from 'node:crypto';
import { GrantCodec } from '../../dist/grants/grant-codec.js';
import { storeId } from '../../dist/grants/grant-id.js';

const records = new GrantCodec([]);
const SIGNATURE = randomBytes(256).toString('base64url');
const LIFETIME_MS = 7_200_000;

/** A grant as a login of a user leaves it in a token store. @param {number} now epoch milliseconds */
export async function seededGrant(user, now) {
  const id = storeId('oauth-app', user);
  const claims = {
    sub: user,
    iat: Math.floor(now / 1000),
    exp: Math.floor((now + LIFETIME_MS) / 1000),
    jti: `${user}.1`,
  };
  const content = `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}`;
  const grant = {
    accessToken: `${content}.${SIGNATURE}`,
    refreshToken: `${user}.1`,
    expiresAt: now + LIFETIME_MS,
    lifetimeMs: LIFETIME_MS,
    organizationDomain: undefined,
    subject: user,
    refreshes: 0,
    version: 1,
  };
  return { id, grant: await records.write(id, grant) };
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
