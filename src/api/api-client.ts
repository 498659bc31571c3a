import type { BaseUrls } from './api-base.js';
import type { ApiCalls, ApiResponse, ApiStream } from './api-calls.js';
import type { RequestOptions } from './call-options.js';
import type { CredentialSource } from './credential.js';
import type { PaginateOptions } from './pagination.js';
import type { Query } from './query.js';

export type { ApiResponse, ApiStream } from './api-calls.js';

/** What a client works with. It is loaded when it is needed, and this class alone with the package. */
export interface ClientContext {
  readonly bases: Pick<BaseUrls, 'of'>;
  readonly calls: ApiCalls;
}

/** Looks into a client; set by the class itself. */
let lookInto: (client: ApiClient) => CredentialSource;

/** The credentials that a client works with: for whoever has made it, and not a part of what the class offers. */
export function sourceOf(client: ApiClient): CredentialSource {
  return lookInto(client);
}

/**
 * Calls the API on behalf of one user, each time with a token that is good then.
 *
 * It holds no token, only the way to one, so that it may be kept and used for as long as the grant lives. All calls
 * reject with `NotAuthorizedError` where there is no grant, with `ApiError` where the API refuses, and with
 * `ServiceUnavailableError` where there is no answer. What is wrong with a call itself is a `TypeError`; nothing is sent then.
 *
 * @see service.md, 4.4
 */
export class ApiClient {
  readonly #source: CredentialSource;
  readonly #context: ClientContext;

  static {
    lookInto = (client) => client.#source;
  }

  /** Not for applications: take the client from `req.apiClient` or `strategy.client(grantId)`. */
  constructor(source: CredentialSource, context: ClientContext) {
    this.#source = source;
    this.#context = context;
  }

  /** Whether there is a grant to act with, as far as is known. An outage of the service does not make it false. */
  get authorized(): boolean {
    return this.#source.authorized;
  }

  /** The grant's id, for `strategy.client(grantId)`; `undefined` where there is no grant. */
  get grantId(): string | undefined {
    return this.#source.grantId;
  }

  /** The enterprise organization that the token names; `undefined` for none. */
  get organizationDomain(): string | undefined {
    return this.#source.organizationDomain;
  }

  /** The API address in use, with `/api/v2`: the enterprise one where the token names an organization and there is a template for it. */
  get baseUrl(): string {
    return this.#context.bases.of(this.#source.organizationDomain).url;
  }

  /** `GET /api/v2/projects`: the parsed body as sent. */
  projects<T = unknown>(query?: Query | URLSearchParams): Promise<T> {
    return this.get<T>('/projects', query === undefined ? undefined : { query });
  }

  /** `GET`: the parsed body. @param path Below `/api/v2`, for example `/projects/7` */
  get<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#context.calls.data<T>(this.#source, 'GET', path, options);
  }

  /** `POST`: the parsed body. Never sent twice once it left. @param path Below `/api/v2` */
  post<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#context.calls.data<T>(this.#source, 'POST', path, options);
  }

  /** `PUT`: the parsed body. @param path Below `/api/v2` */
  put<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#context.calls.data<T>(this.#source, 'PUT', path, options);
  }

  /** `PATCH`: the parsed body. Never sent twice once it left. @param path Below `/api/v2` */
  patch<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#context.calls.data<T>(this.#source, 'PATCH', path, options);
  }

  /** `DELETE`: the parsed body, mostly `undefined`. @param path Below `/api/v2` */
  delete<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#context.calls.data<T>(this.#source, 'DELETE', path, options);
  }

  /**
   * Status, headers and parsed body.
   *
   * @param path Below `/api/v2`, for example `/projects/7`. Values in it should have gone through `encodeURIComponent`.
   * @throws TypeError, ApiError, NotAuthorizedError, ServiceUnavailableError, TokenError, TokenStoreError
   */
  request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    return this.#context.calls.request<T>(this.#source, method, path, options);
  }

  /**
   * Status, headers and the body as a stream, which is received as fast as it is read. Destroying it ends the request.
   *
   * The strategy's `timeout` limits the way to the headers, and then each silence in the body, so that a long download
   * may take its time. The option `timeout` limits the whole, up to the last byte.
   *
   * @throws like {@link request}; an answer that is no success is an `ApiError` here too
   */
  stream(method: string, path: string, options?: RequestOptions): Promise<ApiStream> {
    return this.#context.calls.stream(this.#source, method, path, options);
  }

  /**
   * Iterates over the items of a list, page by page, and holds one page at a time.
   *
   * @throws TypeError for wrong options, at the latest with the first item; the iterator rejects like {@link request}
   */
  paginate<T = unknown>(path: string, options: PaginateOptions<T> = {}): AsyncIterableIterator<T> {
    return this.#context.calls.paginate<T>(this.#source, path, options);
  }

  /**
   * The access token, fresh at each call. For another SDK; do not keep it, ask again.
   *
   * @throws NotAuthorizedError, ServiceUnavailableError, TokenError, TokenStoreError
   */
  async accessToken(): Promise<string> {
    const { accessToken } = await this.#source.credential();
    return accessToken;
  }

  /** What may be logged of it. */
  toJSON(): {
    authorized: boolean;
    grantId: string | undefined;
    organizationDomain: string | undefined;
    baseUrl: string;
  } {
    const { authorized, grantId, organizationDomain, baseUrl } = this;
    return { authorized, grantId, organizationDomain, baseUrl };
  }
}

// Declared beside the class because it is for Node's inspector only, and no part of what the class offers.
Object.defineProperty(ApiClient.prototype, Symbol.for('nodejs.util.inspect.custom'), {
  value(
    this: ApiClient,
    _depth: number,
    options: object,
    inspect: (value: unknown, options: object) => string,
  ): string {
    return `ApiClient ${inspect(this.toJSON(), options)}`;
  },
});
