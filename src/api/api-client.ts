import type { Readable } from 'node:stream';
import { apiEventsWanted, publishApi } from '../events.js';
import type { HttpHeaders, HttpResponse } from '../service/http.js';
import { type Answer, type AnswerKind, STREAMED, WHOLE } from './answer-kind.js';
import { ApiCall } from './api-call.js';
import type { ApiContext } from './api-context.js';
import { unusableAnswer } from './api-error.js';
import { type CallRequest, callRequest, type RequestOptions } from './call-request.js';
import type { CredentialSource } from './credential-source.js';
import { type PaginateOptions, paginate } from './pages.js';
import type { Query } from './query.js';
import { parseBody } from './response-body.js';

/** An answer of the API. */
export interface ApiResponse<T = unknown> {
  readonly status: number;
  /** Names in lower case; a header that came more than once is an array. */
  readonly headers: HttpHeaders;
  /** The body: parsed if it is JSON, text (HTML among it) as a string, other types as a `Buffer`, `undefined` where it is empty. */
  readonly data: T;
}

/** An answer of the API whose body is still to come. */
export interface ApiStream {
  readonly status: number;
  /** Names in lower case; a header that came more than once is an array. */
  readonly headers: HttpHeaders;
  /** To be read to its end or destroyed: until then it holds a connection, and a place where `concurrency` is set. */
  readonly body: Readable;
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
  readonly #context: ApiContext;

  /** Not for applications: take the client from `req.apiClient` or `strategy.client(grantId)`. */
  constructor(source: CredentialSource, context: ApiContext) {
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
    return this.#data<T>('GET', path, options);
  }

  /** `POST`: the parsed body. Never sent twice once it left. @param path Below `/api/v2` */
  post<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#data<T>('POST', path, options);
  }

  /** `PUT`: the parsed body. @param path Below `/api/v2` */
  put<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#data<T>('PUT', path, options);
  }

  /** `PATCH`: the parsed body. Never sent twice once it left. @param path Below `/api/v2` */
  patch<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#data<T>('PATCH', path, options);
  }

  /** `DELETE`: the parsed body, mostly `undefined`. @param path Below `/api/v2` */
  delete<T = unknown>(path: string, options?: RequestOptions): Promise<T> {
    return this.#data<T>('DELETE', path, options);
  }

  /**
   * Status, headers and parsed body.
   *
   * @param path Below `/api/v2`, for example `/projects/7`. Values in it should have gone through `encodeURIComponent`.
   * @throws TypeError, ApiError, NotAuthorizedError, ServiceUnavailableError, TokenError, TokenStoreError
   */
  async request<T = unknown>(method: string, path: string, options?: RequestOptions): Promise<ApiResponse<T>> {
    const request = callRequest(method, path, options, false);
    const answer = await this.#perform(request, WHOLE);
    return { status: answer.status, headers: answer.headers, data: dataOf<T>(request, answer) };
  }

  /**
   * Status, headers and the body as a stream, which is received as fast as it is read. Destroying it ends the request.
   *
   * The strategy's `timeout` limits the way to the headers, and then each silence in the body, so that a long download
   * may take its time. The option `timeout` limits the whole, up to the last byte.
   *
   * @throws like {@link request}; an answer that is no success is an `ApiError` here too
   */
  async stream(method: string, path: string, options?: RequestOptions): Promise<ApiStream> {
    return await this.#perform(callRequest(method, path, options, true), STREAMED);
  }

  /**
   * Iterates over the items of a list, page by page, and holds one page at a time.
   *
   * @throws TypeError at once for wrong options; the iterator rejects like {@link request}
   */
  paginate<T = unknown>(path: string, options: PaginateOptions<T> = {}): AsyncIterableIterator<T> {
    return paginate<T>((each) => this.get(path, each), this.#context.deadlines, path, options);
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

  async #data<T>(method: string, path: string, options: RequestOptions | undefined): Promise<T> {
    const request = callRequest(method, path, options, false);
    return dataOf<T>(request, await this.#perform(request, WHOLE));
  }

  #perform<A extends Answer>(request: CallRequest, kind: AnswerKind<A>): Promise<A> {
    const call = new ApiCall(this.#source, this.#context, request, kind);
    return apiEventsWanted() ? this.#observed(call, request) : call.run();
  }

  async #observed<A extends Answer>(call: ApiCall<A>, { method, path }: CallRequest): Promise<A> {
    const start = performance.now();
    let reason: string | undefined;
    try {
      return await call.run();
    } catch (error) {
      reason = reasonOf(error);
      throw error;
    } finally {
      publishApi({
        strategy: this.#context.strategyName,
        grantId: this.#source.grantId,
        method,
        path,
        ...(call.status === undefined ? {} : { status: call.status }),
        ...(reason === undefined ? {} : { reason }),
        attempts: call.attempts,
        durationMs: performance.now() - start,
      });
    }
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

function dataOf<T>(request: CallRequest, { body, headers }: HttpResponse): T {
  const { data, broken } = parseBody(body, headers);
  if (!broken) return data as T;
  const { method, path } = request;
  throw unusableAnswer('the body is not the JSON that its type promises.', { data, headers, method, path });
}

function reasonOf(error: unknown): string {
  const code: unknown = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : 'ERR_ABORTED';
}
