import type { Dispatcher } from 'undici';
import { type ContentEncoding, contentEncoding, contentLengthOf } from './content-encoding.js';
import type { Deadlines, Expiring } from './deadlines.js';
import type { HttpHeaders, HttpRequest } from './message.js';
import { TransportError, type TransportFault, transportError } from './transport-error.js';

type Controller = Pick<Dispatcher.DispatchController, 'abort' | 'pause' | 'resume'>;

/** Hands an exchange to a dispatcher. */
export type Dispatch = (options: Dispatcher.DispatchOptions, exchange: Exchange) => void;

/**
 * One request and its answer, as undici's dispatchers report on it.
 *
 * It goes straight to the dispatcher: undici's own `request` puts a readable stream between, which costs a third of
 * the throughput for answers that are read as a whole anyway.
 */
export abstract class Exchange implements Dispatcher.DispatchHandler, Expiring {
  expiresAt = 0;
  protected controller: Controller | undefined;
  protected readonly request: HttpRequest;
  protected readonly deadlines: Deadlines;
  /** The request, or a part of it, may have reached the service. */
  #left = false;
  #over = false;

  constructor(request: HttpRequest, deadlines: Deadlines) {
    this.request = request;
    this.deadlines = deadlines;
  }

  /** The final status and headers came. */
  protected abstract answer(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void;
  /** A part of the body came, as received. */
  protected abstract receive(chunk: Buffer): void;
  /** The body is complete. */
  protected abstract complete(): void;
  /** There will be no answer, or no more of it. */
  protected abstract reject(error: unknown): void;

  /** Whether it has ended, in one way or another. */
  protected get over(): boolean {
    return this.#over;
  }

  /** Sends the request. To be called once. */
  start(dispatch: Dispatch): void {
    const { signal, timeoutMs } = this.request;
    if (signal?.aborted) {
      this.fail('aborted');
      return;
    }
    signal?.addEventListener('abort', this);
    this.deadlines.add(this, timeoutMs);
    try {
      dispatch(dispatchOptions(this.request), this);
    } catch (fault) {
      this.onResponseError(undefined, fault);
    }
  }

  /** The caller's signal was aborted. */
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
    this.#left = true;
  }

  onResponseStart(_controller: Controller, status: number, headers: HttpHeaders): void {
    if (this.#over || status < 200) return;
    const encoding = contentEncoding(headers);
    if (encoding === undefined) this.fail('encoding');
    else if (this.#announcesTooMuch(status, headers)) this.fail('too-large');
    else this.answer(status, headers, encoding);
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
    this.#end();
    this.reject(isOwnFault(this.request.body, fault) ? fault : transportError(fault, this.#left));
  }

  /** Ends it from our side. */
  protected fail(kind: TransportFault): void {
    if (this.#over) return;
    this.#end();
    const error = new TransportError(kind, this.#left);
    this.reject(error);
    this.controller?.abort(error);
  }

  #end(): void {
    this.#over = true;
    this.deadlines.remove(this);
    this.request.signal?.removeEventListener('abort', this);
  }

  #announcesTooMuch(status: number, headers: HttpHeaders): boolean {
    const { maxBytes, method } = this.request;
    if (maxBytes === undefined || method === 'HEAD' || status === 304) return false;
    return (contentLengthOf(headers) ?? 0) > maxBytes;
  }
}

function dispatchOptions({ origin, path, method, headers, body }: HttpRequest): Dispatcher.DispatchOptions {
  // The cast: undici only reads the list, but does not say so.
  return { origin, path, method, headers: headers as string[], body: body ?? null, headersTimeout: 0, bodyTimeout: 0 };
}

/** Whether the fault is that of the stream which the caller gave as a body; then it is the caller's to see. */
function isOwnFault(body: HttpRequest['body'], fault: unknown): boolean {
  return (
    typeof body === 'object' && body !== null && 'errored' in body && body.errored !== null && body.errored === fault
  );
}
