import type { IncomingHttpHeaders } from 'node:http';
import { type IncomingRequest, parseBody, type Query } from './incoming-request.js';

/** A request as the service received it, whatever the outcome. */
export interface ServiceRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, text if it is textual, else bytes. `undefined` if there was no body, or it was too large or dropped. */
  readonly body: unknown;
}

/** How a request ended, and when. */
export interface RequestResult {
  /** Status of the response, or the reason why there was none. */
  readonly outcome: number | 'hang' | 'reset' | 'gone';
  /** Epoch milliseconds of this computer. */
  readonly at: number;
  readonly durationMs: number;
}

/** Data of a recorded request that the request itself does not have. */
export interface RequestRecord {
  readonly id: number;
  readonly host: string;
  /** `undefined` while the request is in progress. */
  result: RequestResult | undefined;
}

interface KeptBody {
  readonly request: { body: unknown };
  readonly bytes: number;
}

/** Keeps the newest requests in order of arrival, and a limited amount of their bodies. */
export class RequestLog {
  /** Never replaced, so a test can hold on to it or empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[] = [];
  readonly #records = new WeakMap<ServiceRequest, RequestRecord>();
  #count = 0;
  readonly #maxRequests: number;
  readonly #maxBodyBytes: number;
  #bodies: KeptBody[] = [];
  #bodyBytes = 0;

  /**
   * @param maxRequests - How many are kept; 0 keeps none.
   * @param maxBodyBytes - Of all bodies together. The oldest bodies are dropped first.
   */
  constructor(maxRequests: number, maxBodyBytes: number) {
    this.#maxRequests = maxRequests;
    this.#maxBodyBytes = maxBodyBytes;
  }

  /** Adds a request. Returns a function that adds its result. */
  add(incoming: IncomingRequest): (result: RequestResult) => void {
    if (this.#maxRequests === 0) return () => {};
    if (this.requests.length === 0) this.#forgetBodies();
    // Dropping a tenth at once is far cheaper than dropping one each time.
    if (this.requests.length >= this.#maxRequests) this.#drop(Math.ceil(this.#maxRequests / 10));
    const { method, path, query, headers } = incoming;
    const request = { method, path, query: query ?? {}, headers, body: parseBody(incoming) };
    this.requests.push(request);
    if (request.body !== undefined) this.#keepBody(request, incoming.bytes?.length ?? 0);
    this.#count += 1;
    const record: RequestRecord = { id: this.#count, host: incoming.host, result: undefined };
    this.#records.set(request, record);
    return (result) => {
      record.result = result;
    };
  }

  /** Returns what is known of a request beside the request itself. */
  recordOf(request: ServiceRequest): Readonly<RequestRecord> | undefined {
    return this.#records.get(request);
  }

  /** True if requests are recorded at all. */
  get isOn(): boolean {
    return this.#maxRequests > 0;
  }

  clear(): void {
    this.requests.length = 0;
    this.#forgetBodies();
  }

  #drop(count: number): void {
    const dropped = new Set<unknown>(this.requests.splice(0, count));
    this.#bodies = this.#bodies.filter(({ request }) => !dropped.has(request));
    this.#bodyBytes = this.#bodies.reduce((sum, { bytes }) => sum + bytes, 0);
  }

  #keepBody(request: { body: unknown }, bytes: number): void {
    this.#bodies.push({ request, bytes });
    this.#bodyBytes += bytes;
    if (this.#bodyBytes <= this.#maxBodyBytes) return;
    let count = 0;
    while (this.#bodyBytes > this.#maxBodyBytes) {
      const oldest = this.#bodies[count];
      if (oldest === undefined) break;
      oldest.request.body = undefined;
      this.#bodyBytes -= oldest.bytes;
      count += 1;
    }
    this.#bodies.splice(0, count);
  }

  #forgetBodies(): void {
    this.#bodies = [];
    this.#bodyBytes = 0;
  }
}
