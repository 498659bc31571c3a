import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import { callApi } from '../api/api-call.js';
import type { ApiContext, ClientParts } from '../api/api-context.js';
import { unusableResponse } from '../api/api-error.js';
import type { ApiBase } from '../api/base-urls.js';
import type { Attempt } from '../api/call-decision.js';
import type { FetchInit } from '../api/call-options.js';
import { type CallRequest, type RequestTarget, requestTo } from '../api/call-request.js';
import { type RequestBodyInit, readableOf } from '../api/request-body.js';
import { safeCause } from '../redaction.js';
import { abortable } from '../waiting.js';
import { fetchedResponse, headerPairs, withAddress } from './fetched-response.js';
import { FETCHED, type FetchedResponse } from './streamed-exchange.js';
import { targetOf } from './url-target.js';

/** Set by the HTTP connection. `fetch` drops them as browsers do, because SDKs send them. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'content-length', 'expect', 'te', 'trailer'],
]);

/** Maximum size of the body of a `Request` that is held in memory, so that it can be sent again. */
const MAX_REPLAYABLE_BYTES = 1024 * 1024;

/** Time to read the body of a `Request` ahead. A slower one is sent as it arrives. */
const MAX_READ_AHEAD_MS = 100;

/**
 * Makes a request like the WHATWG `fetch`, with the grant's access token, and returns the last response, whatever its status.
 *
 * @param exposed Base addresses that the client has returned. What is below one of them is sent below the one in use.
 * @throws TypeError for a URL of another origin than the API's and those of `origins`, for `Authorization` and `Host`, for a
 *   wrong `timeout`, and for a redirect if `redirect` is `error`; like any other call if there is no response
 * @see https://fetch.spec.whatwg.org/
 */
export async function fetchFrom(
  parts: ClientParts,
  input: string | URL | Request,
  init: FetchInit = {},
  exposed: ReadonlySet<ApiBase> = new Set(),
): Promise<Response> {
  const { timeout } = init;
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout >= 0)) {
    throw new TypeError('timeout: expected milliseconds of silence, 0 for no limit');
  }
  const silenceMs = timeout === 0 ? Infinity : timeout;
  const request = { ...(await fetchRequest(parts.context, input, init, exposed)), silenceMs };
  const redirect = init.redirect ?? (input instanceof Request ? input.redirect : 'follow');
  const { status, response } = await callApi(
    parts,
    redirect === 'follow' ? request : { ...request, redirect: 'manual' },
    FETCHED,
    (answer, sent, attempt) => ({ status: answer.status, response: fetchedResponseOf(answer, sent, attempt) }),
  );
  if (redirect === 'error' && status >= 300 && status < 400 && status !== 304) {
    await response.body?.cancel();
    throw new TypeError('fetch: the response is a redirect, and the option `redirect` is error');
  }
  return response;
}

async function fetchRequest(
  context: ApiContext,
  input: string | URL | Request,
  init: FetchInit,
  exposed: ReadonlySet<ApiBase>,
): Promise<CallRequest> {
  const isRequest = typeof input === 'object' && !(input instanceof URL);
  const target: RequestTarget = {
    ...targetBelow(exposed, targetOf(isRequest ? input.url : input)),
    isWholeOrigin: true,
  };
  const given = isRequest ? input : undefined;
  const { method = given?.method ?? 'GET', signal = given?.signal } = init;
  const body = init.body ?? (given?.body ? await bodyOfRequest(given, signal ?? undefined) : undefined);
  const givenHeaders = init.headers ?? given?.headers;
  const headers =
    givenHeaders === undefined ? [] : [...new Headers(givenHeaders)].filter(([name]) => !CONNECTION_HEADERS.has(name));
  // The specification of fetch gives text a type, unlike the other calls.
  const isUntyped = typeof body === 'string' && !headers.some(([name]) => name === 'content-type');
  if (isUntyped) headers.push(['content-type', 'text/plain;charset=UTF-8']);
  if (headers.length === 0 && body === undefined && !signal)
    return requestTo(target, method, undefined, context.headers.fetched);
  const options = { headers, body: body as RequestBodyInit | undefined, signal: signal ?? undefined };
  return requestTo(target, method, options, context.headers.fetched);
}

/** Returns the body of a Request: its bytes if they are few and at hand, which can be sent again, otherwise a stream. */
async function bodyOfRequest(request: Request, signal: AbortSignal | undefined): Promise<Uint8Array | Readable> {
  if (request.bodyUsed || request.body === null) throw new TypeError('body: the body of the Request was read already');
  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let pending = reader.read();
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), MAX_READ_AHEAD_MS);
  const limit = signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]);
  try {
    for (let length = 0; length <= MAX_REPLAYABLE_BYTES; ) {
      const { done, value } = await abortable(pending, limit);
      if (done) return Buffer.concat(chunks);
      chunks.push(value);
      length += value.length;
      pending = reader.read();
    }
  } catch (error) {
    if (!limit.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
  // Its error is reported when it is sent.
  pending.catch(() => {});
  return readableOf(reader, [...chunks.map((value) => Promise.resolve({ done: false, value })), pending]);
}

/** Returns the target of a URL. If it is below a base address that the client has returned, it is below the one in use. */
function targetBelow(exposed: ReadonlySet<ApiBase>, target: RequestTarget): RequestTarget {
  const { origin, path, query } = target;
  for (const { origin: exposedOrigin, prefix } of exposed) {
    if (origin === exposedOrigin && path.startsWith(`${prefix}/`)) return { path: path.slice(prefix.length), query };
  }
  return target;
}

/** These responses have no body (RFC 9110), and `Response` refuses one. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

function fetchedResponseOf(
  { status, headers, body }: FetchedResponse,
  { method, path }: CallRequest,
  { request, isRedirected: redirected }: Attempt,
): Response {
  const url = `${request.origin}${request.path}`;
  const hasBody = method !== 'HEAD' && !BODILESS.has(status);
  try {
    if (hasBody && !(body instanceof Readable))
      return fetchedResponse({ status, headers, bytes: body, url, redirected });
    const content = hasBody ? webStreamOf(body as Readable) : null;
    const statusText = STATUS_CODES[status] ?? '';
    const response = new Response(content, { status, statusText, headers: headerPairs(headers) });
    return withAddress(response, { url, redirected });
  } catch (error) {
    const reason = 'its status or headers do not fit into a Response.';
    throw unusableResponse(reason, { data: undefined, headers, method, path, cause: safeCause(error) });
  } finally {
    if (!hasBody && body instanceof Readable) body.destroy();
  }
}

/**
 * Returns a web stream that reads the body only as fast as it is read, so that it can be garbage collected without a reader.
 * Cancelling it destroys the body.
 *
 * `Readable.toWeb` of Node 20 throws an uncaught exception if its stream is cancelled while a chunk arrives.
 */
function webStreamOf(body: Readable): ReadableStream<Uint8Array> {
  // Errors reach the reader through the iterator. Without a listener, one before the first read would end the process.
  body.on('error', () => {});
  const chunks: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await chunks.next();
        if (done) controller.close();
        // A copy: chunks may share memory, which a reader that transfers one would take along.
        else controller.enqueue(new Uint8Array(value));
      },
      cancel() {
        body.destroy();
      },
    },
    { highWaterMark: 0 },
  );
}
