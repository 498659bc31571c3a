import type { Dispatcher } from 'undici';
import { sendBuffered } from './buffered-exchange.js';
import { Deadlines } from './deadlines.js';
import type { Dispatch } from './exchange.js';
import { LegacyDispatchHandler } from './legacy-handler.js';
import type { HttpRequest, HttpResponse, HttpStream, HttpStreamRequest } from './message.js';
import { sendStreamed } from './streamed-exchange.js';
import { TransportError } from './transport-error.js';

/** What an {@link HttpClient} is made of. */
export interface HttpClientOptions {
  /** Used as it is and never closed. Default: a keep-alive pool of our own, made when the first request is. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Milliseconds that {@link HttpClient.close} waits for requests in flight. Default: 10,000. */
  readonly graceMs?: number | undefined;
}

const GRACE_MS = 10_000;

/**
 * Sends single HTTP requests: one limit of time and one of size for each, no redirects, no second tries.
 *
 * Everything that goes wrong is a `TransportError`, except that a stream given as a body fails with its own error.
 */
export class HttpClient {
  readonly #deadlines = new Deadlines();
  readonly #graceMs: number;
  #dispatch: Dispatch | undefined;
  #starting: Promise<Dispatch> | undefined;
  #pool: Dispatcher | undefined;
  #closing: Promise<void> | undefined;

  constructor({ dispatcher, graceMs = GRACE_MS }: HttpClientOptions = {}) {
    this.#graceMs = graceMs;
    if (dispatcher === undefined) return;
    this.#dispatch = (options, exchange) => dispatcher.dispatch(options, new LegacyDispatchHandler(exchange));
  }

  /** Requests in flight. */
  get pending(): number {
    return this.#deadlines.size;
  }

  /**
   * The whole answer to a request, whatever its status.
   *
   * @throws TransportError
   */
  send(request: HttpRequest): Promise<HttpResponse> {
    if (this.#closing !== undefined) return Promise.reject(new TransportError('closed', false));
    if (this.#dispatch !== undefined) return sendBuffered(this.#dispatch, request, this.#deadlines);
    return this.#start().then((dispatch) => sendBuffered(dispatch, request, this.#deadlines));
  }

  /**
   * The answer to a request, whatever its status, as soon as its headers are there.
   *
   * @throws TransportError
   */
  stream(request: HttpStreamRequest): Promise<HttpStream> {
    if (this.#closing !== undefined) return Promise.reject(new TransportError('closed', false));
    if (this.#dispatch !== undefined) return sendStreamed(this.#dispatch, request, this.#deadlines);
    return this.#start().then((dispatch) => sendStreamed(dispatch, request, this.#deadlines));
  }

  /**
   * Lets the requests in flight end, within the grace, and frees the connections of our own pool. Later requests are
   * refused.
   */
  close(): Promise<void> {
    this.#closing ??= this.#closeOwn();
    return this.#closing;
  }

  async #closeOwn(): Promise<void> {
    await this.#starting;
    if (this.#pool === undefined) return;
    // A stream that nobody reads would keep the pool open for ever.
    const timer = setTimeout(() => this.#deadlines.endAll(), this.#graceMs);
    await this.#pool.close();
    clearTimeout(timer);
  }

  #start(): Promise<Dispatch> {
    this.#starting ??= this.#createPool();
    return this.#starting;
  }

  async #createPool(): Promise<Dispatch> {
    const { createConnectionPool } = await import('./connection-pool.js');
    const pool = createConnectionPool();
    this.#pool = pool;
    this.#dispatch = (options, exchange) => pool.dispatch(options, exchange);
    return this.#dispatch;
  }
}
