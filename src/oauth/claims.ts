import { ConfigurationError, TokenResponseError } from '../errors.js';
import { safeCause } from '../redaction.js';

/** What an access token says of itself. Nobody checked a signature: claims route and name, they never authorize. */
export type Claims = Readonly<Record<string, unknown>>;

/** Reads the organization domain from the claims. `undefined`, `null` or `''` means no enterprise organization. */
export type OrganizationDomainReader = (claims: Claims) => unknown;

const NO_CLAIMS: Claims = Object.freeze({});

/** Characters; longer tokens are used nowhere. Most servers would refuse the header that carries one. */
export const MAX_TOKEN_LENGTH: number = 16 * 1024;

/** Deeper claims are nobody's: the token counts as one without. */
const MAX_LEVELS = 64;

/** One DNS label (RFC 1123, 2.1), lower-cased already. */
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

/** Reads the claims of an access token; none if it is not a JWT. */
export async function readClaims(accessToken: string): Promise<Claims> {
  if (accessToken.length > MAX_TOKEN_LENGTH) return NO_CLAIMS;
  // Loaded with the first token: no strategy needs it before.
  const { decodeJwt } = await import('jose/jwt/decode');
  try {
    const claims: Claims = { ...decodeJwt(accessToken) };
    return isNestedWithin(MAX_LEVELS, claims) ? Object.freeze(claims) : NO_CLAIMS;
  } catch {
    return NO_CLAIMS;
  }
}

/** Parsing takes any depth, but the recursion of JSON.stringify does not, and sessions are written with that. */
function isNestedWithin(levels: number, value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((inner) => isNestedWithin(levels - 1, inner));
}

/** The `sub` claim, where there is a usable one (RFC 7519, 4.1.2). Numbers count, for services that send them. */
export function subjectOf(claims: Claims): string | undefined {
  const { sub } = claims;
  if (typeof sub === 'number' && Number.isSafeInteger(sub)) return String(sub);
  return typeof sub === 'string' && sub !== '' ? sub : undefined;
}

/**
 * The enterprise organization that the claims name: one lower-case DNS label, or `undefined` for none.
 *
 * It decides which host gets the access token, so whatever is not exactly one label is refused.
 *
 * @throws TokenResponseError (ERR_ORGANIZATION_DOMAIN) for anything else
 * @throws ConfigurationError if the application's reader throws
 */
export function organizationDomainOf(claims: Claims, read: OrganizationDomainReader): string | undefined {
  return asOrganizationDomain(callReader(claims, read));
}

/** Checks one value as {@link organizationDomainOf} does, for records that are read back. */
export function asOrganizationDomain(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  // Lower-casing maps the Kelvin sign to "k": only ASCII is let through to it.
  const label = typeof value === 'string' && /^[\x21-\x7e]{1,63}$/.test(value) ? value.toLowerCase() : '';
  if (DNS_LABEL.test(label) && isHostLabel(label)) return label;
  throw new TokenResponseError(
    'The access token names an organization domain that is no DNS label (letters, digits and inner hyphens, at most 63). ' +
      'Nothing was sent. If the domain stands in another claim, set the option organizationDomain.',
    { code: 'ERR_ORGANIZATION_DOMAIN' },
  );
}

/** Not every `xn--` label stands for a name (RFC 5891, 4.4), and no URL can be made of those that do not. */
function isHostLabel(label: string): boolean {
  return !label.startsWith('xn--') || URL.canParse(`https://${label}.invalid`);
}

function callReader(claims: Claims, read: OrganizationDomainReader): unknown {
  try {
    return read(claims);
  } catch (error) {
    throw new ConfigurationError('organizationDomain: the function threw instead of returning a domain or undefined', {
      option: 'organizationDomain',
      cause: safeCause(error),
    });
  }
}
