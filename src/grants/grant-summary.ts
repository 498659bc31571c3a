import type { EndedGrant, Grant, GrantFacts } from './grant.js';

/** What an application may know of a grant: never a token. Records of earlier versions lack what was not kept then. */
export interface GrantSummary extends GrantFacts {
  /** The id that `req.apiClient.grantId` and the option `grantId` have. */
  readonly grantId: string;
  /** True if the service has ended the grant, or no token of it is valid: the user has to log in again. */
  readonly ended: boolean;
}

/** Returns what an application may know of a grant. @param now Epoch milliseconds. @param canReissue See {@link hasEnded}. */
export function summaryOf(grantId: string, grant: Grant | EndedGrant, now: number, canReissue: boolean): GrantSummary {
  const { subject, organizationDomain, scope, createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt } = grant;
  const dates = { createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt };
  return { grantId, subject, organizationDomain, scope, ...dates, ended: hasEnded(grant, now, canReissue) };
}

/**
 * Returns true if the grant can be neither used nor refreshed.
 *
 * @param now Epoch milliseconds.
 * @param canReissue True if a token may be asked for without a refresh token: the grant may be the application's.
 */
export function hasEnded(grant: Grant | EndedGrant, now: number, canReissue = false): boolean {
  if ('ended' in grant) return true;
  if (grant.refreshToken === undefined && canReissue) return false;
  return (grant.refreshToken === undefined ? grant.expiresAt : (grant.refreshTokenExpiresAt ?? Infinity)) <= now;
}
