import { type Optional, readOptions, withDefault, withMethods } from '../checks.js';
import type { EndedGrant, Grant, GrantFacts } from '../grants/grant.js';
import type { GrantManager } from '../refresh/grant-manager.js';

/** What an application may know of a grant: never a token. Records of earlier versions lack what was not kept then. */
export interface GrantSummary extends GrantFacts {
  /** The id that `req.apiClient.grantId` and the option `grantId` have. */
  readonly grantId: string;
  /** True if the service has ended the grant, or no token of it is valid: the user has to log in again. */
  readonly ended: boolean;
}

/** Reads an AbortSignal. */
export const abortSignal: Optional<AbortSignal | undefined> = withDefault(
  undefined,
  withMethods('an AbortSignal', ['throwIfAborted', 'addEventListener']),
);

/** Reads the options of `strategy.grants`. @throws ConfigurationError that names the wrong one */
export function readListOptions(options: unknown): { readonly signal: AbortSignal | undefined } {
  return readOptions('grants', options, { signal: abortSignal });
}

/** The grants of a strategy, as they are stored. */
export type Grants = Pick<GrantManager, 'peek' | 'all' | 'clock' | 'canReissue'>;

/** Returns what is known of a grant, an ended one included; `undefined` if there is none. @throws TokenStoreError */
export async function summaryOf(grants: Grants, grantId: string): Promise<GrantSummary | undefined> {
  const grant = await grants.peek(grantId);
  return grant && summarize(grants, grantId, grant);
}

/** Yields what is known of each grant. @throws like {@link GrantManager.all} */
export async function* summariesOf(grants: Grants, signal?: AbortSignal): AsyncGenerator<GrantSummary, void> {
  for await (const [grantId, grant] of grants.all(signal)) yield summarize(grants, grantId, grant);
}

function summarize({ clock, canReissue }: Grants, grantId: string, grant: Grant | EndedGrant): GrantSummary {
  const { subject, organizationDomain, scope, createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt } = grant;
  const dates = { createdAt, refreshedAt, expiresAt, refreshTokenExpiresAt };
  return { grantId, subject, organizationDomain, scope, ...dates, ended: hasEnded(grant, clock(), canReissue) };
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
