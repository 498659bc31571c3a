import type { Dispatcher } from 'undici';
import type { Deadlines, Expiring } from './deadlines.js';
import { type ContentEncoding, contentEncoding } from './decoding.js';
import { contentLength, type HttpHeaders, type HttpRequest } from './message.js';
import { faultCode, TransportError, type TransportFault, transportError } from './transport-error.js';

type Controller = Pick<Dispatcher.DispatchController, 'abort' | 'pause' | 'resume'>;

/** Hands an exchange to a dispatcher. */
export type Dispatch = (options: Dispatcher.DispatchOptions, exchange: Exchange) => void;

/**
 * One request and its response, as undici's dispatchers report on it.
 *
 * It goes straight to the dispatcher: undici's own `request` puts a readable stream between, which costs a third of
 * the throughput for responses that are read as a whole anyway.
 */
export abstract class Exchange implements Dispatcher.DispatchHandler, Expiring {
  expiresAt = 0;
  protected controller: Controller | undefined;
  protected readonly request: HttpRequest;
  protected readonly deadlines: Deadlines;
  #status = 0;
  #sent = false;
  #over = false;

  constructor(request: HttpRequest, deadlines: Deadlines) {
    this.request = request;
    this.deadlines = deadlines;
  }

  /** Called with the final status and headers. An encoding that cannot be decoded counts as `identity`. */
  protected abstract begin(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void;
  /** Called for each part of the body, as received. */
  protected abstract receive(chunk: Buffer): void;
  /** Called when the body is complete. */
  protected abstract complete(): void;
  /** Called if there will be no response, or no more of it. */
  protected abstract reject(error: unknown): void;

  /** Sends the request. To be called once. */
  start(dispatch: Dispatch): void {
    const { origin, path, method, headers, body = null, signal, timeoutMs } = this.request;
    if (signal?.aborted) {
      this.fail('aborted');
      return;
    }
    signal?.addEventListener('abort', this);
    this.deadlines.add(this, timeoutMs);
    try {
      // The cast: undici only reads the list, but its types do not say so.
      dispatch({ origin, path, method, headers: headers as string[], body, headersTimeout: 0, bodyTimeout: 0 }, this);
    } catch (fault) {
      this.onResponseError(undefined, fault);
    }
  }

  /** Ends the exchange: the caller's signal was aborted. */
  handleEvent(): void {
    this.fail('aborted');
  }

  expire(): void {
    this.fail('timeout');
  }

  onRequestStart(controller: Controller): void {
    // It ended while it waited for a connection: nothing may be sent any more.
    if (this.#over) {
      controller.abort(new TransportError('aborted', false));
      return;
    }
    this.controller = controller;
    this.#sent = true;
  }

  onResponseStart(_controller: Controller, status: number, headers: HttpHeaders): void {
    if (this.#over || status < 200) return;
    this.#status = status;
    const { maxBytes = Infinity, method } = this.request;
    const hasBody = method !== 'HEAD' && status !== 304;
    if (hasBody && maxBytes !== Infinity && (contentLength(headers) ?? 0) > maxBytes) this.fail('too-large');
    else this.begin(status, headers, contentEncoding(headers) ?? 'identity');
  }

  onResponseData(_controller: Controller, chunk: Buffer): void {
    if (!this.#over) this.receive(chunk);
  }

  onResponseEnd(): void {
    if (this.#over) return;
    this.#end();
    this.complete();
  }

  onResponseError(_controller: Controller | undefined, fault: unknown): void {
    if (this.#over) return;
    // The Content-Length of a 304 is that of the representation (RFC 9110, 8.6); undici expects a body of that length.
    if (this.#status === 304 && faultCode(fault) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') {
      this.onResponseEnd();
      return;
    }
    this.#end();
    this.reject(ownFault(this.request.body, fault) ?? transportError(fault, this.#sent));
  }

  /** Ends the exchange from this side. */
  protected fail(kind: TransportFault): void {
    if (this.#over) return;
    this.#end();
    const error = new TransportError(kind, this.#sent);
    this.reject(error);
    this.controller?.abort(error);
  }

  #end(): void {
    this.#over = true;
    this.deadlines.remove(this);
    this.request.signal?.removeEventListener('abort', this);
    this.request.onEnd?.();
  }
}

/** Returns the error for a fault of the stream that the caller gave as a body: the caller's to see, not the service's. */
function ownFault(body: HttpRequest['body'], fault: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('errored' in body) || !body.destroyed) return undefined;
  if (body.errored !== null) return body.errored === fault ? fault : undefined;
  if (faultCode(fault) !== 'UND_ERR_ABORTED') return undefined;
  return new DOMException('The body was destroyed before it was sent in full', 'AbortError');
}
