import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { ApiCall } from '../api/api-call.js';
import { ApiClient, contextOf, sourceOf } from '../api/api-client.js';
import type { ApiContext } from '../api/api-context.js';
import { FETCHED, type FetchedResponse } from '../api/api-fetch.js';
import { CallLimit } from '../api/call-limits.js';
import { methodOf, requestTo } from '../api/call-options.js';
import { apiPath } from '../api/request-target.js';
import { readOptions } from '../checks.js';
import { ConfigurationError, ForwardError, ofStrategy } from '../errors.js';
import { clientProperty, type Handler } from '../middleware/api-client.js';
import { isOfOwnPage, pathOf, refuseFramework } from '../session/incoming-request.js';
import { runtimeOf, type Strategy } from '../strategy.js';
import { abortable } from '../waiting.js';
import { AllowList } from './allow-list.js';

/** Options of {@link forward}. */
export interface ForwardOptions {
  /**
   * The requests that are passed on, as a method or `*`, a space, and a path below the API path: `GET /projects`. In the
   * path `*` stands for one segment; `/**` at its end for the path before it and everything below.
   */
  readonly allow: readonly string[];
  /** The request's property that holds the client, as told to `apiClient`. Default `'apiClient'`. */
  readonly property?: string | undefined;
}

/** Sent to the API. None of them says who the browser is, or how its connection is kept. */
const SENT = /^(?:accept|accept-language|content-type|range|if-[a-z-]+)$/;

/** Sent to the browser: what describes the representation (RFC 9110, 8), and when and where to go on. */
const RETURNED: ReadonlySet<string> = new Set([
  ...['content-type', 'content-length', 'content-encoding', 'content-language', 'content-range', 'content-disposition'],
  ...['accept-ranges', 'etag', 'last-modified', 'retry-after', 'link'],
]);

/** RFC 9110, 9.2.1. */
const SAFE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A body of this length is received before it is sent on, so that it can be sent again with a newer token. */
const MAX_REPLAYABLE_BYTES = 64 * 1024;

/**
 * Creates middleware that passes requests of a page on to the API, with the access token of the user, and streams both
 * bodies. Mount it below a path, after `requireAuthorization()` and before any body parser: a request goes to the same path
 * below `apiPath`.
 *
 * It passes on what `allow` names, and from pages of this origin alone if the method is unsafe. Anything else is a
 * `ForwardError` (404 or 403), and nothing is sent. Neither cookies nor headers of the connection pass in any direction. A
 * browser that goes away aborts the call. Errors go to `next`.
 *
 * @throws ConfigurationError that names the wrong or unknown option
 * @example
 * ```ts
 * app.use('/api', requireAuthorization(), forward(strategy, { allow: ['GET /projects', '* /projects/*\/files/**'] }));
 * ```
 */
export function forward(strategy: Strategy, options: ForwardOptions): Handler {
  const { api, settings } = runtimeOf(strategy);
  const { allow, property } = readOptions('forward(strategy, options)', options, {
    allow: AllowList.read,
    property: clientProperty,
  });
  return function forwardRequest(req, res, next) {
    if (refuseFramework(req, res, next, settings.name)) return;
    const gone = new AbortController();
    const abort = () => gone.abort();
    res.once('close', abort);
    forwardCall(req, res, gone.signal)
      .catch((error: unknown) => {
        // Nobody waits for an answer any more.
        if (!gone.signal.aborted) next(ofStrategy(error, settings.name));
      })
      .finally(() => {
        // Every response is closed at last, and the error of an abort takes longer than the rest of it.
        res.off('close', abort);
        limitRest(req, api);
      });
  };

  async function forwardCall(req: IncomingMessage, res: ServerResponse, signal: AbortSignal): Promise<void> {
    const client: unknown = Reflect.get(req, property);
    if (!(client instanceof ApiClient) || contextOf(client) !== api) {
      const message = `The request has no req.${property} of the strategy "${settings.name}": mount apiClient(strategy) before forward(strategy).`;
      throw new ConfigurationError(message, { code: 'ERR_NO_API_CLIENT' });
    }
    const target = targetOf(req);
    if (target === undefined || !allow.names(target.method, target.path))
      throw new ForwardError(NOT_ALLOWED, { code: 'ERR_NOT_ALLOWED', status: 404 });
    if (!SAFE.has(target.method) && !isOfOwnPage(req))
      throw new ForwardError(FOREIGN_PAGE, { code: 'ERR_FOREIGN_PAGE', status: 403 });
    const hasBody = target.method !== 'GET' && target.method !== 'HEAD';
    const body = hasBody ? await bodyOf(req, api) : undefined;
    const options = { headers: sentHeaders(req, body), body, signal };
    const request = requestTo(target, target.method, options, api.headers.streamed);
    const call = new ApiCall(sourceOf(client), api, { ...request, redirect: 'manual' }, FETCHED);
    await answer(res, await call.run((response) => response));
  }
}

const NOT_ALLOWED = 'The option `allow` of forward(strategy, options) does not name this request.';

const FOREIGN_PAGE =
  'Expected a request of a page of this origin: browsers send Sec-Fetch-Site: same-origin with it. One that sends no such header needs X-Requested-With.';

const SLOW_BODY = 'The body of the request did not arrive in time.';

/** Returns method, path and query of the API request; `undefined` for a method or path that no API call has. */
function targetOf(req: IncomingMessage): { method: string; path: string; query: string } | undefined {
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

/** Returns the body of a request: its bytes if they are few, else a stream. Destroying that leaves the connection to the browser open. */
async function bodyOf(req: IncomingMessage, api: ApiContext): Promise<Buffer | Readable | undefined> {
  const length = Number(req.headers['content-length'] ?? Infinity);
  if (length === 0 || (length === Infinity && req.headers['transfer-encoding'] === undefined)) return undefined;
  if (req.readableDidRead) {
    const message = 'The body of the request was read already: mount forward(strategy) before body parsers.';
    throw new ConfigurationError(message, { code: 'ERR_MIDDLEWARE_ORDER' });
  }
  if (length > MAX_REPLAYABLE_BYTES) {
    // The API may answer before it has everything. Browsers read an answer once they have sent all, so the rest is read too.
    return req.pipe(new PassThrough()).once('close', () => req.resume());
  }
  const limit = new CallLimit(api.deadlines, api.timeoutMs, undefined);
  try {
    return await abortable(buffered(req.iterator({ destroyOnReturn: false })), limit.signal);
  } catch (error) {
    throw limit.expired ? new ForwardError(SLOW_BODY, { code: 'ERR_REQUEST_TIMEOUT', status: 408 }) : error;
  } finally {
    limit.end();
  }
}

async function buffered(chunks: AsyncIterable<Buffer>): Promise<Buffer> {
  const all: Buffer[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return Buffer.concat(all);
}

/** Passes a response on. Resolves when it is sent. */
async function answer(res: ServerResponse, { status, headers, body }: FetchedResponse): Promise<void> {
  if (res.headersSent) {
    // By a time-out of the application.
    if (body instanceof Readable) body.destroy();
    return;
  }
  res.statusCode = status;
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && RETURNED.has(name)) res.setHeader(name, value);
  }
  res.setHeader('Cache-Control', privately(headers['cache-control']));
  for (const vary of [headers.vary ?? [], 'Cookie'].flat()) res.appendHeader('Vary', vary);
  // The content is of users, and a document of this origin could use the session.
  res.setHeader('X-Content-Type-Options', 'nosniff');
  res.setHeader('Content-Security-Policy', "default-src 'none'; sandbox");
  if (!(body instanceof Readable)) return void res.end(body);
  await new Promise<void>((resolve, reject) => {
    pipeline(body, res, (error) => (error ? reject(error) : resolve()));
  });
}

/** Returns a `Cache-Control` for the cache of one user's browser alone: without a word of the API, it asks again each time. */
function privately(given: string | readonly string[] = 'no-cache'): string {
  const directives = String(given).match(/[\w-]+(?:="[^"]*"|=[^\s,;"]*)?/g) ?? [];
  const kept = directives.filter((each) => !/^(?:public|private|s-maxage|proxy-revalidate)\b/i.test(each));
  return ['private', ...kept].join(', ');
}

/** Bounds the time for the rest of an upload that nobody takes any more: it is read to its end, minutes long. */
function limitRest(req: IncomingMessage, { deadlines, timeoutMs }: ApiContext): void {
  if (req.complete) return;
  const limit = new CallLimit(deadlines, timeoutMs, undefined);
  limit.signal.addEventListener('abort', () => req.destroy());
  for (const event of ['end', 'close']) req.once(event, () => limit.end());
}
