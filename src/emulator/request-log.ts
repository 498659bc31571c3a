import type { IncomingHttpHeaders } from 'node:http';
import { type IncomingRequest, parseBody, type Query } from './incoming-request.js';

/** A request as the service received it, whatever the outcome. */
export interface ServiceRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, else its text; `undefined` if there was no body or it was too large. */
  readonly body: unknown;
}

/** Keeps the newest requests in order of arrival. */
export class RequestLog {
  /** Never replaced, so a test can hold on to it or empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[] = [];
  readonly #max: number;

  /** @param max - How many are kept; 0 keeps none. */
  constructor(max: number) {
    this.#max = max;
  }

  add(incoming: IncomingRequest): void {
    if (this.#max === 0) return;
    // Dropping a tenth at once is far cheaper than dropping one each time.
    if (this.requests.length >= this.#max) this.requests.splice(0, Math.ceil(this.#max / 10));
    const { method, path, query, headers } = incoming;
    this.requests.push({ method, path, query: query ?? {}, headers, body: parseBody(incoming) });
  }
}
