import * as check from '../checks.js';

/** Placeholder in the template of the enterprise address. */
const DOMAIN = '{domain}';

/** A DNS label that replaces the placeholder while the template is checked. */
const SAMPLE_LABEL = 'organization-domain';

const NO_FURTHER_PARTS = 'expected a URL without credentials, query or fragment';

/**
 * Checks a base address of the service and returns it without a trailing slash.
 *
 * @param option Name of the option, for the message.
 * @throws ConfigurationError unless it is an https URL, or an http URL of a loopback host, without credentials, query or fragment.
 */
export function serviceAddress(option: string, value: unknown): string {
  const { href } = secureUrl(option, value);
  // An empty query shows in `href` alone, and would swallow the paths that are appended.
  if (href.includes('?')) throw check.optionError(option, NO_FURTHER_PARTS);
  return href.replace(/\/+$/, '');
}

/** Parses an https URL, or an http URL of a loopback host, without credentials and fragment. @throws ConfigurationError */
function secureUrl(option: string, value: unknown): URL {
  if (typeof value !== 'string' || !URL.canParse(value)) {
    const got = typeof value === 'string' ? 'a string that is not a URL' : typeof value;
    throw check.optionError(option, `expected an absolute URL, got ${got}`);
  }
  const url = new URL(value);
  const { protocol, host, hostname, username, password, href } = url;
  // URL accepts more as a host than a name or an address; Node's older parser, in passport-oauth2, throws there.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])$/.test(hostname))
    throw check.optionError(option, 'expected a host of letters, digits, hyphens and dots, or an IP address');
  if (!check.isSecureUrl(url)) {
    const expected = 'expected an https URL (http is for loopback hosts only)';
    throw check.optionError(option, `${expected}, got ${protocol}//${host}`);
  }
  if (username || password || href.includes('#')) throw check.optionError(option, NO_FURTHER_PARTS);
  return url;
}

/**
 * Checks the template of an organization's base address and returns it without a trailing slash.
 *
 * @throws ConfigurationError unless `{domain}` occurs in it once, as one whole label of the host, below another label.
 */
export function enterpriseAddress(option: string, value: unknown): string {
  const example = `as in https://${DOMAIN}.api.example.com`;
  if (typeof value !== 'string' || value.split(DOMAIN).length !== 2)
    throw check.optionError(option, `expected a URL template that contains ${DOMAIN} once, ${example}`);
  const address = serviceAddress(option, value.replace(DOMAIN, SAMPLE_LABEL));
  const labels = new URL(address).hostname.split('.');
  // As the last label it would let a token choose the top-level domain, and so another company's host.
  if (labels.at(-1) === SAMPLE_LABEL || labels.filter((label) => label === SAMPLE_LABEL).length !== 1) {
    const expected = `expected ${DOMAIN} to be one whole label of the host and not its last one`;
    throw check.optionError(option, `${expected}, ${example}`);
  }
  return address.replace(SAMPLE_LABEL, DOMAIN);
}

/**
 * Checks further origins that may get the access token. Returns them as `URL.origin` does, or with `{domain}` as
 * {@link enterpriseAddress} does.
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
 * Checks the address of an endpoint: a path below that of the authorization server, or a whole URL. Keeps a trailing slash
 * and a query.
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

/** Checks the address of the authorization endpoint. @throws ConfigurationError also for a parameter in its query that the package sets */
export function authorizationAddress(option: string, value: unknown): string {
  const address = endpointAddress(option, value);
  check.authorizationParams(option, Object.fromEntries(new URL(address, 'https://relative.invalid').searchParams));
  return address;
}

/** Returns the URL of an endpoint. @param address As {@link endpointAddress} returns it */
export function endpointUrl(authUrl: string, address: string): URL {
  return new URL(address.startsWith('/') ? `${authUrl}${address}` : address);
}

/** Checks an issuer identifier. Returns it unchanged: it is compared character by character. @see RFC 9207, 2; RFC 8414, 2 */
export function issuerIdentifier(option: string, value: unknown): string {
  serviceAddress(option, value);
  return String(value);
}

/** Checks the path of the API below its base address; `''` for none. @throws ConfigurationError */
export function apiPathBelow(option: string, value: unknown): string {
  return value === '' ? '' : pathBelow(option, value, "expected a path such as /api/v2, or ''");
}

function pathBelow(option: string, value: unknown, expected: string): string {
  // No escaped dots and slashes: the path means the same however often it is decoded.
  const isPath = typeof value === 'string' && /^(?:\/(?:[\w.~!$&'()*+,;=:@-]|%(?!2[ef]|5c)[\da-f]{2})+)+$/i.test(value);
  if (isPath && !value.split('/').some((segment) => /^\.\.?$/.test(segment))) return value;
  throw check.optionError(option, expected);
}
