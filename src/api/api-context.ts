import { Deadlines } from '../http/deadlines.js';
import type { HttpClient } from '../http/http-client.js';
import { BaseUrls } from './api-base.js';
import { ConcurrencyLimiter } from './call-limits.js';
import { type DefaultHeaders, defaultHeaders, type RequestHeaders } from './request-headers.js';
import { wait } from './retry-policy.js';

/** Options of {@link createApiContext}. */
export interface ApiContextOptions {
  readonly http: HttpClient;
  /** Base address of the API, already checked. */
  readonly baseUrl: string;
  /** Base address of an enterprise organization with `{domain}`, already checked. */
  readonly enterpriseBaseUrl?: string | undefined;
  /** Path of the API below its base address. Default: `/api/v2`. */
  readonly apiPath?: string | undefined;
  /** Milliseconds for one HTTP request. */
  readonly timeoutMs: number;
  /** Maximum of requests at once for each account. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** Sent with each request. */
  readonly headers?: RequestHeaders | undefined;
  /** For events. */
  readonly strategyName: string;
  /** Maximum size of a parsed response in bytes. Default: 64 MiB. */
  readonly maxResponseBytes?: number | undefined;
  /** Epoch milliseconds. Default: `Date.now`. */
  readonly now?: (() => number) | undefined;
  /** From 0 up to 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** Waits between tries; rejects with the signal's reason. Default: a timer. */
  readonly wait?: ((ms: number, signal: AbortSignal | undefined) => Promise<void>) | undefined;
}

/** Shared by all API clients of a strategy. */
export interface ApiContext {
  readonly http: HttpClient;
  readonly bases: BaseUrls;
  readonly timeoutMs: number;
  readonly limiter: ConcurrencyLimiter | undefined;
  readonly headers: DefaultHeaders;
  readonly strategyName: string;
  readonly maxResponseBytes: number;
  /** Of whole calls and of queues. */
  readonly deadlines: Deadlines;
  readonly now: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

const MAX_RESPONSE_BYTES = 64 * 1024 * 1024;

/** Creates the context of a strategy's API clients: its limits hold for all of them together. */
export function createApiContext(options: ApiContextOptions): ApiContext {
  const { http, timeoutMs, concurrency, strategyName } = options;
  const deadlines = new Deadlines();
  return Object.freeze({
    http,
    bases: new BaseUrls(options.baseUrl, options.enterpriseBaseUrl, options.apiPath),
    timeoutMs,
    limiter: concurrency === undefined ? undefined : new ConcurrencyLimiter(concurrency, deadlines, timeoutMs),
    headers: defaultHeaders(options.headers),
    strategyName,
    maxResponseBytes: options.maxResponseBytes ?? MAX_RESPONSE_BYTES,
    deadlines,
    now: options.now ?? Date.now,
    random: options.random ?? Math.random,
    wait: options.wait ?? wait,
  });
}
