import type { Readable } from 'node:stream';
import { OAuthAppError } from '../errors.js';
import { apiEventsWanted, publishApi } from '../events.js';
import type { HttpHeaders, HttpResponse } from '../http/message.js';
import { type Answer, type ResponseMode, STREAMED, WHOLE } from './answer-kind.js';
import { ApiCall } from './api-call.js';
import type { CallContext } from './call-context.js';
import { type CallRequest, callRequest, type RequestOptions } from './call-options.js';
import type { CredentialSource } from './credential.js';
import { unusableAnswer } from './error-message.js';
import { type PaginateOptions, paginate } from './pagination.js';
import { parseBody } from './response.js';

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

/** The calls of API clients, each with the credentials of its source. */
export interface ApiCalls {
  /** The parsed body. */
  data<T>(source: CredentialSource, method: string, path: string, options: RequestOptions | undefined): Promise<T>;
  /** Status, headers and parsed body. */
  request<T>(
    source: CredentialSource,
    method: string,
    path: string,
    options: RequestOptions | undefined,
  ): Promise<ApiResponse<T>>;
  /** Status, headers and a body that is still to come. */
  stream(
    source: CredentialSource,
    method: string,
    path: string,
    options: RequestOptions | undefined,
  ): Promise<ApiStream>;
  /** The items of a list, page by page. */
  paginate<T>(source: CredentialSource, path: string, options: PaginateOptions<T>): AsyncIterableIterator<T>;
}

/** The calls over one context. */
export function apiCalls(context: CallContext): ApiCalls {
  const calls: ApiCalls = {
    async data<T>(source: CredentialSource, method: string, path: string, options: RequestOptions | undefined) {
      const request = callRequest(method, path, options, false);
      return dataOf<T>(request, await perform(source, context, request, WHOLE));
    },
    async request<T>(source: CredentialSource, method: string, path: string, options: RequestOptions | undefined) {
      const request = callRequest(method, path, options, false);
      const answer = await perform(source, context, request, WHOLE);
      return { status: answer.status, headers: answer.headers, data: dataOf<T>(request, answer) };
    },
    async stream(source, method, path, options) {
      return await perform(source, context, callRequest(method, path, options, true), STREAMED);
    },
    paginate<T>(source: CredentialSource, path: string, options: PaginateOptions<T>) {
      return paginate<T>((each) => calls.data(source, 'GET', path, each), context.deadlines, path, options);
    },
  };
  return calls;
}

function perform<A extends Answer>(
  source: CredentialSource,
  context: CallContext,
  request: CallRequest,
  kind: ResponseMode<A>,
): Promise<A> {
  const call = new ApiCall(source, context, request, kind);
  return apiEventsWanted() ? observed(call, source, context, request) : call.run();
}

async function observed<A extends Answer>(
  call: ApiCall<A>,
  source: CredentialSource,
  context: CallContext,
  { method, path, signal }: CallRequest,
): Promise<A> {
  const start = performance.now();
  let reason: string | undefined;
  try {
    return await call.run();
  } catch (error) {
    reason = reasonOf(error, signal);
    throw error;
  } finally {
    publishApi({
      strategy: context.strategyName,
      grantId: source.grantId,
      method,
      path,
      ...(call.status === undefined ? {} : { status: call.status }),
      ...(reason === undefined ? {} : { reason }),
      attempts: call.attempts,
      durationMs: performance.now() - start,
    });
  }
}

function dataOf<T>(request: CallRequest, { body, headers }: HttpResponse): T {
  const { data, broken } = parseBody(body, headers);
  if (!broken) return data as T;
  const { method, path } = request;
  throw unusableAnswer('the body is not the JSON that its type promises.', { data, headers, method, path });
}

function reasonOf(error: unknown, signal: AbortSignal | undefined): string {
  if (error instanceof OAuthAppError) return error.code;
  return signal?.aborted ? 'ERR_ABORTED' : 'ERR_UNKNOWN';
}
