import { ConfigurationError, TokenResponseError } from '../errors.js';

/** The base address of an API, in its parts. */
export interface ApiBase {
  /** With the API path (`/api/v2`), without a trailing slash. */
  readonly url: string;
  readonly origin: string;
  /** Path of `url`: that of the base address and the API path. */
  readonly prefix: string;
}

/** Maximum number of organizations whose address is cached. */
const MAX_CACHED = 1_000;

/** One DNS label, checked again where a host is made of it: whoever controls it decides who receives the token. */
const DOMAIN_LABEL = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/;

/** The API base addresses of a service: a common one, and one for each enterprise organization if there is a template. */
export class BaseUrls {
  /** Below the base address, without a trailing slash. */
  readonly apiPath: string;
  readonly #base: ApiBase;
  readonly #template: string | undefined;
  readonly #enterprise = new Map<string, ApiBase>();

  /**
   * @param baseUrl Base address of the API
   * @param template Base address of an enterprise organization, with `{domain}` as one whole label of its host
   * @throws ConfigurationError if `baseUrl` is not a URL
   */
  constructor(baseUrl: string, template?: string | undefined, apiPath = '/api/v2') {
    if (!URL.canParse(baseUrl)) throw new ConfigurationError('baseUrl: expected a URL', { option: 'baseUrl' });
    this.apiPath = apiPath;
    this.#base = this.#parse(baseUrl);
    this.#template = template;
  }

  /**
   * Returns the address for an organization: the common one without an organization or without a template.
   *
   * @throws TokenResponseError `ERR_ORGANIZATION_DOMAIN` unless the domain is one lower-case DNS label
   */
  of(domain: string | undefined): ApiBase {
    if (domain === undefined || this.#template === undefined) return this.#base;
    const cached = this.#enterprise.get(domain);
    if (cached !== undefined) return cached;
    const address = this.#template.replace('{domain}', () => domain);
    if (
      !DOMAIN_LABEL.test(domain) ||
      !URL.canParse(address) ||
      !new URL(address).hostname.split('.').includes(domain)
    ) {
      throw new TokenResponseError('The organization domain is not one DNS label', { code: 'ERR_ORGANIZATION_DOMAIN' });
    }
    const base = this.#parse(address);
    if (this.#enterprise.size >= MAX_CACHED) this.#enterprise.clear();
    this.#enterprise.set(domain, base);
    return base;
  }

  #parse(address: string): ApiBase {
    const { origin, pathname } = new URL(address);
    const prefix = `${pathname.replace(/\/+$/, '')}${this.apiPath}`;
    return Object.freeze({ url: `${origin}${prefix}`, origin, prefix });
  }
}
