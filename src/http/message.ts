import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';

/**
 * Headers of an answer: names in lower case. A header that came more than once is an array, whichever it is: read
 * one that should be there once with {@link headerValue}.
 */
export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** One HTTP request to one of the service's hosts. */
export interface HttpRequest {
  /** Scheme, host and port, as `URL.origin` gives them. */
  readonly origin: string;
  /** Path and query, already encoded. */
  readonly path: string;
  readonly method: string;
  /** Names and values in turn, checked already: ASCII, no line breaks. */
  readonly headers: readonly string[];
  /** Sent as it is; a stream can be sent once only. */
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Milliseconds from now to the last byte of the answer. `Infinity` for no limit. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Most bytes of the answer's body, counted as received and again after decoding; no limit where it is left out. */
  readonly maxBytes?: number;
}

/** One HTTP request whose answer is read as it comes. */
export interface HttpStreamRequest extends HttpRequest {
  /**
   * What `timeoutMs` limits. `total`: connect to the last byte. `silence`: connect to the headers, and from then on
   * each wait for more of the body while the reader wants it; a long download may take as long as it needs.
   */
  readonly timeoutCovers: 'total' | 'silence';
  /** What the body fails with, for what went wrong. Default: the error itself. */
  readonly bodyError?: (error: unknown) => unknown;
}

/** A whole answer. */
export interface HttpResponse {
  readonly status: number;
  /** Without `content-encoding` and `content-length` where the body was decoded. */
  readonly headers: HttpHeaders;
  /** Decoded (gzip, deflate, br: one of them at most). */
  readonly body: Buffer;
}

/** An answer whose body is still to come. */
export interface HttpStream {
  readonly status: number;
  /** Without `content-encoding` and `content-length` where the body is decoded. */
  readonly headers: HttpHeaders;
  /** Decoded; to be read to its end or destroyed. Fails with a `TransportError`, or what `bodyError` makes of it. */
  readonly body: Readable;
}

/** The value of a header that should be there once: the first one where it came more than once. */
export function headerValue(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}
