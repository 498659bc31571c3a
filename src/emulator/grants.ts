import type { Clock } from './clock.js';
import type { Approval } from './codes.js';
import type { Secrets } from './secrets.js';
import type { EmulatorUser, Users } from './users.js';

/** How the service treats a refresh token that was used before. */
export type RefreshTokenReuse = 'refuse' | 'revoke' | 'grace';

/** Body of a successful response of the token endpoint. @see service.md section 2, Token response */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'bearer';
  readonly expires_in: number;
  readonly refresh_token: string;
}

/** User and scopes of a valid access token, or the reason why it is refused. */
export type Bearer = { readonly user: EmulatorUser; readonly scopes: readonly string[] } | { readonly refusal: string };

/** Dependencies of `Grants`. */
export interface GrantsSetting {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly users: Users;
  /** Seconds. */
  readonly accessTokenLifetime: number;
  readonly refreshTokenReuse: RefreshTokenReuse;
}

interface Grant {
  readonly id: number;
  readonly clientID: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Serial number of the valid refresh token. */
  current: number;
  /** Serial number of its predecessor, while that one is in its grace. */
  previous: number | undefined;
}

// Beyond this, the grant whose last refresh is oldest is dropped: a soak of millions of logins keeps its memory.
const maxGrants = 100_000;

const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url');

/**
 * The grants of all users, and the tokens that belong to them.
 *
 * Tokens are signed and carry their grant and serial number, so a grant that was refreshed a million times takes no more memory than a new one.
 */
export class Grants {
  readonly #grants = new Map<number, Grant>();
  readonly #setting: GrantsSetting;
  #grantSerial = 0;
  #refreshSerial = 0;
  #accessSerial = 0;
  #accessTokensExpiredUpTo = 0;

  constructor(setting: GrantsSetting) {
    this.#setting = setting;
  }

  /** Starts a grant and returns its id and first tokens. */
  start({ clientID, userId, scopes }: Approval): { readonly id: number; readonly response: TokenResponse } {
    this.#grantSerial += 1;
    const grant: Grant = { id: this.#grantSerial, clientID, userId, scopes, current: 0, previous: undefined };
    const oldest = this.#grants.keys().next().value;
    if (this.#grants.size >= maxGrants && oldest !== undefined) this.#grants.delete(oldest);
    return { id: grant.id, response: this.#issue(grant) };
  }

  /**
   * Consumes a refresh token and returns the next pair, or the reason why it is refused.
   *
   * @see service.md section 4.3: "A new one is returned by each refresh response"
   */
  refresh(token: string, clientID: string): TokenResponse | { readonly refusal: string } {
    const [id, serial, signature] = token.split('.');
    const isGenuine = signature !== undefined && this.#refreshToken(Number(id), Number(serial)) === token;
    const grant = isGenuine ? this.#grants.get(Number(id)) : undefined;
    if (grant === undefined || grant.clientID !== clientID) {
      return { refusal: 'The refresh token is unknown here, was revoked, or belongs to another application.' };
    }
    const { refreshTokenReuse } = this.#setting;
    if (Number(serial) === grant.current || Number(serial) === grant.previous) {
      grant.previous = refreshTokenReuse === 'grace' ? grant.current : undefined;
      return this.#issue(grant);
    }
    if (refreshTokenReuse !== 'revoke') return { refusal: 'The refresh token was used already.' };
    this.#grants.delete(grant.id);
    return { refusal: 'The refresh token was used already, so the whole grant was revoked.' };
  }

  /** Returns the user and the scopes of an access token, or the reason why it is refused. */
  bearer(token: string): Bearer {
    const { secrets, clock, users } = this.#setting;
    const signatureAt = token.lastIndexOf('.');
    if (signatureAt < 0 || secrets.sign(token.slice(0, signatureAt)) !== token.slice(signatureAt + 1)) {
      return { refusal: 'The access token is unknown here.' };
    }
    const payload = Buffer.from(token.slice(header.length + 1, signatureAt), 'base64url').toString();
    const { jti }: { readonly jti: string } = JSON.parse(payload);
    const [grantId = 0, serial = 0, expiresAt = 0] = jti.split('.').map(Number);
    if (expiresAt <= clock.now() || serial <= this.#accessTokensExpiredUpTo) {
      return { refusal: 'The access token has expired.' };
    }
    const grant = this.#grants.get(grantId);
    const user = grant === undefined ? undefined : users.find(grant.userId);
    if (grant === undefined || user === undefined) return { refusal: 'The access token was revoked.' };
    return { user, scopes: grant.scopes };
  }

  /** Makes every access token that was issued so far count as expired, regardless of its `exp`. */
  expireAccessTokens(): void {
    this.#accessTokensExpiredUpTo = this.#accessSerial;
  }

  /** Ends one grant: its access and refresh tokens are refused from now on. */
  end(id: number): void {
    this.#grants.delete(id);
  }

  /** Ends all grants of a user. */
  endAllOf(userId: string): void {
    for (const grant of this.#grants.values()) {
      if (grant.userId === userId) this.#grants.delete(grant.id);
    }
  }

  #issue(grant: Grant): TokenResponse {
    this.#refreshSerial += 1;
    grant.current = this.#refreshSerial;
    // Deleted first, so that the map stays in the order of the last refresh.
    this.#grants.delete(grant.id);
    this.#grants.set(grant.id, grant);
    return {
      access_token: this.#accessToken(grant),
      token_type: 'bearer',
      expires_in: this.#setting.accessTokenLifetime,
      refresh_token: this.#refreshToken(grant.id, grant.current),
    };
  }

  // A JWT, signed with HS256 (service.md section 2: "It is structured as a JWT"). Its `jti` holds all that `bearer` needs: grant, serial
  // number (two tokens of one second differ), and expiry in milliseconds (`exp` has whole seconds, and a user's claims may override it).
  #accessToken(grant: Grant): string {
    const { secrets, clock, users, accessTokenLifetime } = this.#setting;
    const now = clock.now();
    const user = users.find(grant.userId);
    const iat = Math.floor(now / 1000);
    this.#accessSerial += 1;
    const jti = `${grant.id}.${this.#accessSerial}.${now + accessTokenLifetime * 1000}`;
    const usual = { sub: grant.userId, domain: user?.domain, iat, exp: iat + accessTokenLifetime };
    const payload = Buffer.from(JSON.stringify({ ...usual, ...user?.claims, jti })).toString('base64url');
    return `${header}.${payload}.${secrets.sign(`${header}.${payload}`)}`;
  }

  #refreshToken(grantId: number, serial: number): string {
    return `${grantId}.${serial}.${this.#setting.secrets.sign(`refresh:${grantId}.${serial}`)}`;
  }
}
