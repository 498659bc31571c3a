import { ConfigurationError, TokenResponseError } from '../errors.js';

/** An API base address, taken apart. */
export interface ApiBase {
  /** With `/api/v2`, without a slash at the end. */
  readonly url: string;
  readonly origin: string;
  /** Path up to and with `/api/v2`. */
  readonly prefix: string;
}

const VERSION_PATH = '/api/v2';

/** Organizations whose address is remembered. */
const MAX_REMEMBERED = 1_000;

/** One DNS label, checked again where a host is made of it: whoever controls it decides who gets the token. */
const DOMAIN_LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/;

/**
 * The API addresses of a service: one for all, and one for each enterprise organization where there is a template.
 *
 * @see service.md, 4.4 and 5.5
 */
export class BaseUrls {
  readonly #base: ApiBase;
  readonly #template: string | undefined;
  readonly #enterprise = new Map<string, ApiBase>();

  /**
   * @param baseUrl `{base_url}` of the service
   * @param template `{enterprise_base_url}`, with `{domain}` as one whole label of its host
   * @throws ConfigurationError for what is no URL
   */
  constructor(baseUrl: string, template?: string | undefined) {
    if (!URL.canParse(baseUrl)) throw new ConfigurationError('baseUrl: expected a URL', { option: 'baseUrl' });
    this.#base = parse(baseUrl);
    this.#template = template;
  }

  /** The address for an organization; the one for all where there is no organization or no template. */
  of(domain: string | undefined): ApiBase {
    if (domain === undefined || this.#template === undefined) return this.#base;
    const known = this.#enterprise.get(domain);
    if (known !== undefined) return known;
    const base = enterpriseBase(this.#template, domain);
    if (this.#enterprise.size >= MAX_REMEMBERED) this.#enterprise.clear();
    this.#enterprise.set(domain, base);
    return base;
  }
}

/**
 * The address for one organization.
 *
 * @throws TokenResponseError `ERR_ORGANIZATION_DOMAIN` where the domain is not one lower-case DNS label
 */
export function enterpriseBase(template: string, domain: string): ApiBase {
  const expanded = template.replace('{domain}', () => domain);
  const isSound =
    DOMAIN_LABEL.test(domain) && URL.canParse(expanded) && new URL(expanded).hostname.split('.').includes(domain);
  if (isSound) return parse(expanded);
  throw new TokenResponseError('The organization domain is not one DNS label', { code: 'ERR_ORGANIZATION_DOMAIN' });
}

function parse(address: string): ApiBase {
  const { origin, pathname } = new URL(address);
  const prefix = `${pathname.replace(/\/+$/, '')}${VERSION_PATH}`;
  return Object.freeze({ url: `${origin}${prefix}`, origin, prefix });
}
