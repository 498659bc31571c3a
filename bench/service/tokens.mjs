import { createHmac, randomBytes } from 'node:crypto';

const LIFETIME_S = 7200;

/** As long as an RS256 signature. Nobody checks it: what is measured is the clients. */
const SIGNATURE = randomBytes(256).toString('base64url');

/**
 * The token endpoint: single-use refresh tokens, and access tokens that are JWTs.
 *
 * @param {{ issuer: string, firstLifetimeS?: number, tokenChars?: number, clientID: string, clientSecret: string }} options
 *   `firstLifetimeS`: of the access token that a login gives; `tokenChars`: about how long an access token is
 */
export function tokenEndpoint({ issuer, firstLifetimeS = LIFETIME_S, tokenChars = 0, clientID, clientSecret }) {
  /** By grant: its user, and the serial of the refresh token that is good now. */
  const current = new Map();
  let grants = 0;
  let atOnce = 0;
  let stats;
  /** What has happened since the last call. */
  const takeStats = () => {
    const taken = stats;
    stats = { refreshed: 0, refused: 0, mostAtOnce: atOnce };
    return taken;
  };
  takeStats();

  const pair = (grant, user, serial, lifetimeS = LIFETIME_S, padding = {}) => {
    current.set(grant, { user, serial });
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, sub: user, iat, exp: iat + lifetimeS, jti: `${grant}.${serial}`, ...padding };
    return {
      access_token: `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}.${SIGNATURE}`,
      token_type: 'bearer',
      expires_in: lifetimeS,
      refresh_token: `${grant}.${serial}`,
    };
  };
  const missing = Math.floor(((tokenChars - pair(0, '1', 1).access_token.length) * 3) / 4);
  /** A claim that makes access tokens as long as they are to be. */
  const padding = missing > 0 ? { scopes: 's'.repeat(missing) } : {};

  /** For OpenID Connect, HS256. */
  const idToken = (sub, nonce) => {
    const iat = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: clientID, sub, nonce, iat, exp: iat + LIFETIME_S };
    const content = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`;
    return `${content}.${createHmac('sha256', clientSecret).update(content).digest('base64url')}`;
  };
  const exchange = (code) => {
    const { user, nonce } = JSON.parse(Buffer.from(code, 'base64url').toString());
    grants += 1;
    const body = pair(grants, user, 1, firstLifetimeS, padding);
    return { status: 200, body: nonce === undefined ? body : { ...body, id_token: idToken(user, nonce) } };
  };
  const refresh = (token) => {
    const [grant, serial] = token.split('.').map(Number);
    const { user, serial: good } = current.get(grant) ?? {};
    stats[good === serial ? 'refreshed' : 'refused'] += 1;
    if (good !== serial) return { status: 400, body: { error: 'invalid_grant' } };
    return { status: 200, body: pair(grant, user, serial + 1, LIFETIME_S, padding) };
  };
  return {
    takeStats,
    /** Grants as if so many users had logged in long ago: their first refresh tokens are `<grant>.1`. */
    seed(count) {
      for (let grant = grants + 1; grant <= count; grant += 1) current.set(grant, { user: String(grant), serial: 1 });
      grants = Math.max(grants, count);
    },
    started() {
      atOnce += 1;
      stats.mostAtOnce = Math.max(stats.mostAtOnce, atOnce);
    },
    /** @param {Record<string, string>} fields @returns {{ status: number, body: object }} */
    answer(fields) {
      atOnce -= 1;
      return fields.grant_type === 'refresh_token' ? refresh(fields.refresh_token) : exchange(fields.code);
    },
  };
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
