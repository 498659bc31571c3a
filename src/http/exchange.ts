import type { Dispatcher } from 'undici';
import type { Deadlines, Expiring } from './deadlines.js';
import { type ContentEncoding, contentEncoding, decode, decodedHeaders } from './decoding.js';
import {
  allHeaders,
  type Controller,
  ForeignHandler,
  PoolHandler,
  type ReceivedHeaders,
  type Receiver,
} from './dispatch-handler.js';
import type { HttpHeaders, HttpRequest, HttpResponse, HttpStreamRequest } from './message.js';
import { faultCode, TransportError, type TransportFault, transportError } from './transport-error.js';

const NO_BODY = Buffer.alloc(0);

const NO_HEADERS: ReceivedHeaders = Object.freeze({ ofBody: {}, raw: undefined });

/**
 * One request and its response, as undici's dispatchers report on it.
 *
 * It goes straight to the dispatcher: undici's own `request` puts a readable stream between, which costs a third of
 * the throughput for responses that are read as a whole anyway.
 */
export abstract class Exchange<R> implements Receiver, Expiring {
  expiresAt = 0;
  earlier: Expiring | undefined = undefined;
  later: Expiring | undefined = undefined;
  protected controller: Controller | undefined;
  protected readonly request: HttpRequest;
  protected readonly deadlines: Deadlines;
  protected readonly resolve: (response: R | Promise<R>) => void;
  /** The final status; 0 before. */
  protected status = 0;
  protected headers: ReceivedHeaders = NO_HEADERS;
  /** An encoding that cannot be decoded counts as `identity`. */
  protected encoding: ContentEncoding | 'identity' = 'identity';
  readonly #reject: (error: unknown) => void;
  #received = 0;
  #sent = false;
  #over = false;

  constructor(
    request: HttpRequest,
    deadlines: Deadlines,
    resolve: (response: R | Promise<R>) => void,
    reject: (error: unknown) => void,
  ) {
    this.request = request;
    this.deadlines = deadlines;
    this.resolve = resolve;
    this.#reject = reject;
  }

  /** Called when the final status and headers are there. */
  protected begin?(): void;
  /** Called for each part of the body, as received. */
  protected abstract receive(chunk: Buffer): void;
  /** Called when the body is complete. */
  protected abstract complete(): void;
  /** Called, after the promise was rejected, if there will be no response, or no more of it. */
  protected failed?(error: unknown): void;

  /** Sends the request. To be called once. @param isOwnPool False for a dispatcher of the user */
  start(dispatcher: Dispatcher, isOwnPool: boolean): void {
    const { origin, path, method, headers, body = null, signal, timeoutMs } = this.request;
    if (signal?.aborted) {
      this.fail('aborted');
      return;
    }
    signal?.addEventListener('abort', this);
    this.deadlines.add(this, timeoutMs);
    try {
      // The cast: undici only reads the list, but its types do not say so.
      const options = { origin, path, method, headers: headers as string[], body, headersTimeout: 0, bodyTimeout: 0 };
      dispatcher.dispatch(options, isOwnPool ? new PoolHandler(this) : new ForeignHandler(this));
    } catch (fault) {
      this.faulted(fault);
    }
  }

  /** Ends the exchange: the caller's signal was aborted. */
  handleEvent(): void {
    this.fail('aborted');
  }

  expire(): void {
    this.fail('timeout');
  }

  started(controller: Controller): void {
    // It ended while it waited for a connection: nothing may be sent any more.
    if (this.#over) {
      controller.abort(new TransportError('aborted', false));
      return;
    }
    this.controller = controller;
    this.#sent = true;
  }

  answered(status: number, headers: ReceivedHeaders): void {
    if (this.#over || status < 200) return;
    const { maxBytes = Infinity, method } = this.request;
    this.status = status;
    this.headers = headers;
    const hasBody = method !== 'HEAD' && status !== 304;
    const { ofBody } = headers;
    if (hasBody && Number(ofBody['content-length']) > maxBytes) {
      this.fail('too-large');
      return;
    }
    if (ofBody['content-encoding'] !== undefined) this.encoding = contentEncoding(ofBody) ?? 'identity';
    this.begin?.();
  }

  received(chunk: Buffer): void {
    if (this.#over) return;
    this.#received += chunk.length;
    if (this.#received > (this.request.maxBytes ?? Infinity)) this.fail('too-large');
    else this.receive(chunk);
  }

  ended(): void {
    if (this.#over) return;
    this.#end();
    this.complete();
  }

  faulted(fault: unknown): void {
    if (this.#over) return;
    // The Content-Length of a 304 is that of the representation (RFC 9110, 8.6); undici expects a body of that length.
    if (this.status === 304 && faultCode(fault) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
      this.ended();
      return;
    }
    this.#end(ownFault(this.request.body, fault) ?? transportError(fault, this.#sent));
  }

  /** Ends the exchange from this side. */
  protected fail(kind: TransportFault): void {
    if (this.#over) return;
    const error = new TransportError(kind, this.#sent);
    this.#end(error);
    this.controller?.abort(error);
  }

  #end(error?: unknown): void {
    this.#over = true;
    this.deadlines.remove(this);
    this.request.signal?.removeEventListener('abort', this);
    this.request.onEnd?.();
    if (error === undefined) return;
    this.#reject(error);
    this.failed?.(error);
  }
}

/** A class of exchanges: how a response is received. */
export type ExchangeKind<R> = new (
  request: HttpStreamRequest,
  deadlines: Deadlines,
  resolve: (response: R | Promise<R>) => void,
  reject: (error: unknown) => void,
) => Pick<Exchange<R>, 'start'>;

/** Receives the complete response. */
export class BufferedExchange extends Exchange<HttpResponse> {
  #first: Buffer | undefined;
  #chunks: Buffer[] | undefined;

  protected override receive(chunk: Buffer): void {
    // Most responses arrive in one piece, which is then the body.
    if (this.#first === undefined) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
  }

  protected override complete(): void {
    const { status, headers, encoding } = this;
    const body = this.#chunks === undefined ? (this.#first ?? NO_BODY) : Buffer.concat(this.#chunks);
    if (encoding === 'identity') {
      this.resolve(new BufferedResponse(status, headers, body));
      return;
    }
    const decoded = decode(body, encoding, this.request.maxBytes);
    this.resolve(
      decoded.then((decodedBody) => ({ status, headers: decodedHeaders(allHeaders(headers)), body: decodedBody })),
    );
  }
}

/** A complete response whose headers are decoded once they are read: most callers want the data alone. */
class BufferedResponse implements HttpResponse {
  readonly status: number;
  readonly body: Buffer;
  readonly bodyHeaders: HttpHeaders;
  readonly #received: ReceivedHeaders;
  #decoded: HttpHeaders | undefined;

  constructor(status: number, headers: ReceivedHeaders, body: Buffer) {
    this.status = status;
    this.body = body;
    this.bodyHeaders = headers.ofBody;
    this.#received = headers;
  }

  get headers(): HttpHeaders {
    this.#decoded ??= allHeaders(this.#received);
    return this.#decoded;
  }
}

/** Returns the error for a fault of the stream that the caller gave as a body: the caller's to see, not the service's. */
function ownFault(body: HttpRequest['body'], fault: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('errored' in body) || !body.destroyed) return undefined;
  if (body.errored !== null) return body.errored === fault ? fault : undefined;
  if (faultCode(fault) !== 'UND_ERR_ABORTED') return undefined;
  return new DOMException('The body was destroyed before it was sent in full', 'AbortError');
}
