import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';

/**
 * Headers of a response, names in lower case. A header that occurs more than once is an array, whichever it is: read a
 * single-valued one with {@link headerValue}.
 */
export type HttpHeaders = Readonly<Record<string, string | string[] | undefined>>;

/** The default `User-Agent`. Firewalls refuse requests without one. */
export const USER_AGENT = 'passport-oauth-app';

/** One HTTP request to one of the service's hosts. */
export interface HttpRequest {
  /** Scheme, host and port, as `URL.origin` returns them. */
  readonly origin: string;
  /** Path and query, already encoded. */
  readonly path: string;
  readonly method: string;
  /** Names and values in turn, already checked: no line breaks, no character beyond Latin-1. */
  readonly headers: readonly string[];
  /** Sent as it is; a stream can be sent once only. */
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Milliseconds from now to the last byte of the response. `Infinity` for no limit. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Maximum bytes of the response body, counted as received and again after decoding. Default: no limit. */
  readonly maxBytes?: number;
  /**
   * Called when the exchange is over and needs its connection no more, or when its reader has paused for too long; maybe
   * more than once. Not called if the request is refused before.
   */
  readonly onEnd?: (() => void) | undefined;
}

/** One HTTP request whose response body is read as it arrives. */
export interface HttpStreamRequest extends HttpRequest {
  /**
   * The part that `timeoutMs` limits. `total`: connect to the last byte. `any-silence`: each wait for the service, so
   * that long uploads and downloads may take their time: for the connection, for more of a streamed body to be taken, for
   * the headers, and for more of the response while its reader waits for it. `silence`: the same, except for the body of
   * a `text/event-stream`. The body of an error (status 400 and above) counts as part of the headers.
   */
  readonly timeoutCovers: 'total' | 'silence' | 'any-silence';
  /** Returns the error that the body fails with. Default: the `TransportError` itself. */
  readonly bodyError?: ((error: unknown) => unknown) | undefined;
}

/** A complete response. */
export interface HttpResponse {
  readonly status: number;
  /** Without `content-encoding` and `content-length` if the body was decoded. */
  readonly headers: HttpHeaders;
  /** Those that describe the body, if they are available without decoding the others. */
  readonly bodyHeaders?: HttpHeaders;
  /** Decoded. As received if its encoding is unknown or chained; `content-encoding` is still there then. */
  readonly body: Buffer;
  /** Why the body could not be read; it is empty then. */
  readonly bodyFault?: 'too-large' | 'encoding';
}

/** A response whose body is still to be read. */
export interface HttpStream {
  readonly status: number;
  /** Without `content-encoding` and `content-length` if the body is decoded. */
  readonly headers: HttpHeaders;
  /**
   * To be read to its end or destroyed. Decoded, or as received if its encoding is unknown or chained. Fails with a
   * `TransportError`, or with what `bodyError` returns for it.
   */
  readonly body: Readable;
}

/** Returns the value of a single-valued header: the first one if it occurs more than once. */
export function headerValue(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}

/**
 * Returns the `Retry-After` of a response in milliseconds from `now`; `undefined` if it is missing or invalid.
 *
 * @param now Epoch milliseconds.
 * @see RFC 9110, 10.2.3
 */
export function retryAfterMs(headers: HttpHeaders, now: number): number | undefined {
  const text = headerValue(headers, 'retry-after')?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  // Date.parse accepts far more than HTTP dates: "-5" is a year for it. All three forms of RFC 9110, 5.6.7 are in GMT;
  // asctime does not say so.
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return undefined;
  const at = Date.parse(/\bGMT$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
