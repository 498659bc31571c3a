import * as check from '../checks.js';
import { NotAuthorizedError } from '../errors.js';

/** Placeholder in the template of the enterprise address. */
const DOMAIN = '{domain}';

/** A DNS label that replaces the placeholder while the template is checked. */
const SAMPLE_LABEL = 'organization-domain';

/**
 * Checks a base address of the service and returns it without a trailing slash.
 *
 * @param option Name of the option, for the message.
 * @throws ConfigurationError unless it is an https URL, or an http URL of a loopback host, without credentials, query or fragment.
 */
export function serviceAddress(option: string, value: unknown): string {
  const { href } = secureUrl(option, value);
  // An empty query is in `href` alone, and would swallow the paths that are appended.
  if (href.includes('?')) throw check.optionError(option, 'expected a URL without credentials, query or fragment');
  return href.replace(/\/+$/, '');
}

/** Parses an https URL, or an http URL of a loopback host, without credentials and fragment. @throws ConfigurationError */
function secureUrl(option: string, value: unknown): URL {
  const url = parseAddress(option, value);
  if (!check.isSecureUrl(url)) {
    throw check.optionError(
      option,
      `expected an https URL (http is for loopback hosts only), got ${url.protocol}//${url.host}`,
    );
  }
  if (url.username || url.password || url.href.includes('#')) {
    throw check.optionError(option, 'expected a URL without credentials, query or fragment');
  }
  return url;
}

/**
 * Checks the template of the base address of an enterprise organization and returns it without a trailing slash.
 *
 * @throws ConfigurationError unless `{domain}` occurs in it once, as one whole label of the host, below another label.
 */
export function enterpriseAddress(option: string, value: unknown): string {
  if (typeof value !== 'string' || value.split(DOMAIN).length !== 2) {
    throw check.optionError(
      option,
      `expected a URL template that contains ${DOMAIN} once, as in https://${DOMAIN}.api.example.com`,
    );
  }
  const address = serviceAddress(option, value.replace(DOMAIN, SAMPLE_LABEL));
  const labels = new URL(address).hostname.split('.');
  // As the last label it would let a token choose the top-level domain, and so the host of someone else.
  if (labels.at(-1) === SAMPLE_LABEL || labels.filter((label) => label === SAMPLE_LABEL).length !== 1) {
    throw check.optionError(
      option,
      `expected ${DOMAIN} to be one whole label of the host and not its last one, as in https://${DOMAIN}.api.example.com`,
    );
  }
  return address.replace(SAMPLE_LABEL, DOMAIN);
}

/**
 * Checks further origins that may get the access token, and returns them as `URL.origin` has them. One may have `{domain}`
 * as {@link enterpriseAddress} takes it.
 *
 * @throws ConfigurationError unless it is a list of https origins, or http ones of loopback hosts, without a path
 */
export function furtherOrigins(option: string, value: unknown): readonly string[] {
  if (!Array.isArray(value))
    throw check.optionError(option, `expected a list of origins, such as ['https://${DOMAIN}.mcp.example.com']`);
  return value.map((entry: unknown) => {
    const isTemplate = typeof entry === 'string' && /[{}]/.test(entry);
    const address = isTemplate ? enterpriseAddress(option, entry) : serviceAddress(option, entry);
    if (new URL(address.replace(DOMAIN, SAMPLE_LABEL)).pathname === '/') return address;
    throw check.optionError(option, 'expected origins without a path');
  });
}

/**
 * Checks the address of an endpoint: a path below the address of the authorization server, or a whole URL. A trailing
 * slash and a query are kept.
 *
 * @throws ConfigurationError unless it is one of them, without a fragment
 * @see RFC 6749, 3.1 and 3.2
 */
export function endpointAddress(option: string, value: unknown): string {
  if (typeof value === 'string' && /^https?:/i.test(value)) return secureUrl(option, value).href.replace(/\?$/, '');
  const [, path, slash, query] =
    /^(.*?)(\/?)(\?[\w.~!$&'()*+,;=:@%/?-]+)?$/.exec(typeof value === 'string' ? value : '') ?? [];
  const expected = 'expected a path such as /oauth/token (a trailing slash and a query are kept), or a whole URL';
  if (path === undefined || (path === '' && slash === '')) throw check.optionError(option, expected);
  return `${path === '' ? '' : pathBelow(option, path, expected)}${slash}${query ?? ''}`;
}

/** Checks the address of the authorization endpoint. @throws ConfigurationError also if its query has a parameter of the package's own */
export function authorizationAddress(option: string, value: unknown): string {
  const address = endpointAddress(option, value);
  check.authorizationParams(option, Object.fromEntries(new URL(address, 'https://relative.invalid').searchParams));
  return address;
}

/** Returns the URL of an endpoint. @param address As {@link endpointAddress} returns it */
export function endpointUrl(authUrl: string, address: string): URL {
  return new URL(address.startsWith('/') ? `${authUrl}${address}` : address);
}

/** Returns true if tokens may be sent to an origin. @param issuedBy The origins that issued them; `undefined` if that is not kept. */
export function isIssuer(issuedBy: string | undefined, origin: string): boolean {
  return issuedBy === undefined || issuedBy.split(' ').includes(origin);
}

/** Returns the error of a grant that another authorization server has issued than that of its tenant now. */
export function tenantChanged(): NotAuthorizedError {
  return new NotAuthorizedError(
    'The authorization server of this tenant is not the one that issued the grant, so the refresh token was not sent. The grant is kept. Log in again, or correct what resolve returns.',
    { code: 'ERR_TENANT_CHANGED' },
  );
}

/**
 * Checks an issuer identifier, and returns it as it is: it is compared character by character.
 *
 * @throws ConfigurationError unless it is a URL without query and fragment
 * @see RFC 9207, 2; RFC 8414, 2
 */
export function issuerIdentifier(option: string, value: unknown): string {
  serviceAddress(option, value);
  return String(value);
}

/** Checks the path of the API below its base address; `''` for none. @throws ConfigurationError */
export function apiPathBelow(option: string, value: unknown): string {
  return value === '' ? '' : pathBelow(option, value, "expected a path such as /api/v2, or ''");
}

function pathBelow(option: string, value: unknown, expected: string): string {
  // Escapes, but not of dots and slashes: the path means the same to whoever decodes it.
  const isPath = typeof value === 'string' && /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%(?!2[ef]|5c)[\da-f]{2})+)+$/i.test(value);
  if (isPath && !value.split('/').some((segment) => /^\.\.?$/.test(segment))) return value;
  throw check.optionError(option, expected);
}

function parseAddress(option: string, value: unknown): URL {
  if (typeof value !== 'string' || !URL.canParse(value)) {
    const got = typeof value === 'string' ? 'a string that is not a URL' : typeof value;
    throw check.optionError(option, `expected an absolute URL, got ${got}`);
  }
  const url = new URL(value);
  // URL accepts more as a host than a name or an address; Node's older parser, in passport-oauth2, throws there.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(url.hostname)) {
    throw check.optionError(option, 'expected a host of letters, digits, hyphens and dots, or an IP address');
  }
  return url;
}
