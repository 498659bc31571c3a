import { STATUS_CODES } from 'node:http';
import { Readable } from 'node:stream';
import type { HttpHeaders, HttpResponse, HttpStream } from '../http/message.js';
import { FetchedExchange } from '../http/streamed-exchange.js';
import { safeCause } from '../redaction.js';
import { ApiCall } from './api-call.js';
import type { ApiContext, CredentialSource } from './api-context.js';
import { unusableResponse } from './api-error.js';
import { type CallRequest, requestTo } from './call-options.js';
import type { RequestBodyInit } from './request-body.js';
import { type RequestTarget, targetOf } from './request-target.js';
import type { ResponseMode } from './response.js';
import type { Attempt } from './retry-policy.js';

/** The `fetch` of an API client. Its bodies may also be those of a call: Node streams and async iterables. */
export type ApiFetch = (input: string | URL | Request, init?: FetchInit) => Promise<Response>;

/** Options of {@link ApiFetch}: those of the WHATWG `fetch`. */
export type FetchInit = RequestInit | (Omit<RequestInit, 'body'> & { body?: RequestBodyInit | null | undefined });

type FetchedResponse = HttpResponse | HttpStream;

/** Responses of any status, with a complete body if it arrived with the headers. */
const FETCHED: ResponseMode<FetchedResponse> = Object.freeze({
  isBuffered: false,
  exchange: FetchedExchange,
  discard: ({ body }: FetchedResponse) => {
    if (body instanceof Readable) body.destroy();
  },
});

/** Set by the HTTP connection. `fetch` drops them, as browsers do, because SDKs send them. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Maximum size of the body of a `Request` that is held in memory, so that it can be sent again. */
const MAX_REPLAYABLE_BYTES = 1024 * 1024;

/**
 * Makes a request as the WHATWG `fetch` does, with the access token of the grant, and returns the response whatever its
 * status, once no other try follows.
 *
 * @throws TypeError for a URL of another origin than the API's, for `Authorization` and `Host`, and for a redirect if
 *   `redirect` is `error`
 * @throws like any other call if there is no response
 * @see https://fetch.spec.whatwg.org/
 */
export async function fetchFrom(
  source: CredentialSource,
  context: ApiContext,
  input: string | URL | Request,
  init: FetchInit = {},
): Promise<Response> {
  const request = await fetchRequest(context, input, init);
  const redirect = init.redirect ?? (input instanceof Request ? input.redirect : 'follow');
  const { status, response } = await new ApiCall(
    source,
    context,
    redirect === 'follow' ? request : { ...request, redirect: 'manual' },
    FETCHED,
  ).run((answer, sent, attempt) => ({ status: answer.status, response: responseOf(answer, sent, attempt) }));
  if (redirect === 'error' && status >= 300 && status < 400 && status !== 304) {
    await response.body?.cancel();
    throw new TypeError('fetch: the response is a redirect, and the option `redirect` is error');
  }
  return response;
}

async function fetchRequest(context: ApiContext, input: string | URL | Request, init: FetchInit): Promise<CallRequest> {
  const isRequest = typeof input === 'object' && !(input instanceof URL);
  const target: RequestTarget = { ...targetOf(isRequest ? input.url : input), isWholeOrigin: true };
  const given = isRequest ? input : undefined;
  const { method = given?.method ?? 'GET', signal = given?.signal } = init;
  const body = init.body ?? (given?.body ? await bodyOf(given) : undefined);
  const givenHeaders = init.headers ?? given?.headers;
  const headers =
    givenHeaders === undefined ? [] : [...new Headers(givenHeaders)].filter(([name]) => !CONNECTION_HEADERS.has(name));
  // A text has a type by the specification of fetch, unlike in the other calls.
  const isUntyped = typeof body === 'string' && !headers.some(([name]) => name === 'content-type');
  if (isUntyped) headers.push(['content-type', 'text/plain;charset=UTF-8']);
  if (headers.length === 0 && body === undefined && !signal)
    return requestTo(target, method, undefined, context.headers.fetched);
  const options = { headers, body: body as RequestBodyInit | undefined, signal: signal ?? undefined };
  return requestTo(target, method, options, context.headers.fetched);
}

/** Returns the body of a Request: its bytes if they are few, so that it can be sent again, otherwise a stream. */
async function bodyOf(request: Request): Promise<Uint8Array | AsyncIterable<Uint8Array>> {
  if (request.bodyUsed || request.body === null) throw new TypeError('body: the body of the Request was read already');
  const iterator = request.body[Symbol.asyncIterator]();
  const chunks: Uint8Array[] = [];
  for (let length = 0; length <= MAX_REPLAYABLE_BYTES; ) {
    const { done, value } = await iterator.next();
    if (done) return Buffer.concat(chunks);
    chunks.push(value);
    length += value.length;
  }
  return (async function* () {
    yield* chunks;
    yield* { [Symbol.asyncIterator]: () => iterator };
  })();
}

/** RFC 9110: responses with these statuses have no body, and `Response` refuses one. */
const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

function responseOf(
  { status, headers, body }: FetchedResponse,
  { method, path }: CallRequest,
  { base, path: sentPath }: Attempt<FetchedResponse>,
): Response {
  const url = `${base.origin}${sentPath}`;
  const hasBody = method !== 'HEAD' && !BODILESS.has(status);
  try {
    if (hasBody && !(body instanceof Readable)) return fetchedResponse({ status, headers, bytes: body, url });
    const content = hasBody ? webStreamOf(body as Readable) : null;
    const response = new Response(content, {
      status,
      statusText: STATUS_CODES[status] ?? '',
      headers: headerPairs(headers),
    });
    // The constructor has no parameter for it.
    return Object.defineProperty(response, 'url', { value: url });
  } catch (error) {
    const reason = 'its status or headers do not fit into a Response.';
    throw unusableResponse(reason, { data: undefined, headers, method, path, cause: safeCause(error) });
  } finally {
    if (!hasBody && body instanceof Readable) body.destroy();
  }
}

/**
 * Returns a web stream that reads the body as fast as it is read itself, and destroys the body when it is cancelled.
 *
 * `Readable.toWeb` of Node 20 throws an uncaught exception if its stream is cancelled while a chunk arrives.
 */
function webStreamOf(body: Readable): ReadableStream<Uint8Array> {
  // An error reaches the reader through the iterator. Without a listener it would end the process before the first read.
  body.on('error', () => {});
  const chunks: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      // A copy: the chunk may share its memory with others, which a reader that transfers it would take along.
      else controller.enqueue(new Uint8Array(value));
    },
    cancel() {
      body.destroy();
    },
  });
}

/** A response whose body is complete. */
interface FetchedBody {
  readonly status: number;
  readonly headers: HttpHeaders;
  readonly bytes: Buffer;
  readonly url: string;
}

type FetchedResponseClass = new (fetched: FetchedBody) => Response;

let Class: FetchedResponseClass | undefined;

/**
 * Creates a `Response` over a body that is complete. Its text, JSON and bytes are read without a stream, which is most of
 * the cost of a small response; whatever else is asked for comes from an ordinary `Response`, created then.
 */
function fetchedResponse(fetched: FetchedBody): Response {
  // Defined on first use: Node loads its fetch when the global Response is touched.
  Class ??= defineClass();
  return new Class(fetched);
}

function defineClass(): FetchedResponseClass {
  // Its types declare the accessors as properties, which a class cannot override.
  const Base: new (body: null, init: ResponseInit) => object = Response;
  return class FetchedResponse extends Base implements Response {
    declare readonly ok: boolean;
    declare readonly redirected: boolean;
    declare readonly status: number;
    declare readonly statusText: string;
    declare readonly type: Response['type'];
    readonly #fetched: FetchedBody;
    #headers: Headers | undefined;
    #isRead = false;
    /** Owns the body once its stream was asked for. */
    #streamed: Response | undefined;

    constructor(fetched: FetchedBody) {
      const { status } = fetched;
      super(null, { status, statusText: STATUS_CODES[status] ?? '' });
      this.#fetched = fetched;
    }

    get url(): string {
      return this.#fetched.url;
    }

    get headers(): Headers {
      this.#headers ??= new Headers(headerPairs(this.#fetched.headers));
      return this.#headers;
    }

    get body(): Response['body'] {
      return this.#asStreamed().body;
    }

    get bodyUsed(): boolean {
      return this.#streamed === undefined ? this.#isRead : this.#streamed.bodyUsed;
    }

    async text(): Promise<string> {
      if (this.#streamed !== undefined) return this.#streamed.text();
      const text = this.#read().toString('utf8');
      return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
    }

    async json(): Promise<unknown> {
      return JSON.parse(await this.text());
    }

    async arrayBuffer(): Promise<ArrayBuffer> {
      if (this.#streamed !== undefined) return this.#streamed.arrayBuffer();
      return new Uint8Array(this.#read()).buffer;
    }

    async bytes(): Promise<Uint8Array> {
      return new Uint8Array(await this.arrayBuffer());
    }

    async blob(): Promise<Blob> {
      const type = this.headers.get('content-type') ?? '';
      return new Blob([await this.arrayBuffer()], { type });
    }

    formData(): ReturnType<Response['formData']> {
      return this.#asStreamed().formData();
    }

    clone(): Response {
      if (this.bodyUsed) throw new TypeError('Response.clone: Body has already been consumed.');
      return this.#streamed === undefined ? new FetchedResponse(this.#fetched) : this.#streamed.clone();
    }

    #read(): Buffer {
      if (this.#isRead) throw new TypeError('Body is unusable: Body has already been read');
      this.#isRead = true;
      return this.#fetched.bytes;
    }

    #asStreamed(): Response {
      if (this.#streamed === undefined) {
        const { status, bytes } = this.#fetched;
        this.#streamed = new Response(new Uint8Array(bytes), { status, headers: this.headers });
        // A body that was read stays read.
        if (this.#isRead) void this.#streamed.arrayBuffer();
      }
      return this.#streamed;
    }
  };
}

/** Returns headers in the form that `Headers` takes. */
function headerPairs(headers: HttpHeaders): [string, string][] {
  return Object.entries(headers).flatMap(([name, value = []]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
}
