import { createHmac, randomBytes } from 'node:crypto';

const LIFETIME_S = 7200;

/** As long as an RS256 signature. Nobody checks it: what is measured is the clients. */
const SIGNATURE = randomBytes(256).toString('base64url');

/**
 * The token endpoint: single-use refresh tokens, and access tokens that are JWTs.
 *
 * @see service.md, 4.2 and 4.3
 */
export class Tokens {
  #options;
  /** By grant: its user, and the serial of the refresh token that is good now. */
  #current = new Map();
  #grants = 0;
  #stats = emptyStats();

  /** A claim that makes access tokens as long as they are to be. */
  #padding = '';

  /**
   * @param {{ issuer: string, lifetimeS?: number, firstLifetimeS?: number, tokenChars?: number, clientID: string, clientSecret: string }} options
   *   `firstLifetimeS`: of the access token that a login gives; `tokenChars`: about how long an access token is
   */
  constructor(options) {
    this.#options = options;
    const { tokenChars = 0 } = options;
    const missing = tokenChars - this.#pair(0, { user: '1', serial: 1 }, LIFETIME_S).access_token.length;
    this.#padding = 's'.repeat(Math.max(0, Math.floor((missing * 3) / 4)));
  }

  /** What has happened since the last call. */
  takeStats() {
    const stats = { ...this.#stats };
    this.#stats = { ...emptyStats(), atOnce: stats.atOnce };
    return stats;
  }

  started() {
    this.#stats.atOnce += 1;
    this.#stats.mostAtOnce = Math.max(this.#stats.mostAtOnce, this.#stats.atOnce);
    this.#stats.times.push(Date.now());
  }

  /** @param {Record<string, string>} fields @returns {{ status: number, body: object }} */
  answer(fields) {
    this.#stats.atOnce -= 1;
    return fields.grant_type === 'refresh_token' ? this.#refresh(fields.refresh_token) : this.#exchange(fields.code);
  }

  /** Grants as if so many users had logged in long ago: their first refresh tokens are `<grant>.1`. */
  seed(grants) {
    for (let grant = this.#grants + 1; grant <= grants; grant += 1)
      this.#current.set(grant, { user: String(grant), serial: 1 });
    this.#grants = Math.max(this.#grants, grants);
  }

  #exchange(code) {
    this.#stats.exchanges += 1;
    const { user, nonce } = JSON.parse(Buffer.from(code, 'base64url').toString());
    this.#grants += 1;
    const idToken = nonce === undefined ? {} : { id_token: this.#idToken(user, nonce) };
    return {
      status: 200,
      body: {
        ...this.#pair(this.#grants, { user, serial: 1 }, this.#options.firstLifetimeS ?? this.#lifetimeS),
        ...idToken,
      },
    };
  }

  #refresh(token) {
    const [grant, serial] = token.split('.').map(Number);
    const current = this.#current.get(grant);
    if (current?.serial !== serial) {
      this.#stats.refused += 1;
      return { status: 400, body: { error: 'invalid_grant' } };
    }
    this.#stats.refreshed += 1;
    return { status: 200, body: this.#pair(grant, { user: current.user, serial: serial + 1 }, this.#lifetimeS) };
  }

  get #lifetimeS() {
    return this.#options.lifetimeS ?? LIFETIME_S;
  }

  #pair(grant, { user, serial }, lifetimeS) {
    this.#current.set(grant, { user, serial });
    const now = Math.floor(Date.now() / 1000);
    const claims = {
      iss: this.#options.issuer,
      sub: user,
      iat: now,
      exp: now + lifetimeS,
      jti: `${grant}.${serial}`,
      ...(this.#padding === '' ? {} : { scopes: this.#padding }),
    };
    return {
      access_token: `${encoded({ alg: 'RS256', typ: 'JWT' })}.${encoded(claims)}.${SIGNATURE}`,
      token_type: 'bearer',
      expires_in: lifetimeS,
      refresh_token: `${grant}.${serial}`,
    };
  }

  /** For OpenID Connect, HS256. */
  #idToken(user, nonce) {
    const { issuer, clientID, clientSecret } = this.#options;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: clientID, sub: user, nonce, iat: now, exp: now + LIFETIME_S };
    const content = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`;
    return `${content}.${createHmac('sha256', clientSecret).update(content).digest('base64url')}`;
  }
}

function emptyStats() {
  return { exchanges: 0, refreshed: 0, refused: 0, atOnce: 0, mostAtOnce: 0, times: [] };
}

function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}
