/// <reference path="./undici-agent.d.ts" />
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { Dispatcher } from 'undici';
import { sendBuffered } from './buffered-exchange.js';
import { Deadlines } from './deadlines.js';
import type { Dispatch } from './exchange.js';
import { sendFetched } from './fetched-exchange.js';
import { LegacyDispatchHandler } from './legacy-handler.js';
import type { HttpRequest, HttpResponse, HttpStream, HttpStreamRequest } from './message.js';
import { sendStreamed } from './streamed-exchange.js';
import { TransportError } from './transport-error.js';

/** Options of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Used as it is and never closed. Default: an own keep-alive pool, created with the first request. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Milliseconds that {@link HttpClient.close} waits for requests in flight. Default: 10,000. */
  readonly graceMs?: number | undefined;
}

const GRACE_MS = 10_000;

/** Maximum connections to one origin; further requests wait for a free one, within their own time limit. */
const CONNECTIONS_PER_ORIGIN = 256;

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * Sends single HTTP requests: each has one time limit and one size limit. Follows no redirects and retries nothing.
 *
 * Every failure is a `TransportError`, except that a stream given as a body fails with its own error.
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

  /** Number of requests in flight. */
  get pending(): number {
    return this.#deadlines.size;
  }

  /**
   * Returns the complete response to a request, whatever its status.
   *
   * @throws TransportError
   */
  send(request: HttpRequest): Promise<HttpResponse> {
    const dispatch = this.#started();
    return typeof dispatch === 'function'
      ? sendBuffered(dispatch, request, this.#deadlines)
      : dispatch.then((ready) => sendBuffered(ready, request, this.#deadlines));
  }

  /**
   * Returns the response to a request, whatever its status, as soon as its headers are there.
   *
   * @throws TransportError
   */
  stream(request: HttpStreamRequest): Promise<HttpStream> {
    const dispatch = this.#started();
    return typeof dispatch === 'function'
      ? sendStreamed(dispatch, request, this.#deadlines)
      : dispatch.then((ready) => sendStreamed(ready, request, this.#deadlines));
  }

  /**
   * Returns the response to a request, whatever its status: with its complete body if that arrived with the headers,
   * otherwise with a stream.
   *
   * @throws TransportError
   */
  fetch(request: HttpStreamRequest): Promise<HttpResponse | HttpStream> {
    const dispatch = this.#started();
    return typeof dispatch === 'function'
      ? sendFetched(dispatch, request, this.#deadlines)
      : dispatch.then((ready) => sendFetched(ready, request, this.#deadlines));
  }

  /**
   * Lets the requests in flight end, within the grace period, and frees the connections of the own pool. Later requests
   * are refused.
   */
  close(): Promise<void> {
    this.#closing ??= this.#closePool();
    return this.#closing;
  }

  async #closePool(): Promise<void> {
    await this.#starting;
    if (this.#pool === undefined) return;
    // A stream that nobody reads would keep the pool open for ever.
    const timer = setTimeout(() => this.#deadlines.endAll(), this.#graceMs);
    await this.#pool.close();
    clearTimeout(timer);
  }

  /** Returns the way to the dispatcher: at once if there is one, so that a call costs no promise for it. */
  #started(): Dispatch | Promise<Dispatch> {
    if (this.#closing !== undefined) return Promise.reject(new TransportError('closed', false));
    if (this.#dispatch !== undefined) return this.#dispatch;
    this.#starting ??= createPool().then((pool) => {
      this.#pool = pool;
      this.#dispatch = (options, exchange) => pool.dispatch(options, exchange);
      return this.#dispatch;
    });
    return this.#starting;
  }
}

async function createPool(): Promise<Dispatcher> {
  // Loaded with the first request, and by its own path: all of undici takes twice the time to load, and Bun replaces
  // the package, but not the file, by a stub without an Agent.
  const { default: Agent } = await import('undici/lib/dispatcher/agent.js');
  return new Agent({
    connections: CONNECTIONS_PER_ORIGIN,
    connect: { lookup: lookupHost, timeout: CONNECT_TIMEOUT_MS },
    // Each request has its own limit: see deadlines.ts.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

type LookupCallback = (fault: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/**
 * Looks a host name up like `dns.lookup`, but resolves names below `localhost` to loopback addresses without asking a
 * name server.
 *
 * @see RFC 6761, 6.3
 */
export function lookupHost(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  if (!/^(?:.+\.)?localhost\.?$/i.test(hostname)) {
    lookup(hostname, options, callback);
    return;
  }
  const { family: wanted, all } = options;
  const addresses = LOOPBACK.filter(({ family }) => !wanted || wanted === family || wanted === `IPv${family}`);
  const first = addresses[0] ?? { address: '127.0.0.1', family: 4 };
  process.nextTick(() => {
    if (all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
}
