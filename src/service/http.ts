import type { IncomingHttpHeaders } from 'node:http';
import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';

/** One HTTP request to one of the service's hosts. */
export interface HttpRequest {
  /** Scheme, host and port, as `URL.origin` gives them. */
  readonly origin: string;
  /** Path and query, already encoded. */
  readonly path: string;
  readonly method: string;
  /** Names and values in turn, checked already: ASCII, no line breaks. */
  readonly headers: readonly string[];
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Milliseconds from now to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Most bytes of the answer's body, counted after decoding; no limit where it is left out. */
  readonly maxBytes?: number;
}

/** A whole answer. */
export interface HttpResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Decoded (gzip, deflate, br: one of them at most). */
  readonly body: Buffer;
}

/** An answer whose body is still to come. */
export interface HttpStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readable;
}
