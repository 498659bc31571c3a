import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { callApi } from '../api/api-call.js';
import { ApiClient, partsOf } from '../api/api-client.js';
import type { ApiContext } from '../api/api-context.js';
import { RENEWED_HINT } from '../api/api-error.js';
import { apiPath, methodOf, requestTo } from '../api/call-request.js';
import { ConfigurationError, ForwardError, ServiceUnavailableError } from '../errors.js';
import { FETCHED, FetchedExchange, type FetchedResponse } from '../fetch/streamed-exchange.js';
import { type Expiring, TimeLimit } from '../http/deadlines.js';
import { isSameOrigin, pathOf, Visit } from '../session/visit.js';
import { abortable } from '../waiting.js';
import type { AllowList } from './allow-list.js';
import { MAX_STREAMS, OpenStreams, type StreamPermit } from './open-streams.js';

/** Sent to the API. None of them identifies the browser or controls its connection. */
const SENT = /^(?:accept|accept-language|content-encoding|content-type|range|if-[a-z-]+)$/;

/** Sent to the browser: what describes the representation (RFC 9110, 8), and when and where to continue. */
const RETURNED: ReadonlySet<string> = new Set([
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range', 'content-disposition'],
  ...['accept-ranges', 'etag', 'last-modified', 'retry-after', 'link'],
]);

/** RFC 9110, 9.2.1. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** What a page loads as data or media. A script, style, worker, frame or document would run with the rights of this origin. */
const DESTINATIONS: ReadonlySet<unknown> = new Set(['empty', 'image', 'audio', 'video', 'font', 'track', undefined]);

/** Larger bodies are streamed. Smaller ones are received first, so that they can be sent again with a newer token. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** Passes a body on in its content encoding. */
class UndecodedExchange extends FetchedExchange {
  protected override begin(): void {
    this.encoding = 'identity';
    super.begin();
  }
}

const FORWARDED: typeof FETCHED = { ...FETCHED, exchange: UndecodedExchange };

/** Of each strategy, however often it is mounted. */
const openStreams = new WeakMap<ApiContext, OpenStreams>();

/** Where calls are forwarded to, and which. */
export interface Forwarding {
  readonly api: ApiContext;
  readonly strategyName: string;
  readonly allow: AllowList;
  /** The request property that holds the client. */
  readonly property: string;
}

/** Forwards one request to the API, and sends its response to the browser. @throws ForwardError and what API calls throw */
export async function forwardCall(
  { api, strategyName, allow, property }: Forwarding,
  req: IncomingMessage,
  res: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  let permit: StreamPermit | undefined;
  try {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient) || partsOf(client).context !== api) {
      const message = `The request has no req.${property} of the strategy "${strategyName}": mount apiClient(strategy) before forward(strategy).`;
      throw new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' });
    }
    const target = apiTargetOf(req);
    if (target === undefined || !allow.names(target.method, target.path))
      throw new ForwardError(NOT_ALLOWED, { code: 'ERR_NOT_ALLOWED', status: 404 });
    if (!DESTINATIONS.has(req.headers['sec-fetch-dest']))
      throw new ForwardError(NO_DATA, { code: 'ERR_REQUEST_DESTINATION', status: 403 });
    if (!SAFE.has(target.method) && !isSameOrigin(req.headers, new Visit(req).host))
      throw new ForwardError(FOREIGN_PAGE, { code: 'ERR_FOREIGN_PAGE', status: 403 });
    const streams = openStreams.get(api) ?? new OpenStreams();
    openStreams.set(api, streams);
    permit = streams.permitFor(client.grantId ?? '');
    const hasBody = target.method !== 'GET' && target.method !== 'HEAD';
    const body = hasBody ? await uploadOf(req, api, permit) : undefined;
    const options = { headers: sentHeaders(req, body), body, signal };
    const request = requestTo(target, target.method, options, api.headers.streamed);
    const call = callApi(partsOf(client), { ...request, redirect: 'manual' }, FORWARDED, (received, _, attempt) => {
      // To the page, the API's 401 would mean that the user has to log in.
      if (attempt.isTokenRenewed) throw tokenRenewed();
      return received;
    });
    const response = await call.catch((error: unknown) => {
      throw isStalled(req, body, error) ? slowBody() : error;
    });
    await answer(res, response, permit);
  } finally {
    permit?.release();
    limitRest(req, api);
  }
}

const NOT_ALLOWED = 'The option `allow` of forward(strategy, options) does not name this request.';

const NO_DATA =
  'Expected a request for data or media, such as that of fetch() or an image: forward(strategy) serves no scripts, styles, frames or documents. Save a download with fetch() and a Blob.';

const FOREIGN_PAGE =
  'Expected a request from a page of this origin, for which browsers send Sec-Fetch-Site: same-origin. Where they send no such header, add X-Requested-With.';

function tooManyStreams(): ForwardError {
  const message = `Expected at most ${MAX_STREAMS} streamed uploads and downloads at once for this login: wait until one has finished.`;
  return new ForwardError(message, { code: 'ERR_TOO_MANY_STREAMS', status: 429 });
}

function slowBody(): ForwardError {
  const message = 'Timed out waiting for the request body.';
  return new ForwardError(message, { code: 'ERR_REQUEST_TIMEOUT', status: 408 });
}

function tokenRenewed(): ServiceUnavailableError {
  return new ServiceUnavailableError(RENEWED_HINT, { code: 'ERR_TOKEN_RENEWED', retryAfter: 0 });
}

/** Returns true if an upload has failed because the browser sent no more of it. What the API does not take fills the buffer. */
function isStalled(req: IncomingMessage, body: Uint8Array | Readable | undefined, error: unknown): boolean {
  const isTimeout = error instanceof ServiceUnavailableError && error.code === 'ERR_SERVICE_TIMEOUT';
  return isTimeout && body instanceof Readable && body.readableLength === 0 && !req.complete;
}

/** Returns method, path and query of the API request; `undefined` for a method or path that no API call can have. */
function apiTargetOf(req: IncomingMessage): { method: string; path: string; query: string } | undefined {
  const { url = '' } = req;
  const path = pathOf(url);
  // A request line may hold a whole URL.
  if (!path.startsWith('/')) return undefined;
  try {
    const { search } = new URL(`http://relative.invalid/${url.slice(path.length)}`);
    return { method: methodOf(req.method), path: apiPath(path), query: search };
  } catch {
    return undefined;
  }
}

function sentHeaders({ headers }: IncomingMessage, body: Uint8Array | Readable | undefined): [string, string][] {
  const isSent = (name: string) => SENT.test(name) || (name === 'content-length' && body instanceof Readable);
  return Object.entries(headers).flatMap(([name, value]) => (isSent(name) ? [[name, String(value)]] : []));
}

/** Returns the body of a request: its bytes if they are few, else a stream that can be destroyed without closing the connection. */
async function uploadOf(
  req: IncomingMessage,
  api: ApiContext,
  permit: StreamPermit,
): Promise<Buffer | Readable | undefined> {
  const length = Number(req.headers['content-length'] ?? Infinity);
  if (length === 0 || (length === Infinity && req.headers['transfer-encoding'] === undefined)) return undefined;
  if (req.readableDidRead) {
    const message = 'The request body was read already: mount forward(strategy) before body parsers.';
    throw new ConfigurationError(message, { code: 'ERR_MIDDLEWARE_ORDER' });
  }
  if (length > MAX_BUFFERED_BYTES) {
    if (!permit.take()) throw tooManyStreams();
    // The API may answer early. Browsers read an answer once they have sent all, so the rest is read too.
    return req.pipe(new PassThrough()).once('close', () => req.resume());
  }
  const limit = new TimeLimit(api.deadlines, api.timeoutMs, undefined);
  try {
    return await abortable(buffered(req.iterator({ destroyOnReturn: false })), limit.signal);
  } catch (error) {
    throw limit.expired ? slowBody() : error;
  } finally {
    limit.end();
  }
}

async function buffered(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

/** Sends the API's response to the browser. Resolves once it is sent. @throws ForwardError for a stream too many */
async function answer(
  res: ServerResponse,
  { status, headers, body }: FetchedResponse,
  permit: StreamPermit,
): Promise<void> {
  const stream = body instanceof Readable ? body : undefined;
  // By a timeout middleware of the application.
  if (res.headersSent) return void stream?.destroy();
  if (stream && !(Number(headers['content-length']) <= MAX_BUFFERED_BYTES) && !permit.take()) {
    stream.destroy();
    throw tooManyStreams();
  }
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && RETURNED.has(name)) res.setHeader(name, value);
  }
  res.setHeader('Cache-Control', privately(headers['cache-control']));
  for (const vary of [headers.vary ?? [], 'Cookie'].flat()) res.appendHeader('Vary', vary);
  // Users wrote the content, and a document of this origin could use the session. Other sites must not include it either.
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Content-Security-Policy', "default-src 'none'; sandbox");
  res.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  if (!stream) return void res.end(body);
  // The first byte of a body may be far off, as of an event stream.
  res.flushHeaders();
  await new Promise<void>((resolve, reject) => {
    pipeline(stream, res, (error) => (error ? reject(error) : resolve()));
  });
}

/** Returns a `Cache-Control` for the browser's cache alone. Without one of the API, the browser revalidates each time. */
function privately(given: string | readonly string[] = 'no-cache'): string {
  const directives = String(given).match(/[\w-]+(?:="[^"]*"|=[^\s,;"]*)?/g) ?? [];
  const kept = directives.filter((each) => !/^(?:public|private|s-maxage|proxy-revalidate)\b/i.test(each));
  return ['private', ...kept].join(', ');
}

/** Limits how long the rest of an unused upload is read. */
function limitRest(req: IncomingMessage, { deadlines, timeoutMs }: ApiContext): void {
  if (req.complete || req.destroyed) return;
  const rest: Expiring = { expiresAt: 0, expire: () => req.destroy() };
  deadlines.set(rest, timeoutMs);
  for (const event of ['end', 'close']) req.once(event, () => deadlines.remove(rest));
}
