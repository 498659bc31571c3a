import type { Deadlines } from '../http/deadlines.js';
import type { HttpClient } from '../http/http-client.js';
import type { BaseUrls } from './api-base.js';
import type { ConcurrencyLimiter } from './concurrency.js';

/** What all calls of a strategy share. */
export interface CallContext {
  readonly http: HttpClient;
  readonly bases: BaseUrls;
  readonly timeoutMs: number;
  readonly limiter: ConcurrencyLimiter | undefined;
  readonly strategyName: string;
  readonly maxBytes: number;
  /** Of whole calls, for those that have one. */
  readonly deadlines: Deadlines;
  readonly now: () => number;
  readonly random: () => number;
  readonly wait: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}
