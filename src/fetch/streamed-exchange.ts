import { pipeline, Readable, type Transform } from 'node:stream';
import type { ResponseMode } from '../api/api-call.js';
import type { ApiStream } from '../api/call-options.js';
import type { Deadlines } from '../http/deadlines.js';
import { type ContentEncoding, decodedHeaders, decodingError } from '../http/decoding.js';
import { decodeHeaders, Exchange } from '../http/exchange.js';
import { type HttpRequest, type HttpResponse, headerValue } from '../http/message.js';
import type { TransportError } from '../http/transport-error.js';

const nothing = () => {};

/** Bytes that are queued for the reader before the service has to pause. */
const MAX_QUEUED_BYTES = 64 * 1024;

/** How long a reader may pause, in milliseconds. An unread response must not keep its connection forever. */
const MAX_READER_PAUSE_MS = 5 * 60_000;

/** How often a pause beyond the time limit is weighed against requests that wait for a connection, in milliseconds. */
const POOL_CHECK_MS = 1_000;

/** Ends the requests whose bodies were garbage collected unread. */
const unreachable = new FinalizationRegistry<{ handleEvent(): void }>((exchange) => exchange.handleEvent());

/** Receives a response as soon as its headers arrive, and passes the body on as fast as it is read. */
export class StreamedExchange<R = never> extends Exchange<R | ApiStream> {
  /** Bytes in {@link chunks}, which the reader has not asked for yet. */
  #queuedBytes = 0;
  #isPaused = false;
  #isComplete = false;
  /** The body while its reader waits for a chunk. */
  #waiting: Readable | undefined;
  /** Weak, because the connection refers to this object: a body that its reader has dropped must be collected. */
  #body: WeakRef<Readable> | undefined;
  /** When the whole response must have arrived, on the clock of {@link Deadlines}; `Infinity` for no such limit. */
  #endsAt: number;
  /** When the reader's pause has lasted too long, on the same clock. */
  #pauseEndsAt = Infinity;

  constructor(
    request: HttpRequest,
    deadlines: Deadlines,
    resolve: (response: R | ApiStream | Promise<R | ApiStream>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines, resolve, reject);
    const { timeoutCovers = 'total', timeoutMs } = request;
    this.#endsAt = timeoutCovers === 'total' ? performance.now() + timeoutMs : Infinity;
  }

  protected override connected(): void {
    const { body, timeoutMs } = this.request;
    if (this.#endsAt !== Infinity || !(body instanceof Readable)) return;
    // An upload takes as long as it needs while it flows. The dispatcher starts to read the body in this turn too.
    body.on('data', () => {
      if (this.status === 0) this.#limit(timeoutMs);
    });
  }

  protected override begin(): void {
    const { status, encoding } = this;
    const headers = decodeHeaders(this.headers);
    if (status >= 400) this.#endsAt = Math.min(this.#endsAt, this.expiresAt);
    const passOn = (reader: Readable) => this.#passOn(reader);
    const body = new Readable({
      // Reads nothing ahead: it asks for a chunk if, and only if, a reader waits for one.
      highWaterMark: 0,
      read(this: Readable) {
        passOn(this);
      },
      destroy: (error, callback) => {
        // Without a reader, a request that still runs is of no use.
        this.fail('aborted');
        callback(error);
      },
    });
    this.#body = new WeakRef(keepFailuresLocal(body));
    // A closure of this function as the held value would keep the body alive.
    unreachable.register(body, this);
    this.#readerPauses();
    if (encoding === 'identity') {
      this.#handOver({ status, headers, body });
      return;
    }
    const decoded = createDecoder(encoding, (error) => this.#visible(error)).then((decoder) => ({
      status,
      headers: decodedHeaders(headers),
      body: keepFailuresLocal(pipeline(body, decoder, () => {})),
    }));
    this.#handOver(decoded);
  }

  /** Resolves with the response, and drops all references to it, so that an unread body can be garbage collected. */
  #handOver(response: ApiStream | Promise<ApiStream>): void {
    this.resolve(response);
    this.resolve = nothing;
    this.reject = nothing;
  }

  protected override received(chunk: Buffer): boolean {
    this.#queuedBytes += chunk.length;
    if (this.#waiting) this.#passOn(this.#waiting);
    this.#isPaused = this.#queuedBytes >= MAX_QUEUED_BYTES;
    return !this.#isPaused;
  }

  protected override complete(): void {
    this.#isComplete = true;
    if (this.#waiting) this.#passOn(this.#waiting);
  }

  protected override failed(error: unknown): void {
    const body = this.#waiting ?? this.#body?.deref();
    this.#waiting = undefined;
    const seen = body && this.#visible(error);
    // A stream fails with an Error only; the reason of the caller's signal may be anything.
    body?.destroy(seen instanceof Error ? seen : new DOMException('This operation was aborted', 'AbortError'));
  }

  override expire(now: number): void {
    if (this.status === 0 || this.#waiting !== undefined || now >= this.#endsAt) super.expire(now);
    else if (now >= this.#pauseEndsAt || this.isPoolFull) this.fail('unread');
    else {
      this.request.onEnd?.();
      this.deadlines.set(this, Math.min(POOL_CHECK_MS, this.#pauseEndsAt - now));
    }
  }

  /** Gives the reader its next chunk, or the end, or lets it wait. */
  #passOn(reader: Readable): void {
    const chunk = this.chunks.shift();
    this.#waiting = undefined;
    if (chunk !== undefined) {
      this.#queuedBytes -= chunk.length;
      if (!this.#isComplete) this.#readerPauses();
      reader.push(chunk);
    } else if (this.#isComplete) reader.push(null);
    else {
      this.#waiting = reader;
      this.#limit(this.#mayBeSilent ? Infinity : this.request.timeoutMs);
    }
    if (!this.#isPaused || this.chunks.length > 0) return;
    this.#isPaused = false;
    this.resume?.();
  }

  /**
   * Limits the pause of a reader for which the service has done its part. After the time limit it loses the slot of its
   * account, and its connection if other requests wait for one; after some minutes it loses the connection in any case.
   */
  #readerPauses(): void {
    this.#pauseEndsAt = performance.now() + MAX_READER_PAUSE_MS;
    this.#limit(Math.min(this.request.timeoutMs, MAX_READER_PAUSE_MS));
  }

  /** True for an event stream, unless the caller limits its silence. */
  get #mayBeSilent(): boolean {
    if (this.request.timeoutCovers !== 'silence') return false;
    return /^text\/event-stream(?:;|$)/i.test(headerValue(this.bodyHeaders, 'content-type') ?? '');
  }

  #limit(ms: number): void {
    // A failed upload may flow on for a moment.
    if (this.isSettled) return;
    this.deadlines.set(this, this.#endsAt === Infinity ? ms : Math.min(ms, this.#endsAt - performance.now()));
  }

  #visible(error: unknown): unknown {
    const { bodyError } = this.request;
    return bodyError ? bodyError(error) : error;
  }
}

/** Keeps the failure of an unread stream from ending the process. Readers still get the error. */
function keepFailuresLocal<S extends Readable>(stream: S): S {
  return stream.on('error', () => {});
}

/** Creates a stream that decodes. @param bodyError Returns the error that it fails with if the data is damaged */
async function createDecoder(
  encoding: ContentEncoding,
  bodyError: (error: TransportError) => unknown,
): Promise<Transform> {
  const zlib = await import('node:zlib');
  const create = { gzip: zlib.createGunzip, deflate: zlib.createInflate, br: zlib.createBrotliDecompress }[encoding];
  const decoder = create();
  const { _destroy: destroy, _flush: flush } = decoder;
  decoder._destroy = (fault, callback) => {
    // Brotli has other codes. System errors have a number too, and a `syscall`.
    const isOfZlib = fault !== null && 'errno' in fault && !('syscall' in fault);
    const seen = isOfZlib ? bodyError(decodingError(fault)) : fault;
    destroy.call(decoder, seen instanceof Error ? seen : null, callback);
  };
  // An empty body is valid in every encoding.
  decoder._flush = (callback) => {
    if (decoder.bytesWritten === 0) callback();
    else flush.call(decoder, callback);
  };
  return decoder;
}

/** Responses whose body is still to be read. */
export const STREAMED: ResponseMode<ApiStream> = Object.freeze({
  isBuffered: false,
  exchange: StreamedExchange<never>,
  read: readErrorBody,
  discard: ({ body }: ApiStream) => {
    body.destroy();
  },
});

/** Maximum size of the body of an error that is kept if the response is a stream. */
const MAX_ERROR_BYTES = 1024 * 1024;

async function readErrorBody({ body }: ApiStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_ERROR_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES);
}

/**
 * Receives a response as soon as its headers arrive: with its complete body if that came with them, as small ones do,
 * otherwise with a stream. A stream costs more than the rest of a small request.
 */
export class FetchedExchange extends StreamedExchange<HttpResponse> {
  /** True between the headers and the end of the turn in which they arrived. */
  #isEarly = false;

  protected override begin(): void {
    if (this.encoding !== 'identity') {
      super.begin();
      return;
    }
    this.#isEarly = true;
    queueMicrotask(() => {
      if (this.isSettled) return;
      this.#isEarly = false;
      super.begin();
    });
  }

  protected override complete(): void {
    const { status, headers, chunks } = this;
    if (this.#isEarly) this.resolve({ status, headers: decodeHeaders(headers), body: Buffer.concat(chunks) });
    else super.complete();
  }
}

/** A response of any status, with a complete body if it arrived with the headers. */
export type FetchedResponse = HttpResponse | ApiStream;

/** How {@link FetchedResponse}s are received. */
export const FETCHED: ResponseMode<FetchedResponse> = Object.freeze({
  isBuffered: false,
  exchange: FetchedExchange,
  discard: ({ body }: FetchedResponse) => {
    if (body instanceof Readable) body.destroy();
  },
});
