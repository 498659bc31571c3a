import * as check from '../checks.js';
import { type OrganizationDomainReader, organizationDomainOf, readClaims, subjectOf } from '../oauth/claims.js';
import type { TokenSet } from '../oauth/token-response.js';

/** Tokens that an application obtained elsewhere: with another library, or from an installation event. */
export interface ImportedTokens {
  /** Without one, the first request refreshes. */
  readonly accessToken?: string | undefined;
  readonly refreshToken: string;
  /** When the access token expires, in epoch milliseconds. Default: its `exp` claim; without that, the first request refreshes. */
  readonly expiresAt?: number | undefined;
}

/** Never sent: its grant has expired, and is refreshed before it is used. */
const NO_ACCESS_TOKEN = 'imported-without-access-token';

/** 2001-09-09 in epoch milliseconds. A smaller number is most likely in seconds. */
const MIN_EXPIRES_AT = 1_000_000_000_000;

const READERS: check.Readers<Required<ImportedTokens>> = {
  accessToken: check.withDefault(undefined, (option, value) => {
    const token = check.text(option, value);
    if (/^[\x21-\x7e]+$/.test(token)) return token;
    throw check.wrong(option, 'expected visible ASCII characters');
  }),
  refreshToken: check.text,
  expiresAt: check.withDefault(
    undefined,
    check.number(MIN_EXPIRES_AT, Number.MAX_SAFE_INTEGER, 'milliseconds since 1970'),
  ),
};

/**
 * Reads tokens that were obtained elsewhere.
 *
 * @param now Epoch milliseconds.
 * @throws ConfigurationError that names the member that is wrong, missing or unknown
 * @throws TokenResponseError if the token names an invalid organization domain
 */
export async function readImportedTokens(
  tokens: unknown,
  now: number,
  readOrganizationDomain: OrganizationDomainReader,
): Promise<TokenSet> {
  const given = check.readOptions('importGrant(grantId, tokens)', check.record('tokens', tokens), READERS);
  const accessToken = given.accessToken ?? NO_ACCESS_TOKEN;
  const claims = await readClaims(accessToken);
  const { exp } = claims;
  const claimedExpiry = typeof exp === 'number' ? exp * 1000 : now;
  const expiresAt = given.accessToken === undefined ? now : (given.expiresAt ?? claimedExpiry);
  return {
    accessToken,
    refreshToken: given.refreshToken,
    lifetimeMs: Math.max(0, expiresAt - now),
    claims,
    subject: subjectOf(claims),
    organizationDomain: organizationDomainOf(claims, readOrganizationDomain),
    params: {},
  };
}
