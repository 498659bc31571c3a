import { NotAuthorizedError, ofStrategy, publicName } from '../errors.js';
import type { HttpResponse } from '../http/message.js';
import { BUFFERED, callApi, dataOf, type Finish, responseOf } from './api-call.js';
import type { ApiContext, ClientParts, CredentialSource } from './api-context.js';
import type { ApiBase, ApiOrganization } from './base-urls.js';
import type {
  ApiFetch,
  ApiResponse,
  ApiStream,
  OptionsWithSchema,
  PaginateOptions,
  Query,
  RequestOptions,
  SchemaOutput,
  StandardSchema,
} from './call-options.js';
import { apiPath, queryString, requestTo } from './call-request.js';

/**
 * Creates an API client. Applications get theirs from `req.apiClient` or `strategy.client(grantId)`. Assigned by the class,
 * whose constructor is private.
 */
export let createApiClient: (source: CredentialSource, context: ApiContext) => ApiClient;

/** Returns the parts of a client, for the package itself. Assigned by the class. */
export let partsOf: (client: ApiClient) => ClientParts;

let apiFetch: typeof import('../fetch/api-fetch.js') | undefined;

const NO_OTHER_TOKEN =
  'The service refuses the access token, and there is no other one for now: the grant cannot be refreshed, or was refreshed moments ago.';

/**
 * Calls the API on behalf of one user, each time with a token that is valid then.
 *
 * It holds no token, so it can be kept and used for as long as the grant lives. All calls reject with
 * `NotAuthorizedError` without a grant, with `ApiError` if the API refuses, and with `ServiceUnavailableError` without a
 * response. Anything wrong with a call itself is a `TypeError`; nothing is sent then.
 */
export class ApiClient {
  readonly #parts: ClientParts;
  #fetch: ApiFetch | undefined;
  /** The access token of the last renewal that a caller of {@link accessToken} asked for. */
  #lastRenewed: string | undefined;
  /** The base addresses that callers have seen: outside a request, the first may be read before the organization is known. */
  #exposed: Set<ApiBase> | undefined;

  /**
   * The WHATWG `fetch` of this grant, for ky, openapi-fetch, graphql-request and generated SDKs. It is bound, so it can be passed
   * on. A relative path is below `baseUrl`, and so is a URL below any `baseUrl` that this client has returned. Any other URL must
   * be on the origin of the API or one of `origins`, or it is a `TypeError`. Never rejects for a status; a redirect to another
   * origin is a response like any other.
   */
  get fetch(): ApiFetch {
    this.#fetch ??= async (input, init) => {
      apiFetch ??= await import('../fetch/api-fetch.js');
      return await apiFetch.fetchFrom(this.#parts, input, init, this.#exposed);
    };
    return this.#fetch;
  }

  static {
    createApiClient = (source, context) => new ApiClient({ source, context });
    partsOf = (client) => client.#parts;
  }

  private constructor(parts: ClientParts) {
    this.#parts = parts;
  }

  /** True if there is a grant, as far as is known. An outage of the service does not change it. */
  get authorized(): boolean {
    return this.#parts.source.authorized;
  }

  /** The grant's id, for `strategy.client(grantId)`; `undefined` without a grant. */
  get grantId(): string | undefined {
    return this.#parts.source.grantId;
  }

  /** The tenant, of a strategy that stands in for many; `undefined` otherwise. */
  get tenant(): string | undefined {
    return publicName(this.#parts.context.strategyName).tenant;
  }

  /**
   * The enterprise organization that the token names; `undefined` for none. Outside a request it is known after the
   * first call: `credentials()` returns it at any time.
   */
  get organizationDomain(): string | undefined {
    return this.#parts.source.last?.organizationDomain;
  }

  /**
   * The API's base address in use: the enterprise one if the token names an organization and there is a template for it.
   * Outside a request the organization is known after the first call: `credentials()` returns the address at any time.
   */
  get baseUrl(): string {
    return this.#expose(this.#parts.source.last ?? { organizationDomain: undefined });
  }

  /**
   * The scopes that the service has granted; empty if they are not known, as of imported tokens. Outside a request they
   * are known after the first call: `credentials()` returns them at any time.
   */
  get scope(): readonly string[] {
    return this.#parts.source.last?.scope ?? [];
  }

  /** Calls `GET /projects` and returns the parsed body as sent. */
  projects<T = unknown>(query?: Query | URLSearchParams): Promise<T>;
  projects(query?: Query | URLSearchParams): Promise<unknown> {
    return this.#call('GET', '/projects', query === undefined ? undefined : { query }, dataOf);
  }

  /** Calls `GET` and returns the parsed body as the schema outputs it. */
  get<S extends StandardSchema>(path: string, options: OptionsWithSchema<S>): Promise<SchemaOutput<S>>;
  /** Calls `GET` and returns the parsed body. @param path Below `baseUrl`, for example `/projects/7` */
  get<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  get(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#call('GET', path, options, dataOf);
  }

  /** Calls `POST` and returns the parsed body as the schema outputs it. */
  post<S extends StandardSchema>(path: string, options: OptionsWithSchema<S>): Promise<SchemaOutput<S>>;
  /** Calls `POST` and returns the parsed body. Repeated only if it was not performed. @param path Below `baseUrl` */
  post<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  post(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#call('POST', path, options, dataOf);
  }

  /** Calls `PUT` and returns the parsed body as the schema outputs it. */
  put<S extends StandardSchema>(path: string, options: OptionsWithSchema<S>): Promise<SchemaOutput<S>>;
  /** Calls `PUT` and returns the parsed body. @param path Below `baseUrl` */
  put<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  put(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#call('PUT', path, options, dataOf);
  }

  /** Calls `PATCH` and returns the parsed body as the schema outputs it. */
  patch<S extends StandardSchema>(path: string, options: OptionsWithSchema<S>): Promise<SchemaOutput<S>>;
  /** Calls `PATCH` and returns the parsed body. Repeated only if it was not performed. @param path Below `baseUrl` */
  patch<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  patch(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#call('PATCH', path, options, dataOf);
  }

  /** Calls `DELETE` and returns the parsed body as the schema outputs it. */
  delete<S extends StandardSchema>(path: string, options: OptionsWithSchema<S>): Promise<SchemaOutput<S>>;
  /** Calls `DELETE` and returns the parsed body, mostly `undefined`. @param path Below `baseUrl` */
  delete<T = unknown>(path: string, options?: RequestOptions): Promise<T>;
  delete(path: string, options?: RequestOptions): Promise<unknown> {
    return this.#call('DELETE', path, options, dataOf);
  }

  /** Returns status, headers and the parsed body as the schema outputs it. */
  request<S extends StandardSchema>(
    method: string,
    path: string,
    options: OptionsWithSchema<S>,
  ): Promise<ApiResponse<SchemaOutput<S>>>;
  /**
   * Returns status, headers and parsed body.
   *
   * @param path Below `baseUrl`, for example `/projects/7`. Pass values in it through `encodeURIComponent`.
   * @throws TypeError, ApiError, NotAuthorizedError, ServiceUnavailableError, TokenError, TokenStoreError
   */
  request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<ApiResponse<T>>;
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse> {
    return this.#call(method, path, options, responseOf);
  }

  /**
   * Returns status, headers and the body as a stream, which is received as fast as it is read. Destroying it ends the
   * request.
   *
   * The strategy's `timeout` limits the time to the headers, and then each silence in the body, so that a long download
   * may take its time. The option `timeout` limits the whole, up to the last byte.
   *
   * @throws like {@link request}; a response that is not a success is an `ApiError` here too
   */
  async stream(method: string, path: string, options?: RequestOptions): Promise<ApiStream> {
    // Before any wait: a stream in `body` may break at any time.
    const target = { path: apiPath(path), query: queryString(options?.query) };
    const request = requestTo(target, method, options, this.#parts.context.headers.streamed);
    const { STREAMED } = await import('../fetch/streamed-exchange.js');
    return await callApi(this.#parts, request, STREAMED, (answer) => answer);
  }

  /**
   * Iterates over the items of a list, page by page, and holds one page at a time.
   *
   * @throws TypeError for wrong options, with the first item; the iterator rejects like {@link request}
   */
  async *paginate<T = unknown>(path: string, options: PaginateOptions<T> = {}): AsyncIterableIterator<T> {
    const { pagesOf } = await import('../pagination/pagination.js');
    for await (const items of pagesOf(this.#parts, path, options)) yield* items;
  }

  /**
   * Returns an access token that is valid now, for another SDK. Do not keep it: ask again.
   *
   * @param options `refused`: the access token that the service has just refused. The result is another one, renewed if the
   *   refused one is still the current one.
   * @throws NotAuthorizedError also if there is no other one; ServiceUnavailableError, TokenError, TokenStoreError
   */
  async accessToken(options: { readonly refused?: string | undefined } = {}): Promise<string> {
    const { refused } = options;
    if (refused !== undefined && typeof refused !== 'string') throw new TypeError('refused: expected an access token');
    const source = this.#parts.source;
    try {
      const current = await source.credential();
      if (current.accessToken !== refused) return current.accessToken;
      // The service rejected a renewed token too, so another would not help for a while.
      if (refused === this.#lastRenewed) source.reportOutcome?.(current, false);
      const { accessToken } = (await source.renew?.(current)) ?? current;
      if (accessToken === refused) throw new NotAuthorizedError(NO_OTHER_TOKEN);
      this.#lastRenewed = accessToken;
      return accessToken;
    } catch (error) {
      throw ofStrategy(error, this.#parts.context.strategyName);
    }
  }

  /**
   * Returns an access token that is valid now, with its base address and scopes. Do not keep them: ask again.
   *
   * @throws like {@link accessToken}
   */
  async credentials(): Promise<{
    accessToken: string;
    baseUrl: string;
    organizationDomain: string | undefined;
    scope: readonly string[];
  }> {
    try {
      const credential = await this.#parts.source.credential();
      const { accessToken, organizationDomain, scope = [] } = credential;
      return { accessToken, baseUrl: this.#expose(credential), organizationDomain, scope };
    } catch (error) {
      throw ofStrategy(error, this.#parts.context.strategyName);
    }
  }

  /** Returns what may be logged. */
  toJSON(): Pick<ApiClient, 'authorized' | 'grantId' | 'organizationDomain' | 'baseUrl'> {
    const { authorized, grantId, organizationDomain, baseUrl } = this;
    return { authorized, grantId, organizationDomain, baseUrl };
  }

  /** Returns the base address of an organization, and remembers it for `fetch`. */
  #expose(organization: ApiOrganization): string {
    const base = this.#parts.context.bases.of(organization);
    this.#exposed ??= new Set();
    this.#exposed.add(base);
    return base.url;
  }

  // Not async: each promise on the way costs a share of the throughput.
  #call<R>(
    method: string,
    path: string,
    options: RequestOptions | undefined,
    finish: Finish<HttpResponse, R>,
  ): Promise<R> {
    try {
      const target = { path: apiPath(path), query: options === undefined ? '' : queryString(options.query) };
      const request = requestTo(target, method, options, this.#parts.context.headers.parsed);
      return callApi(this.#parts, request, BUFFERED, finish);
    } catch (error) {
      return Promise.reject(error);
    }
  }
}

// Not declared in the class: it is for Node's inspector, and no part of the public interface.
Object.defineProperty(ApiClient.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(this: ApiClient, _depth: number, options: object, inspect: (value: unknown, options: object) => string) {
    return `ApiClient ${inspect(this.toJSON(), options)}`;
  },
});
