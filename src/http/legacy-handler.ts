import type { IncomingHttpHeaders } from 'node:http';
import type { Dispatcher } from 'undici';
import type { Exchange } from './exchange.js';
import type { HttpHeaders } from './message.js';

/** What undici up to 6 hands over for headers: names and values in turn. */
type RawHeaders = readonly (Buffer | string)[];

/**
 * An exchange in both forms of undici's handlers: that of undici 7 and later, and that of undici up to 6, which is
 * what Node 20 and 22 have built in. Only for dispatchers of the user, which may be of any copy of undici.
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

  /** As a controller: what undici up to 6 has no object for. */
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
    const name = textOf(raw[index]).toLowerCase();
    const value = textOf(raw[index + 1]);
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else headers[name] = [before, value].flat();
  }
  return headers;
}

function textOf(part: Buffer | string | undefined): string {
  return typeof part === 'object' ? part.toString('latin1') : (part ?? '');
}
