import { LOOPBACK_HOST } from '../checks.js';
import { ConfigurationError, TokenResponseError } from '../errors.js';
import { safeCause } from '../redaction.js';
import type { Claims, TokenResponseFields } from './claims.js';
import type { HostPatterns } from './host-patterns.js';

/** Reads the base address of an organization's API from claims and token response. `undefined` means that of all others. */
export type EnterpriseUrlReader = (claims: Claims, tokenResponse: TokenResponseFields) => unknown;

/**
 * Returns the base address of the API that claims or token response name, or `undefined` for that of all others.
 *
 * @throws TokenResponseError (`ERR_ORGANIZATION_DOMAIN`) for an address that may not get the token
 * @throws ConfigurationError if the application's reader throws
 */
export function enterpriseUrlOf(
  claims: Claims,
  tokenResponse: TokenResponseFields,
  read: EnterpriseUrlReader,
  hosts: HostPatterns,
): string | undefined {
  let value: unknown;
  try {
    value = read(claims, tokenResponse);
  } catch (error) {
    throw new ConfigurationError('enterpriseBaseUrl: the function threw instead of returning a URL or undefined', {
      option: 'enterpriseBaseUrl',
      cause: safeCause(error),
    });
  }
  return value === undefined || value === null || value === '' ? undefined : asEnterpriseUrl(value, hosts);
}

/**
 * Returns the base address of an organization's API without a trailing slash. Whoever controls it receives the access token.
 *
 * @throws TokenResponseError (`ERR_ORGANIZATION_DOMAIN`) unless it is an https URL of one of the hosts, or http on loopback
 */
export function asEnterpriseUrl(value: unknown, hosts: HostPatterns | undefined): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  const isSecure = url?.protocol === 'https:' || (url?.protocol === 'http:' && LOOPBACK_HOST.test(url.hostname));
  if (url && isSecure && !/[?#]/.test(url.href) && hosts?.allows(url)) return url.href.replace(/\/+$/, '');
  throw new TokenResponseError(
    'The API address of the organization is not an https URL of one of the hosts in the option enterpriseHosts. Nothing was sent to it.',
    { code: 'ERR_ORGANIZATION_DOMAIN' },
  );
}
