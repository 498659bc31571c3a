import type { Agent, Dispatcher } from 'undici';
import type { Deadlines, Expiring } from './deadlines.js';
import { type ContentEncoding, contentEncoding, decode, decodedHeaders } from './decoding.js';
import type { HttpHeaders, HttpRequest, HttpResponse } from './message.js';
import { faultCode, TransportError, type TransportFault, transportError } from './transport-error.js';

/** Headers as undici's parser reports them: names and values in turn. */
export type RawHeaders = readonly (Buffer | string)[];

const NO_BODY = Buffer.alloc(0);

/** Lengths of the names `content-type`, `content-length` and `content-encoding`: comparing lengths is cheaper than names. */
const BODY_HEADER_LENGTHS: ReadonlySet<number> = new Set([12, 14, 16]);

/**
 * One request and its response: the handler that a dispatcher of undici calls.
 *
 * It goes straight to the dispatcher: undici's `request` puts a readable stream in between, which costs a third of the
 * throughput for responses that are read as a whole anyway. The handler interface is that of undici up to 6. undici 7
 * still calls it directly, but wraps a handler of its newer interface in two objects and decodes all headers.
 */
export abstract class Exchange<R> implements Expiring {
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  protected readonly request: HttpRequest;
  protected readonly deadlines: Deadlines;
  /** The final status; 0 until it arrives. */
  protected status = 0;
  protected headers: RawHeaders = [];
  /** Includes the headers that describe the body. */
  protected bodyHeaders: HttpHeaders = {};
  /** `identity` also for an encoding that cannot be decoded. */
  protected encoding: ContentEncoding | 'identity' = 'identity';
  /** The parts of the body, as received. */
  protected readonly chunks: Buffer[] = [];
  protected isSettled = false;
  /** Makes the dispatcher read on after {@link received} returned false. */
  protected resume: (() => void) | undefined;
  protected resolve: (response: R | Promise<R>) => void;
  protected reject: (error: unknown) => void;
  /** Set once there is a connection: from then on, something may have been sent. */
  #abort: ((reason: Error) => void) | undefined;
  #pool: Agent | undefined;
  #receivedBytes = 0;

  constructor(
    request: HttpRequest,
    deadlines: Deadlines,
    resolve: (response: R | Promise<R>) => void,
    reject: (error: unknown) => void,
  ) {
    this.request = request;
    this.deadlines = deadlines;
    this.resolve = resolve;
    this.reject = reject;
  }

  /** Called when there is a connection, before anything is sent. */
  protected connected?(): void;
  /** Called when the final status and headers have arrived. */
  protected begin?(): void;
  /** Called after each addition to {@link chunks}. Returns false to pause until {@link resume} is called. */
  protected received?(chunk: Buffer): boolean;
  /** Called when the body is complete. Resolves the exchange unless {@link begin} has. */
  protected abstract complete(): void;
  /** Called when the exchange fails, before or after the headers. */
  protected failed?(error: unknown): void;

  /** Sends the request. Call it once. @param pool The dispatcher, unless the application provided it */
  start(dispatcher: Dispatcher, pool: Agent | undefined): void {
    const { origin, path, method, headers, body = null, signal, timeoutMs } = this.request;
    if (signal?.aborted) return void this.fail('aborted');
    signal?.addEventListener('abort', this);
    this.#pool = pool;
    this.deadlines.set(this, timeoutMs);
    try {
      // The cast: undici only reads the list, but its types do not say so.
      const options = { origin, path, method, headers: headers as string[], body, headersTimeout: 0, bodyTimeout: 0 };
      dispatcher.dispatch(options, pool === undefined ? withBothInterfaces(this) : this);
    } catch (fault) {
      this.onError(fault);
    }
  }

  /** Ends the exchange when the caller's signal aborts. */
  handleEvent(): void {
    this.fail('aborted');
  }

  expire(_now: number): void {
    this.fail(this.#abort === undefined && this.isPoolFull ? 'pool' : 'timeout');
  }

  /** True if requests wait for a connection to the same origin. */
  protected get isPoolFull(): boolean {
    const stats = this.#pool?.stats[this.request.origin];
    return stats !== undefined && 'queued' in stats && stats.queued > 0 && stats.running > 0;
  }

  /** Called once there is a connection, before anything is sent. */
  onConnect(abort: (reason: Error) => void): void {
    // It failed while it waited for a connection: send nothing.
    if (this.isSettled) abort(new TransportError('aborted', false));
    else {
      this.#abort = abort;
      this.connected?.();
    }
  }

  /** Called for each informational response, and for the final one. */
  onHeaders(status: number, headers: RawHeaders, resume: () => void): boolean {
    if (this.isSettled || status < 200 || this.status !== 0) return true;
    const { maxBytes = Infinity, method } = this.request;
    const bodyHeaders = decodeHeaders(headers, BODY_HEADER_LENGTHS);
    this.status = status;
    this.headers = headers;
    this.bodyHeaders = bodyHeaders;
    this.resume = resume;
    const hasBody = method !== 'HEAD' && status !== 304;
    if (bodyHeaders['content-encoding'] !== undefined) this.encoding = contentEncoding(bodyHeaders);
    if (hasBody && Number(bodyHeaders['content-length']) > maxBytes) this.fail('too-large');
    else this.begin?.();
    return true;
  }

  onData(chunk: Buffer): boolean {
    if (this.isSettled) return true;
    this.#receivedBytes += chunk.length;
    if (this.#receivedBytes > (this.request.maxBytes ?? Infinity)) {
      this.fail('too-large');
      return true;
    }
    this.chunks.push(chunk);
    return this.received?.(chunk) ?? true;
  }

  onComplete(): void {
    if (this.isSettled) return;
    if (this.status === 0) return void this.onError(new Error('The dispatcher ended the request without a response'));
    this.#end();
    this.complete();
  }

  onError(fault: unknown): void {
    if (this.isSettled) return;
    // The Content-Length of a 304 is that of the representation (RFC 9110, 8.6); undici expects a body of that length.
    const isOfLength = faultCode(fault) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
    if (this.status === 304 && isOfLength) return void this.onComplete();
    const { body, origin } = this.request;
    this.#end(uploadFault(body, fault) ?? transportError(fault, this.#abort !== undefined, origin));
  }

  /** Fails the exchange and aborts the request. */
  protected fail(kind: TransportFault): void {
    if (this.isSettled) return;
    const error = new TransportError(kind, this.#abort !== undefined, undefined, this.request.origin);
    this.#end(error);
    this.#abort?.(error);
  }

  #end(error?: unknown): void {
    this.isSettled = true;
    this.deadlines.remove(this);
    this.request.signal?.removeEventListener('abort', this);
    this.request.onEnd?.();
    if (error === undefined) return;
    this.reject(this.withResponse(error));
    this.failed?.(error);
  }

  /** Adds status and headers to the error of a body that is too large or damaged. Returns the error. */
  protected withResponse(error: unknown): unknown {
    const kind = error instanceof TransportError && this.status !== 0 ? error.kind : undefined;
    if (kind !== 'too-large' && kind !== 'encoding') return error;
    const headers = decodeHeaders(this.headers);
    const response: HttpResponse = { status: this.status, headers, body: NO_BODY, bodyFault: kind };
    return Object.defineProperty(error, 'response', { value: response });
  }
}

/** Adds the handler interface of undici 7 and later: the application's dispatcher may come from any copy of undici. */
function withBothInterfaces<R>(exchange: Exchange<R>): Dispatcher.DispatchHandler {
  return Object.assign(exchange, {
    onRequestStart(controller) {
      exchange.onConnect((reason) => controller.abort(reason));
    },
    onResponseStart(controller, status, headers) {
      const raw = Object.entries(headers).flatMap(([name, value]) =>
        [value ?? []].flat().flatMap((one) => [name, one]),
      );
      exchange.onHeaders(status, raw, () => controller.resume());
    },
    onResponseData(controller, chunk) {
      if (!exchange.onData(Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk))) controller.pause();
    },
    onResponseEnd() {
      exchange.onComplete();
    },
    onResponseError(_controller, fault) {
      exchange.onError(fault);
    },
  } satisfies Dispatcher.DispatchHandler);
}

/** A class of exchanges: how a response is received. */
export type ExchangeKind<R> = new (
  request: HttpRequest,
  deadlines: Deadlines,
  resolve: (response: R | Promise<R>) => void,
  reject: (error: unknown) => void,
) => Pick<Exchange<R>, 'start'>;

/** Receives the complete response. */
export class BufferedExchange extends Exchange<HttpResponse> {
  protected override complete(): void {
    const { status, headers, bodyHeaders, encoding, chunks } = this;
    const body = chunks.length > 1 ? Buffer.concat(chunks) : (chunks[0] ?? NO_BODY);
    if (encoding === 'identity') return void this.resolve(new BufferedResponse(status, headers, bodyHeaders, body));
    const response = decode(body, encoding, this.request.maxBytes).then(
      (decoded) => ({ status, headers: decodedHeaders(decodeHeaders(headers)), body: decoded }),
      (error: unknown) => Promise.reject(this.withResponse(error)),
    );
    this.resolve(response);
  }
}

/** A complete response whose headers are decoded only when first read: most callers want the data alone. */
class BufferedResponse implements HttpResponse {
  readonly status: number;
  readonly body: Buffer;
  readonly bodyHeaders: HttpHeaders;
  readonly #raw: RawHeaders;
  #headers: HttpHeaders | undefined;

  constructor(status: number, raw: RawHeaders, bodyHeaders: HttpHeaders, body: Buffer) {
    this.status = status;
    this.body = body;
    this.bodyHeaders = bodyHeaders;
    this.#raw = raw;
  }

  get headers(): HttpHeaders {
    this.#headers ??= decodeHeaders(this.#raw);
    return this.#headers;
  }
}

/** Returns the error for a fault of the stream that the caller passed as a body: the stream's error, if it has one. */
function uploadFault(body: HttpRequest['body'], fault: unknown): unknown {
  // undici has destroyed the stream with this error.
  if (faultCode(fault) === 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH')
    return new TypeError('body: expected a stream with as many bytes as the header Content-Length says');
  if (typeof body !== 'object' || body === null || !('errored' in body) || !body.destroyed) return undefined;
  if (body.errored !== null) return body.errored === fault ? fault : undefined;
  if (faultCode(fault) !== 'UND_ERR_ABORTED') return undefined;
  return new DOMException('The body was destroyed before it was sent in full', 'AbortError');
}

/** Returns the headers whose names have one of these lengths. Default: all. */
export function decodeHeaders(raw: RawHeaders, lengths?: ReadonlySet<number>): HttpHeaders {
  const headers: Record<string, string | string[]> = {};
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index];
    if (name === undefined || (lengths !== undefined && !lengths.has(name.length))) continue;
    const content = raw[index + 1] ?? '';
    const key = (typeof name === 'string' ? name : name.toString('latin1')).toLowerCase();
    const value = typeof content === 'string' ? content : content.toString('latin1');
    const before = Object.hasOwn(headers, key) ? headers[key] : undefined;
    if (typeof before === 'object') before.push(value);
    else if (before !== undefined) headers[key] = [before, value];
    else if (key !== '__proto__') headers[key] = value;
    else Object.defineProperty(headers, key, { value, enumerable: true, configurable: true, writable: true });
  }
  return headers;
}
