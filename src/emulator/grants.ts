import type { Approval } from './codes.js';
import type { Clients, EmulatorUser, Users } from './directory.js';
import type { Profile, RefreshTokenReuse } from './profiles.js';
import type { Clock, Secrets } from './sources.js';

/** Body of a successful response of the token endpoint. @see service.md section 2, Token response */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: 'bearer';
  readonly expires_in?: number;
  readonly refresh_token?: string;
  readonly refresh_token_expires_in?: number;
  /** The granted scopes, if they are fewer than those asked for. */
  readonly scope?: string;
}

/** User and scopes of a valid access token, or the reason why it is refused. */
export type Bearer =
  | { readonly user: EmulatorUser; readonly scopes: readonly string[]; readonly grantId: number }
  | { readonly refusal: string };

/** Dependencies of `Grants`. */
export interface GrantsSetting {
  readonly secrets: Secrets;
  readonly clock: Clock;
  readonly users: Users;
  /** Seconds. */
  readonly accessTokenLifetime: number;
  /** Seconds; `undefined`: refresh tokens do not expire. */
  readonly refreshTokenLifetime: number | undefined;
  readonly refreshTokenReuse: RefreshTokenReuse;
  readonly profile: Pick<Profile, 'rotation' | 'accessToken' | 'expiresIn' | 'endsFormerAccessToken' | 'singleGrant'>;
  /** Fields that the service adds to its token responses, given the origin that serves the application. */
  readonly tokenFields: ((user: EmulatorUser, origin: string) => Readonly<Record<string, unknown>>) | undefined;
  /** Returns the origin that serves an application. */
  readonly originOf: (clientID: string) => string;
}

/** A live grant. */
export interface GrantSummary {
  readonly id: number;
  readonly clientID: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Expiry of the latest access token in epoch milliseconds; 0 after `expireAccessTokens`. */
  readonly expiresAt: number;
}

/** A grant as it is kept. */
export interface Grant {
  readonly id: number;
  readonly clientID: string;
  readonly userId: string;
  readonly scopes: readonly string[];
  /** Serial number and expiry (epoch milliseconds) of the latest access token. */
  access: { readonly serial: number; readonly expiresAt: number };
  /** Serial number of the valid refresh token. */
  current: number;
  /** Serial number of an older refresh token, while that one still works. */
  previous: number | undefined;
  /** When the refresh tokens expire, in epoch milliseconds; `undefined` if they do not. */
  refreshExpiresAt?: number | undefined;
  /** The account of an application that acts as itself (RFC 6749, 4.4). */
  readonly account?: EmulatorUser | undefined;
  /** True if its access token does not expire. */
  readonly isPermanent?: boolean;
}

// Beyond this, the least recently refreshed grant is dropped, to bound the memory of a long test.
const maxGrants = 100_000;

const header = Buffer.from(JSON.stringify({ alg: 'HS256', typ: 'JWT' })).toString('base64url');

/**
 * The grants of all users, and the tokens that belong to them.
 *
 * Tokens are signed and carry their grant and serial number, so a grant takes the same memory however often it is refreshed.
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

  /**
   * Starts a grant and returns its id and first tokens.
   *
   * @param expires - False for an access token that lives as long as its grant and has no refresh token.
   */
  start(
    { clientID, userId, scopes, isReduced }: Approval,
    expires = true,
  ): { readonly id: number; readonly response: TokenResponse } {
    if (this.#setting.profile.singleGrant)
      for (const former of [...this.#grants.values()]) if (former.clientID === clientID) this.#grants.delete(former.id);
    const grant = this.#create({ clientID, userId, scopes, ...(expires ? {} : { isPermanent: true }) });
    const response = this.#issue(grant, expires ? this.#refreshToken(grant.id, grant.current) : undefined);
    return { id: grant.id, response: isReduced ? { ...response, scope: scopes.join(' ') } : response };
  }

  /**
   * Starts a grant of an application, and returns its token: there is no refresh token (RFC 6749, 4.4.3).
   *
   * @param grant - `account`: the application's own, if it acts for no user.
   */
  startForApplication(grant: Pick<Grant, 'clientID' | 'userId' | 'scopes' | 'account'>): TokenResponse {
    return this.#issue(this.#create(grant), undefined);
  }

  #create(given: Pick<Grant, 'clientID' | 'userId' | 'scopes' | 'account' | 'isPermanent'>): Grant {
    this.#grantSerial += 1;
    const oldest = this.#grants.keys().next().value;
    if (this.#grants.size >= maxGrants && oldest !== undefined) this.#grants.delete(oldest);
    const access = { serial: 0, expiresAt: 0 };
    const serials = {
      current: this.#nextRefreshSerial(),
      previous: undefined,
      refreshExpiresAt: this.#refreshExpiry(),
    };
    return { ...given, id: this.#grantSerial, access, ...serials };
  }

  /**
   * Consumes a refresh token and returns the next pair, or the reason why it is refused.
   *
   * @see service.md section 4.3: "A new one is returned by each refresh response"
   */
  refresh(token: string, clientID: string): TokenResponse | { readonly refusal: string } {
    const [, serial] = token.split('.');
    const grant = this.#grantOfRefreshToken(token);
    if (grant === undefined || grant.clientID !== clientID) {
      return { refusal: 'The refresh token is unknown here, was revoked, or belongs to another application.' };
    }
    const { refreshTokenReuse, profile, clock } = this.#setting;
    if (grant.refreshExpiresAt !== undefined && grant.refreshExpiresAt <= clock.now())
      return { refusal: 'The refresh token has expired.' };
    if (Number(serial) === grant.current || Number(serial) === grant.previous) {
      if (profile.rotation === 'omit') return this.#issue(grant, undefined);
      if (profile.rotation === 'rotate') {
        const kept: Partial<Record<RefreshTokenReuse, number>> = {
          grace: grant.current,
          'until-used': Number(serial),
          'until-refreshed': Number(serial),
        };
        grant.previous = kept[refreshTokenReuse];
        grant.current = this.#nextRefreshSerial();
        grant.refreshExpiresAt = this.#refreshExpiry();
      }
      return this.#issue(grant, this.#refreshToken(grant.id, grant.current));
    }
    if (refreshTokenReuse !== 'revoke') return { refusal: 'The refresh token was used already.' };
    this.#grants.delete(grant.id);
    return { refusal: 'The refresh token was used already, so the whole grant was revoked.' };
  }

  /**
   * Returns the user and the scopes of an access token, or the reason why it is refused.
   *
   * Under `until-used`, the use of the newest access token ends the older refresh token.
   */
  bearer(token: string, clients: Clients): Bearer {
    const { secrets, clock, users } = this.#setting;
    // An opaque token is a signed token in base64url, so that no client can mistake it for a JWT.
    const signed = token.includes('.') ? token : Buffer.from(token, 'base64url').toString('latin1');
    const signatureAt = signed.lastIndexOf('.');
    if (signatureAt < 0 || secrets.sign(signed.slice(0, signatureAt)) !== signed.slice(signatureAt + 1)) {
      return { refusal: 'The access token is unknown here.' };
    }
    const payload = Buffer.from(signed.slice(header.length + 1, signatureAt), 'base64url').toString();
    const { jti }: { readonly jti: string } = JSON.parse(payload);
    const [grantId = 0, serial = 0, expiresAt = 0] = jti.split('.').map(Number);
    if (expiresAt <= clock.now() || serial <= this.#accessTokensExpiredUpTo) {
      return { refusal: 'The access token has expired.' };
    }
    const grant = this.#grants.get(grantId);
    const user = grant && (grant.account ?? users.byId.get(grant.userId));
    if (grant === undefined || user === undefined) return { refusal: 'The access token was revoked.' };
    if (clients.get(grant.clientID) === undefined) return { refusal: 'The access token belongs to another tenant.' };
    if (this.#setting.profile.endsFormerAccessToken && serial !== grant.access.serial)
      return { refusal: 'The access token was replaced by a refresh.' };
    if (this.#setting.refreshTokenReuse === 'until-used' && serial === grant.access.serial) grant.previous = undefined;
    return { user, scopes: grant.scopes, grantId };
  }

  /**
   * Ends the grant of a valid refresh token or access token of this client. A token that is not valid changes nothing.
   *
   * @see RFC 7009, 2.1 and 2.2
   */
  revoke(token: string, clientID: string, clients: Clients): void {
    const refreshed = this.#grantOfRefreshToken(token);
    const isCurrent = refreshed !== undefined && Number(token.split('.')[1]) === refreshed.current;
    const bearer = refreshed === undefined ? this.bearer(token, clients) : undefined;
    const grant = isCurrent ? refreshed : bearer && 'user' in bearer ? this.#grants.get(bearer.grantId) : undefined;
    if (grant?.clientID === clientID) this.#grants.delete(grant.id);
  }

  #grantOfRefreshToken(token: string): Grant | undefined {
    const [id, serial, signature] = token.split('.');
    const isGenuine = signature !== undefined && this.#refreshToken(Number(id), Number(serial)) === token;
    return isGenuine ? this.#grants.get(Number(id)) : undefined;
  }

  /** Expires all access tokens issued so far, whatever their `exp`. */
  expireAccessTokens(): void {
    this.#accessTokensExpiredUpTo = this.#accessSerial;
  }

  /** Ends a grant, with its access and refresh tokens. */
  end(id: number): void {
    this.#grants.delete(id);
  }

  /** Ends the grants of an installed application that act for a user, and have no refresh token, and those of its code. */
  endOf(clientID: string, userId: string): void {
    for (const grant of [...this.#grants.values()])
      if (grant.clientID === clientID && grant.userId === userId) this.#grants.delete(grant.id);
  }

  /** Ends all grants, or those of one user. Returns their number. */
  endAll(userId?: string): number {
    const ended = [...this.#grants.values()].filter((grant) => userId === undefined || grant.userId === userId);
    for (const { id } of ended) this.#grants.delete(id);
    return ended.length;
  }

  /** Returns all grants and counters, to be restored in another process. */
  snapshot(): { readonly grants: readonly Grant[]; readonly serials: readonly number[] } {
    const serials = [this.#grantSerial, this.#refreshSerial, this.#accessSerial, this.#accessTokensExpiredUpTo];
    return { grants: [...this.#grants.values()], serials };
  }

  restore({ grants, serials }: ReturnType<Grants['snapshot']>): void {
    for (const grant of grants) this.#grants.set(grant.id, grant);
    [this.#grantSerial = 0, this.#refreshSerial = 0, this.#accessSerial = 0, this.#accessTokensExpiredUpTo = 0] =
      serials;
  }

  /** Returns the number of live grants of each user who has one. */
  countByUser(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { userId } of this.#grants.values()) counts.set(userId, (counts.get(userId) ?? 0) + 1);
    return counts;
  }

  /** Returns the grants that were refreshed last, the latest first. */
  newest(count: number): readonly GrantSummary[] {
    const newest = [...this.#grants.values()].slice(-count).reverse();
    return newest.map(({ id, clientID, userId, scopes, access }) => {
      const expiresAt = access.serial <= this.#accessTokensExpiredUpTo ? 0 : access.expiresAt;
      return { id, clientID, userId, scopes, expiresAt };
    });
  }

  #nextRefreshSerial(): number {
    this.#refreshSerial += 1;
    return this.#refreshSerial;
  }

  #refreshExpiry(): number | undefined {
    const { refreshTokenLifetime, clock } = this.#setting;
    return refreshTokenLifetime === undefined ? undefined : clock.now() + refreshTokenLifetime * 1000;
  }

  #issue(grant: Grant, refreshToken: string | undefined): TokenResponse {
    const { accessTokenLifetime, profile, tokenFields, originOf, users, clock } = this.#setting;
    const user = users.byId.get(grant.userId);
    // Deleted first, so that the map stays in the order of the last refresh.
    this.#grants.delete(grant.id);
    this.#grants.set(grant.id, grant);
    return {
      access_token: this.#accessToken(grant),
      token_type: 'bearer',
      ...(profile.expiresIn && !grant.isPermanent ? { expires_in: accessTokenLifetime } : {}),
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
      ...(refreshToken === undefined || grant.refreshExpiresAt === undefined
        ? {}
        : { refresh_token_expires_in: Math.ceil((grant.refreshExpiresAt - clock.now()) / 1000) }),
      ...(user && tokenFields?.(user, originOf(grant.clientID))),
      ...user?.tokenFields,
    };
  }

  // A JWT, signed with HS256 (service.md section 2: "It is structured as a JWT"). Its `jti` holds all that `bearer` needs: grant, serial
  // number (two tokens of one second differ), and expiry in milliseconds (`exp` has whole seconds, and a user's claims may override it).
  #accessToken(grant: Grant): string {
    const { secrets, clock, users, accessTokenLifetime, profile } = this.#setting;
    const now = clock.now();
    const user = users.byId.get(grant.userId);
    const iat = Math.floor(now / 1000);
    this.#accessSerial += 1;
    const lifetimeMs = grant.isPermanent ? Number.MAX_SAFE_INTEGER - now : accessTokenLifetime * 1000;
    grant.access = { serial: this.#accessSerial, expiresAt: now + lifetimeMs };
    const jti = `${grant.id}.${this.#accessSerial}.${grant.access.expiresAt}`;
    const usual = { sub: grant.userId, domain: user?.domain, iat, exp: iat + accessTokenLifetime };
    const claims = profile.accessToken === 'jwt' ? { ...usual, ...user?.claims, jti } : { jti };
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url');
    const token = `${header}.${payload}.${secrets.sign(`${header}.${payload}`)}`;
    return profile.accessToken === 'jwt' ? token : Buffer.from(token).toString('base64url');
  }

  #refreshToken(grantId: number, serial: number): string {
    return `${grantId}.${serial}.${this.#setting.secrets.sign(`refresh:${grantId}.${serial}`)}`;
  }
}
