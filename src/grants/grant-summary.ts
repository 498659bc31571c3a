import { type EndedGrant, type Grant, type GrantFacts, isUnusable } from './grant.js';

/** What an application may know of a grant: never a token. Records of earlier versions lack what was not kept then. */
export interface GrantSummary extends GrantFacts {
  /** The id that `req.apiClient.grantId` and the option `grantId` have. */
  readonly grantId: string;
  /** True if the service ended the grant, or no token of it is valid: the user must log in again. */
  readonly ended: boolean;
}

/** Returns what an application may know of a grant. @param now Epoch milliseconds. */
export function summaryOf(grantId: string, grant: Grant | EndedGrant, now: number): GrantSummary {
  const { subject, organizationDomain, scope, createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt } = grant;
  const dates = { createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt };
  return { grantId, subject, organizationDomain, scope, ...dates, ended: isUnusable(grant, now) };
}
