/// <reference path="./undici-agent.d.ts" />
import type { LookupAddress, LookupOptions } from 'node:dns';
import type { Agent, Dispatcher } from 'undici';
import { loadAhead, succeedOnce } from '../waiting.js';
import { Deadlines } from './deadlines.js';
import { BufferedExchange, type ExchangeKind } from './exchange.js';
import type { HttpRequest, HttpResponse } from './message.js';
import { PRIVATE_ADDRESS, TransportError } from './transport-error.js';

/** Options of an {@link HttpClient}. */
export interface HttpClientOptions {
  /** Never closed. Default: a keep-alive pool, created with the first request. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Resolves the hosts of that pool. Default: {@link lookupHost}. */
  readonly lookup?: typeof lookupHost | undefined;
  /** How long {@link HttpClient.close} waits for requests in flight, in milliseconds. Default: 10,000. */
  readonly graceMs?: number | undefined;
}

const CLOSING_GRACE_MS = 10_000;

/** Further requests wait for a free connection, within their time limits. */
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
  readonly #lookup: typeof lookupHost;
  /** `undefined` until the first request has created the pool, and once the client is closed. */
  #dispatcher: Dispatcher | undefined;
  #ownPool: Agent | undefined;
  #pool: Promise<Agent> | undefined;
  #closing: Promise<void> | undefined;

  constructor({ dispatcher, lookup = lookupHost, graceMs = CLOSING_GRACE_MS }: HttpClientOptions = {}) {
    this.#graceMs = graceMs;
    this.#lookup = lookup;
    this.#dispatcher = dispatcher;
    if (!dispatcher) loadAhead(loadAgent);
  }

  /** Number of requests in flight. */
  get pending(): number {
    return this.#deadlines.size;
  }

  /**
   * Returns the response to a request, whatever its status.
   *
   * @param Kind How the response is received. Default: as a whole.
   * @throws TransportError
   */
  send(request: HttpRequest): Promise<HttpResponse>;
  send<R>(request: HttpRequest, Kind: ExchangeKind<R>): Promise<R>;
  send(request: HttpRequest, Kind: ExchangeKind<unknown> = BufferedExchange): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const exchange = new Kind(request, this.#deadlines, resolve, reject);
      // Another promise would cost throughput.
      if (this.#dispatcher !== undefined) exchange.start(this.#dispatcher, this.#ownPool);
      else if (this.#closing !== undefined) reject(new TransportError('closed', false));
      else {
        this.#pool ??= createPool(this.#lookup);
        this.#pool.then(
          (pool) => {
            if (this.#closing === undefined) this.#dispatcher = this.#ownPool = pool;
            exchange.start(pool, pool);
          },
          (error: unknown) => {
            this.#pool = undefined;
            reject(error);
          },
        );
      }
    });
  }

  /** Waits for the requests in flight, up to the grace period, and closes the pool. Later requests are refused. */
  close(): Promise<void> {
    this.#dispatcher = undefined;
    this.#closing ??= this.#closePool();
    return this.#closing;
  }

  async #closePool(): Promise<void> {
    const pool = await this.#pool;
    if (pool === undefined) return;
    // An unread stream would keep the pool open forever.
    const timer = setTimeout(() => this.#deadlines.expireUntil(Infinity), this.#graceMs);
    await pool.close();
    clearTimeout(timer);
  }
}

const loadAgent = succeedOnce(
  // By its path: all of undici takes twice the time to load, and Bun replaces the package, but not the file, by a stub
  // without an Agent.
  () => import('undici/lib/dispatcher/agent.js'),
);

async function createPool(lookup: typeof lookupHost): Promise<Agent> {
  const { default: AgentClass } = await loadAgent();
  return new AgentClass({
    connections: CONNECTIONS_PER_ORIGIN,
    connect: { lookup, timeout: CONNECT_TIMEOUT_MS },
    // Deadlines limits each request.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Returns a lookup that fails if an address is refused: a name that was checked may resolve to another address by now. */
export function guardedLookup(refuses: (hostname: string, address: string) => boolean): typeof lookupHost {
  return (hostname, options, callback) =>
    lookupHost(hostname, options, (fault, found, family) => {
      const addresses = typeof found === 'string' ? [found] : (found ?? []).map(({ address }) => address);
      const isRefused = !fault && addresses.some((address) => refuses(hostname, address));
      const refusal = new Error(`${hostname} resolves to a private address`);
      callback(isRefused ? Object.assign(refusal, { code: PRIVATE_ADDRESS }) : fault, found, family);
    });
}

const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

type LookupCallback = (fault: NodeJS.ErrnoException | null, address: string | LookupAddress[], family?: number) => void;

/** Resolves a host name like `dns.lookup`, and names below `localhost` to loopback without a query. @see RFC 6761, 6.3 */
export function lookupHost(hostname: string, options: LookupOptions, callback: LookupCallback): void {
  if (!/^(?:.+\.)?localhost\.?$/i.test(hostname)) {
    void import('node:dns').then(({ lookup }) => lookup(hostname, options, callback));
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
