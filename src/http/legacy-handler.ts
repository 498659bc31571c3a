import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Exchange } from './exchange.js';
import type { HttpHeaders } from './message.js';

/** Headers as undici up to 6 reports them: names and values in turn. */
type RawHeaders = readonly (Buffer | string)[];

/**
 * Implements both handler interfaces of undici for an exchange: that of undici 7 and later, and that of undici up to 6,
 * which Node 20 and 22 have built in. Used for dispatchers of the user, which may come from any copy of undici.
 */
export class LegacyDispatchHandler implements Dispatcher.DispatchHandler {
  readonly #exchange: Exchange;
  #paused = false;
  #abort: (reason?: Error) => void = () => {};
  #resume: () => void = () => {};

  constructor(exchange: Exchange) {
    this.#exchange = exchange;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#exchange.onRequestStart(controller);
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#exchange.onResponseStart(controller, status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#exchange.onResponseData(controller, chunk);
  }

  onResponseEnd(): void {
    this.#exchange.onResponseEnd();
  }

  onResponseError(controller: Dispatcher.DispatchController, fault: unknown): void {
    this.#exchange.onResponseError(controller, fault);
  }

  onConnect(abort: (reason?: Error) => void): void {
    this.#abort = abort;
    this.#exchange.onRequestStart(this);
  }

  onHeaders(status: number, headers: RawHeaders, resume: () => void): boolean {
    this.#resume = resume;
    this.#exchange.onResponseStart(this, status, headersOf(headers));
    return !this.#paused;
  }

  onData(chunk: Buffer): boolean {
    this.#exchange.onResponseData(this, chunk);
    return !this.#paused;
  }

  onComplete(): void {
    this.#exchange.onResponseEnd();
  }

  onError(fault: unknown): void {
    this.#exchange.onResponseError(this, fault);
  }

  /** Aborts the request. With `pause` and `resume` it makes this object the controller that undici up to 6 lacks. */
  abort(reason: Error): void {
    this.#abort(reason);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#resume();
  }
}

function headersOf(raw: RawHeaders): HttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (let index = 0; index < raw.length; index += 2) {
    const [name = '', value = ''] = raw
      .slice(index, index + 2)
      .map((part) => (typeof part === 'object' ? part.toString('latin1') : part));
    const key = name.toLowerCase();
    const before = headers[key];
    headers[key] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}
