import { invoke, isDnsLabel, isSecureUrl } from '../checks.js';
import { TokenResponseError } from '../errors.js';
import type { HostPatterns } from './host-patterns.js';

/** The claims of an access token. Their signature is not verified: claims route and name, they never authorize. */
export type Claims = Readonly<Record<string, unknown>>;

/** The fields of a token response as received. */
export type TokenResponseFields = Readonly<Record<string, unknown>>;

/** Reads the organization domain from claims and token response. `undefined`, `null` or `''` means no organization. */
export type OrganizationDomainReader = (claims: Claims, tokenResponse: TokenResponseFields) => unknown;

/** Reads the base address of an organization's API. `undefined`, `null` or `''` means the default one. */
export type EnterpriseUrlReader = OrganizationDomainReader;

const NO_CLAIMS: Claims = Object.freeze({});

/** In characters. Most servers refuse the header that a longer token makes. */
export const MAX_TOKEN_LENGTH: number = 16 * 1024;

/** Maximum nesting of claims. A token with deeper ones counts as opaque. */
const MAX_CLAIM_LEVELS = 64;

/** Lenient: a field in another encoding spoils only that field. */
export const UTF8: InstanceType<typeof TextDecoder> = new TextDecoder('utf-8');

/** Reads the claims of an access token. Returns an empty object if it is not a JWT (RFC 7519, 7.2). */
export function readClaims(accessToken: string): Claims {
  if (accessToken.length > MAX_TOKEN_LENGTH) return NO_CLAIMS;
  // Some services use standard base64, which Buffer accepts too.
  const [, payload] = /^[^.]*\.([\w+/-]+={0,2})\.[^.]*$/.exec(accessToken) ?? [];
  // Buffer ignores a single last character and wrong padding, which base64url does not allow.
  const isBase64url = payload && (payload.endsWith('=') ? payload.length % 4 === 0 : payload.length % 4 !== 1);
  const claims = isBase64url ? parseJsonObject(Buffer.from(payload, 'base64url')) : undefined;
  if (claims === undefined) return NO_CLAIMS;
  // JSON.stringify, which writes sessions, fails at a depth that JSON.parse accepts.
  let level: object[] = [claims];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth === MAX_CLAIM_LEVELS) return NO_CLAIMS;
    const next: object[] = [];
    for (const outer of level)
      for (const inner of Object.values(outer)) if (typeof inner === 'object' && inner !== null) next.push(inner);
    level = next;
  }
  return Object.freeze(claims);
}

/** Parses a JSON object in UTF-8. Returns `undefined` for anything else: the error of JSON.parse would quote secrets. */
export function parseJsonObject(bytes: Uint8Array): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(bytes));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isObject ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the `sub` claim (RFC 7519, 4.1.2), also of services that send a number; `undefined` for none. */
export function subjectOf(claims: Claims): string | undefined {
  const { sub } = claims;
  if (typeof sub === 'number' && Number.isSafeInteger(sub)) return String(sub);
  return typeof sub === 'string' && sub !== '' ? sub : undefined;
}

/**
 * Returns the organization that claims or token response name, as {@link asOrganizationDomain} does, or `undefined` for none.
 *
 * @param read Default: reads the claim `domain`.
 * @throws ConfigurationError if the application's reader throws or is async
 */
export function organizationDomainOf(
  claims: Claims,
  read: OrganizationDomainReader | undefined,
  tokenResponse: TokenResponseFields = {},
): string | undefined {
  const value = read
    ? invoke('organizationDomain', 'a domain or undefined', () => read(claims, tokenResponse))
    : claims.domain;
  return (value ?? '') === '' ? undefined : asOrganizationDomain(value);
}

/**
 * Returns an organization domain, which decides which host receives the access token, in lower case.
 *
 * @throws TokenResponseError (ERR_ORGANIZATION_DOMAIN) for anything but one DNS label
 */
export function asOrganizationDomain(value: unknown): string {
  // ASCII only: toLowerCase() maps the Kelvin sign to "k".
  const label = typeof value === 'string' && /^[\x21-\x7e]{1,63}$/.test(value) ? value.toLowerCase() : '';
  if (isDnsLabel(label)) return label;
  throw new TokenResponseError(
    'The access token names an organization domain that is not a DNS label (letters, digits and inner hyphens, at most 63). ' +
      'Nothing was sent. If another claim holds the domain, set the option organizationDomain.',
    { code: 'ERR_ORGANIZATION_DOMAIN' },
  );
}

/**
 * Returns the base address of the API that claims or token response name, as {@link asEnterpriseUrl} does, or `undefined`
 * for the default one.
 *
 * @throws ConfigurationError if the application's reader throws or is async
 */
export function enterpriseUrlOf(
  claims: Claims,
  tokenResponse: TokenResponseFields,
  read: EnterpriseUrlReader,
  hosts: HostPatterns,
): string | undefined {
  const value = invoke('enterpriseBaseUrl', 'a URL or undefined', () => read(claims, tokenResponse));
  return (value ?? '') === '' ? undefined : asEnterpriseUrl(value, hosts);
}

/**
 * Returns the base address of an organization's API, which receives the access token, without a trailing slash.
 *
 * @throws TokenResponseError (`ERR_ORGANIZATION_DOMAIN`) unless it is an https URL of one of the hosts, or http on loopback
 */
export function asEnterpriseUrl(value: unknown, hosts: HostPatterns | undefined): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (url && isSecureUrl(url) && !/[?#]/.test(url.href) && hosts?.allows(url)) return url.href.replace(/\/+$/, '');
  throw new TokenResponseError(
    'The API address of the organization is not an https URL of one of the hosts in the option enterpriseHosts. Nothing was sent to it.',
    { code: 'ERR_ORGANIZATION_DOMAIN' },
  );
}
