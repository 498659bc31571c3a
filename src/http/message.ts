import type { Dispatcher } from 'undici';

/** Headers of a response, names in lower case. Any header may occur more than once: {@link headerValue} reads a single-valued one. */
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
  /** Sent as it is; a stream can be sent only once. */
  readonly body?: Dispatcher.DispatchOptions['body'];
  /** Milliseconds. `Infinity` for no limit. */
  readonly timeoutMs: number;
  /**
   * What `timeoutMs` limits. Default: `total`.
   *
   * - `total`: everything from connecting to the last byte
   * - `any-silence`, for streams: each wait for a connection, for a streamed upload to be taken, for the headers, and for
   *   more of the response while its reader waits. The body of an error (status 400 and above) counts as headers.
   * - `silence`: the same, except for the body of a `text/event-stream`
   */
  readonly timeoutCovers?: 'total' | 'silence' | 'any-silence';
  readonly signal?: AbortSignal | undefined;
  /** Maximum bytes of the response body, counted as received and again after decoding. Default: no limit. */
  readonly maxBytes?: number;
  /** Returns the error that a streamed body fails with. Default: the `TransportError` itself. */
  readonly bodyError?: ((error: unknown) => unknown) | undefined;
  /**
   * Called when the exchange no longer needs its connection, or when its reader has paused for too long; possibly more
   * than once. Not called for a request that is refused before it starts.
   */
  readonly onEnd?: (() => void) | undefined;
}

/** A complete response. */
export interface HttpResponse {
  readonly status: number;
  /** Without `content-encoding` and `content-length` if the body was decoded. */
  readonly headers: HttpHeaders;
  /** Includes those that describe the body. Set if it spares decoding the others. */
  readonly bodyHeaders?: HttpHeaders;
  /** Decoded; as received if its encoding is unknown or chained, with `content-encoding` still set. */
  readonly body: Buffer;
  /** Why the body could not be read; it is empty then. */
  readonly bodyFault?: 'too-large' | 'encoding';
}

/** Returns the value of a single-valued header: the first one if it occurs more than once. */
export function headerValue(headers: HttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'object' ? value[0] : value;
}

/** Returns the `Retry-After` of a response in milliseconds from `now`; `undefined` if missing or invalid. @see RFC 9110, 10.2.3 */
export function retryAfterMs(headers: HttpHeaders, now: number): number | undefined {
  const text = headerValue(headers, 'retry-after')?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  // Date.parse takes "-5" for a year. All three date formats of RFC 9110, 5.6.7 are in GMT; asctime does not say so.
  if (!/^[A-Z][a-z]{2,8}[, ]/.test(text)) return undefined;
  const at = Date.parse(/\bGMT$/.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}
