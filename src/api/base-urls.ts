import { isDnsLabel } from '../checks.js';
import { TokenResponseError } from '../errors.js';
import { type HttpResponse, headerValue } from '../http/message.js';
import { asEnterpriseUrl } from '../oauth/claims.js';
import type { HostPatterns } from '../oauth/host-patterns.js';
import { apiPath, type CallRequest, type RequestTarget } from './call-request.js';

/** The base address of an API, in its parts. */
export interface ApiBase {
  /** With the API path (`/api/v2`), without a trailing slash. */
  readonly url: string;
  readonly origin: string;
  /** Path of `url`: that of the base address and the API path. */
  readonly prefix: string;
}

/** Organizations whose address is cached. */
const MAX_ORGANIZATIONS = 1_000;

/** The organization whose API a request goes to. */
export interface ApiOrganization {
  /** One lower-case DNS label, as the access token names it; `undefined` for none. */
  readonly organizationDomain: string | undefined;
  /** Base address of its API, if a token response has named it. */
  readonly enterpriseUrl?: string | undefined;
}

/** Options of {@link BaseUrls}: those of the strategy, already checked. */
export interface BaseUrlOptions {
  readonly baseUrl: string;
  readonly enterpriseBaseUrl?: string | undefined;
  /** Default: `/api/v2`. */
  readonly apiPath?: string | undefined;
  readonly origins?: readonly string[] | undefined;
  readonly enterpriseHosts?: HostPatterns | undefined;
}

/** Finds the API's base address: a common one, or that of an enterprise organization. */
export class BaseUrls {
  readonly #apiPath: string;
  readonly #common: ApiBase;
  readonly #options: BaseUrlOptions;
  readonly #enterprise = new Map<string, ApiBase>();

  constructor(options: BaseUrlOptions) {
    this.#apiPath = options.apiPath ?? '/api/v2';
    this.#options = options;
    this.#common = this.#parse(options.baseUrl);
  }

  /**
   * Returns the base address of an organization: the common one for none, or if nothing says where its API is.
   *
   * @throws TokenResponseError `ERR_ORGANIZATION_DOMAIN` unless the domain is one lower-case DNS label, and the address that of
   *   an allowed host
   */
  of({ organizationDomain, enterpriseUrl }: ApiOrganization): ApiBase {
    const { enterpriseBaseUrl, enterpriseHosts } = this.#options;
    const key = enterpriseUrl ?? (enterpriseBaseUrl === undefined ? undefined : organizationDomain);
    if (key === undefined) return this.#common;
    const cached = this.#enterprise.get(key);
    if (cached !== undefined) return cached;
    // Checked again: both come from a record of the token store, which may have been edited.
    const isUrl = enterpriseUrl !== undefined;
    const base = this.#parse(isUrl ? asEnterpriseUrl(key, enterpriseHosts) : fillIn(enterpriseBaseUrl ?? '', key));
    if (this.#enterprise.size >= MAX_ORGANIZATIONS) this.#enterprise.clear();
    this.#enterprise.set(key, base);
    return base;
  }

  /**
   * Returns the origin of a request of `fetch`, and its path with the query.
   *
   * @param organization That of the request's credential
   * @throws TypeError for a URL of an origin that may not get the token
   */
  addressOf(
    { path, query, origin }: RequestTarget,
    base: ApiBase,
    organization: ApiOrganization,
  ): { readonly origin: string; readonly path: string } {
    if (origin === undefined) {
      const prefixes = [base.prefix, this.#apiPath].filter((each) => each !== '');
      const prefix = prefixes.find((each) => path === each || path.startsWith(`${each}/`)) ?? '';
      return { origin: base.origin, path: `${base.prefix}${path.slice(prefix.length)}${query}` };
    }
    if (origin === base.origin || this.#mayReceiveToken(origin, organization))
      return { origin, path: `${path}${query}` };
    throw new TypeError(
      `url: it is not on the origin of the API, ${base.origin}, nor on one of the option \`origins\`. A link to another host goes to the global fetch(url), without the token.`,
    );
  }

  /** Returns true for one of `origins`. Of those with `{domain}`, only this organization's counts. */
  #mayReceiveToken(origin: string, { organizationDomain: domain }: ApiOrganization): boolean {
    const { origins = [] } = this.#options;
    return origins.some((template) => {
      if (!template.includes('{domain}')) return template === origin;
      return domain !== undefined && fillIn(template, domain) === origin;
    });
  }

  #parse(address: string): ApiBase {
    const { origin, pathname } = new URL(address);
    const prefix = `${pathname.replace(/\/+$/, '')}${this.#apiPath}`;
    return Object.freeze({ url: `${origin}${prefix}`, origin, prefix });
  }
}

/** Puts the domain of an organization into a template. @throws TokenResponseError unless it is one lower-case DNS label */
function fillIn(template: string, domain: string): string {
  // Checked again where it becomes a host, since it decides who receives the token.
  if (isDnsLabel(domain)) return template.replace('{domain}', domain);
  throw new TokenResponseError('The organization domain is not one DNS label', { code: 'ERR_ORGANIZATION_DOMAIN' });
}

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/**
 * Returns path and query of a redirect that may be followed: of GET or HEAD, to the same origin, and below the API's base path
 * unless the request is one of `fetch`. The access token must not go anywhere else.
 *
 * @see RFC 9110, 15.4
 */
export function redirectTarget(
  { method, redirect, isWholeOrigin }: Pick<CallRequest, 'method' | 'redirect' | 'isWholeOrigin'>,
  response: Pick<HttpResponse, 'status' | 'headers'>,
  base: Pick<ApiBase, 'origin' | 'prefix'>,
  currentPath: string,
): string | undefined {
  const location = headerValue(response.headers, 'location');
  const current = `${base.origin}${currentPath}`;
  if (!REDIRECTS.has(response.status) || (method !== 'GET' && method !== 'HEAD') || redirect !== 'follow')
    return undefined;
  if (location === undefined || !URL.canParse(location, current)) return undefined;
  const { origin, pathname, search, username, password } = new URL(location, current);
  if (origin !== base.origin || username !== '' || password !== '') return undefined;
  if (isWholeOrigin) return `${pathname}${search}`;
  if (!pathname.startsWith(`${base.prefix}/`)) return undefined;
  try {
    apiPath(pathname.slice(base.prefix.length));
    return `${pathname}${search}`;
  } catch {
    return undefined;
  }
}
