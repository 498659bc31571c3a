import { Deadlines } from '../http/deadlines.js';
import type { HttpClient } from '../http/http-client.js';
import { wait } from './abortable.js';
import { BaseUrls } from './api-base.js';
import { type ApiCalls, apiCalls } from './api-calls.js';
import type { CallContext } from './call-context.js';
import { ConcurrencyLimiter } from './concurrency.js';

/** What the API clients of one strategy are made of. */
export interface ApiContextOptions {
  readonly http: HttpClient;
  /** `{base_url}`, checked already. */
  readonly baseUrl: string;
  /** `{enterprise_base_url}` with `{domain}`, checked already. */
  readonly enterpriseBaseUrl?: string | undefined;
  /** Milliseconds for one HTTP request. */
  readonly timeoutMs: number;
  /** Most requests at once for each grant; no limit where it is left out. */
  readonly concurrency?: number | undefined;
  /** For events. */
  readonly strategyName: string;
  /** Most bytes of an answer that is not streamed. Default: 64 MiB. */
  readonly maxBytes?: number | undefined;
  /** Epoch milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Waits between tries; rejects with the signal's reason. Default: a timer. */
  readonly wait?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/** Shared by all API clients of a strategy. */
export interface ApiContext extends CallContext {
  readonly calls: ApiCalls;
}

const MAX_BYTES = 64 * 1024 * 1024;

/** To be made once for each strategy: the limits of concurrency hold between all clients of one context. */
export function createApiContext(options: ApiContextOptions): ApiContext {
  const { concurrency } = options;
  const context: CallContext = {
    http: options.http,
    bases: new BaseUrls(options.baseUrl, options.enterpriseBaseUrl),
    timeoutMs: options.timeoutMs,
    limiter: concurrency === undefined ? undefined : new ConcurrencyLimiter(concurrency),
    strategyName: options.strategyName,
    maxBytes: options.maxBytes ?? MAX_BYTES,
    deadlines: new Deadlines(),
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    wait: options.wait ?? wait,
  };
  return Object.freeze({ ...context, calls: apiCalls(context) });
}
