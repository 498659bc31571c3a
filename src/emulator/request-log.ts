import type { IncomingHttpHeaders } from 'node:http';
import { type Incoming, mediaType, parseJson } from './incoming-request.js';
import type { Query } from './query.js';

/** A request as the service received it, whatever became of it. */
export interface ServiceRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  /** Parsed if it is JSON, else its text; `undefined` if there was none or it was too large. */
  readonly body: unknown;
}

/** Keeps the newest requests, in the order in which they arrived. */
export class RequestLog {
  /** Never replaced, so that a test can hold on to it or empty it with `requests.length = 0`. */
  readonly requests: ServiceRequest[] = [];
  readonly #max: number;

  /** @param max - How many are kept; 0 keeps none. */
  constructor(max: number) {
    this.#max = max;
  }

  add(incoming: Incoming): void {
    if (this.#max === 0) return;
    // Dropping a tenth at once costs far less than dropping one each time.
    if (this.requests.length >= this.#max) this.requests.splice(0, Math.ceil(this.#max / 10));
    const { method, path, query, headers } = incoming;
    this.requests.push({ method, path, query: query ?? {}, headers, body: bodyOf(incoming) });
  }
}

/** The body as a test reads it: parsed if it is JSON, else its text, `undefined` if there is none. */
export function bodyOf({ headers, text }: Incoming): unknown {
  if (text === undefined || text === '') return undefined;
  const json = /[/+]json$/.test(mediaType(headers)) ? parseJson(text) : undefined;
  return json === undefined ? text : json.value;
}
