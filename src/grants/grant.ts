import { randomInt } from 'node:crypto';
import type { TokenSet } from '../oauth/token-response.js';

/** What one authorization gave, as it is now. Immutable: a refresh makes a new one. Holds the tokens; never logged. */
export interface Grant {
  readonly accessToken: string;
  /** `undefined` where the service gave none: the grant ends with its access token. */
  readonly refreshToken: string | undefined;
  /** The one before, if the answer that brought `refreshToken` could not be used otherwise: see `GrantRefresher`. */
  readonly previousRefreshToken?: string | undefined;
  /** When the access token expires, in epoch milliseconds of this machine's clock. */
  readonly expiresAt: number;
  /** How long the access token lives in all, in milliseconds. */
  readonly lifetimeMs: number;
  readonly organizationDomain: string | undefined;
  /** The user, as the token's `sub` claim names them. */
  readonly subject: string | undefined;
  /** How often the grant was refreshed. */
  readonly refreshes: number;
  /** Differs after every write. */
  readonly version: number;
}

/** Versions are random and not counted: two processes that write after the same version never write the same one. */
const VERSIONS = 2 ** 47;

/** The grant of a login. @param now Epoch milliseconds of the answer. */
export function newGrant(tokens: TokenSet, now: number): Grant {
  return {
    ...tokensOf(tokens, now),
    refreshToken: tokens.refreshToken,
    subject: tokens.subject,
    refreshes: 0,
    version: newVersion(),
  };
}

/** The grant after a refresh. What the answer leaves out, stays. @param now Epoch milliseconds of the answer. */
export function refreshedGrant(grant: Grant, tokens: TokenSet, now: number): Grant {
  return {
    ...tokensOf(tokens, now),
    refreshToken: tokens.refreshToken ?? grant.refreshToken,
    subject: tokens.subject ?? grant.subject,
    refreshes: grant.refreshes + 1,
    version: newVersion(),
  };
}

/** Whether a refresh answered for somebody else. A token that names nobody proves nothing. */
export function isOtherSubject(grant: Grant, tokens: TokenSet): boolean {
  return grant.subject !== undefined && tokens.subject !== undefined && grant.subject !== tokens.subject;
}

/** Whether two grants hold the very same tokens. */
export function hasSameTokens(one: Grant, other: Grant): boolean {
  return one.accessToken === other.accessToken && one.refreshToken === other.refreshToken;
}

/** The version of one more write. */
export function newVersion(): number {
  return randomInt(1, VERSIONS);
}

function tokensOf(
  tokens: TokenSet,
  now: number,
): Pick<Grant, 'accessToken' | 'expiresAt' | 'lifetimeMs' | 'organizationDomain'> {
  const { accessToken, lifetimeMs, organizationDomain } = tokens;
  return { accessToken, expiresAt: now + lifetimeMs, lifetimeMs, organizationDomain };
}
