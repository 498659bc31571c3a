import { readAccessToken, signAccessToken } from './access-token.js';
import type { Clock } from './clock.js';
import type { Approval } from './codes.js';
import type { Secrets } from './secrets.js';
import type { EmulatorUser, Users } from './users.js';

/** What becomes of a refresh token that was used before. */
export type RefreshTokenReuse = 'refuse' | 'revoke' | 'grace';

/** The body of a successful answer of the token endpoint. @see service.md section 2, Token response */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'bearer';
  readonly expires_in: number;
  readonly refresh_token: string;
}

/** On whose behalf an access token speaks, or why it does not. */
export type Bearer = { readonly user: EmulatorUser; readonly scopes: readonly string[] } | { readonly refusal: string };

interface Grant {
  readonly id: number;
  readonly clientID: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Serial of the refresh token that is good now. */
  current: number;
  /** Serial of the one before it, as long as that one has its grace. */
  previous: number | undefined;
}

/** What `Grants` needs to know of the service. */
export interface GrantsSetting {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly users: Users;
  /** Seconds. */
  readonly accessTokenLifetime: number;
  readonly refreshTokenReuse: RefreshTokenReuse;
}

// The grants that were refreshed longest ago go first beyond this, so that a soak of millions of logins stays within its memory.
const maxGrants = 100_000;

/**
 * What users have granted, and the tokens that follow from it.
 *
 * Tokens are signed and carry their grant and serial, so a grant that is refreshed a million times takes no more room than a new one.
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
    this.#dropOldest();
    return { id: grant.id, response: this.#issue(grant) };
  }

  /**
   * Uses a refresh token up and returns the next pair, or says why not.
   *
   * @see service.md section 4.3: "A new one is returned by each refresh response"
   */
  refresh(token: string, clientID: string): TokenResponse | { readonly refusal: string } {
    const [id, serial, signature] = token.split('.');
    const genuine = signature !== undefined && this.#refreshToken(Number(id), Number(serial)) === token;
    const grant = genuine ? this.#grants.get(Number(id)) : undefined;
    if (grant === undefined || grant.clientID !== clientID) {
      return { refusal: 'The refresh token is unknown here, was revoked, or belongs to another application.' };
    }
    const good = Number(serial) === grant.current || Number(serial) === grant.previous;
    return good ? this.#rotate(grant) : this.#reused(grant);
  }

  /** On whose behalf this access token speaks now. */
  bearer(token: string): Bearer {
    const content = readAccessToken(this.#setting.secrets, token);
    if (content === undefined) return { refusal: 'The access token is unknown here.' };
    const expired = content.expiresAt <= this.#setting.clock.now() || content.serial <= this.#accessTokensExpiredUpTo;
    if (expired) return { refusal: 'The access token has expired.' };
    const grant = this.#grants.get(content.grantId);
    const user = grant === undefined ? undefined : this.#setting.users.find(grant.userId);
    if (grant === undefined || user === undefined) return { refusal: 'The access token was revoked.' };
    return { user, scopes: grant.scopes };
  }

  /** Makes every access token that was issued so far count as expired, whatever its `exp` says. */
  expireAccessTokens(): void {
    this.#accessTokensExpiredUpTo = this.#accessSerial;
  }

  /** Ends one grant: its access and refresh tokens are refused from now on. */
  end(id: number): void {
    this.#grants.delete(id);
  }

  /** Ends all grants of this user. */
  endAllOf(userId: string): void {
    for (const grant of this.#grants.values()) {
      if (grant.userId === userId) this.#grants.delete(grant.id);
    }
  }

  #rotate(grant: Grant): TokenResponse {
    grant.previous = this.#setting.refreshTokenReuse === 'grace' ? grant.current : undefined;
    return this.#issue(grant);
  }

  #reused(grant: Grant): { readonly refusal: string } {
    if (this.#setting.refreshTokenReuse !== 'revoke') return { refusal: 'The refresh token was used already.' };
    this.#grants.delete(grant.id);
    return { refusal: 'The refresh token was used already, so the whole grant was revoked.' };
  }

  #issue(grant: Grant): TokenResponse {
    this.#refreshSerial += 1;
    grant.current = this.#refreshSerial;
    this.#grants.delete(grant.id);
    this.#grants.set(grant.id, grant);
    return {
      access_token: this.#accessToken(grant),
      token_type: 'bearer',
      expires_in: this.#setting.accessTokenLifetime,
      refresh_token: this.#refreshToken(grant.id, grant.current),
    };
  }

  #accessToken(grant: Grant): string {
    const { secrets, clock, users, accessTokenLifetime } = this.#setting;
    const now = clock.now();
    const user = users.find(grant.userId);
    const iat = Math.floor(now / 1000);
    this.#accessSerial += 1;
    const content = { grantId: grant.id, serial: this.#accessSerial, expiresAt: now + accessTokenLifetime * 1000 };
    const claims = { sub: grant.userId, domain: user?.domain, iat, exp: iat + accessTokenLifetime, ...user?.claims };
    return signAccessToken(secrets, content, claims);
  }

  #refreshToken(grantId: number, serial: number): string {
    return `${grantId}.${serial}.${this.#setting.secrets.sign(`refresh:${grantId}.${serial}`)}`;
  }

  #dropOldest(): void {
    if (this.#grants.size < maxGrants) return;
    const oldest = this.#grants.keys().next().value;
    if (oldest !== undefined) this.#grants.delete(oldest);
  }
}
