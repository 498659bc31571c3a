import { pipeline, Readable } from 'node:stream';
import type { ResponseMode } from '../api/response.js';
import type { Deadlines } from '../http/deadlines.js';
import { createDecoder, decodedHeaders } from '../http/decoding.js';
import { decodeHeaders, Exchange } from '../http/exchange.js';
import { type HttpStream, type HttpStreamRequest, headerValue } from '../http/message.js';

/** Bytes that are queued for the reader before the service has to pause. */
const MAX_QUEUED_BYTES = 64 * 1024;

/** How long a reader may pause. An unread response must not keep its connection forever. */
const MAX_READER_PAUSE_MS = 5 * 60_000;

/** How often a pause beyond the time limit is weighed against requests that wait for a connection. */
const POOL_CHECK_MS = 1_000;

/** Ends the requests whose bodies were garbage collected unread. */
const unreachable = new FinalizationRegistry<{ handleEvent(): void }>((exchange) => exchange.handleEvent());

/** Receives a response as soon as its headers arrive, and passes the body on as fast as it is read. */
export class StreamedExchange<R = never> extends Exchange<R | HttpStream> {
  readonly #bodyError: (error: unknown) => unknown;
  /** Chunks that the reader has not asked for yet. */
  readonly #queue: Buffer[] = [];
  #queuedBytes = 0;
  readonly #limitsEvents: boolean;
  #isPaused = false;
  #isComplete = false;
  /** The body while its reader waits for a chunk. */
  #waiting: Readable | undefined;
  /** Weak, because the connection refers to this object: a body that its reader has dropped must be collected. */
  #body: WeakRef<Readable> | undefined;
  /** When the whole has to be received, on the clock of {@link Deadlines}; `Infinity` for no such limit. */
  #endsAt: number;
  /** When the pause of the reader has lasted too long, on the same clock. */
  #pauseEndsAt = Infinity;

  constructor(
    request: HttpStreamRequest,
    deadlines: Deadlines,
    resolve: (response: R | HttpStream | Promise<R | HttpStream>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines, resolve, reject);
    this.#endsAt = request.timeoutCovers === 'total' ? performance.now() + request.timeoutMs : Infinity;
    this.#limitsEvents = request.timeoutCovers !== 'silence';
    this.#bodyError = request.bodyError ?? ((error) => error);
  }

  protected override connected(): void {
    const { body, timeoutMs } = this.request;
    if (this.#endsAt !== Infinity || !(body instanceof Readable)) return;
    // An upload takes as long as it needs while it flows. The dispatcher reads the body from this turn on too.
    body.on('data', () => {
      if (this.status === 0) this.deadlines.extend(this, timeoutMs);
    });
  }

  protected override begin(): void {
    const { status, encoding } = this;
    const headers = decodeHeaders(this.headers);
    if (status >= 400) this.#endsAt = Math.min(this.#endsAt, this.expiresAt);
    const wanted = (reader: Readable) => this.#wanted(reader);
    const body = new Readable({
      // Reads nothing ahead: it asks for a chunk if, and only if, a reader waits for one.
      highWaterMark: 0,
      read(this: Readable) {
        wanted(this);
      },
      destroy: (error, callback) => {
        // Ends the request if it is still running: there is no reader.
        this.fail('aborted');
        callback(error);
      },
    });
    this.#body = new WeakRef(keepFailuresLocal(body));
    // A closure of this function as the held value would keep the body alive.
    unreachable.register(body, this);
    this.#readerPauses();
    if (encoding === 'identity') {
      this.handOver({ status, headers, body });
      return;
    }
    const decoded = createDecoder(encoding, this.#bodyError).then((decoder) => ({
      status,
      headers: decodedHeaders(headers),
      body: keepFailuresLocal(pipeline(body, decoder, () => {})),
    }));
    this.handOver(decoded);
  }

  protected override receive(chunk: Buffer): boolean {
    const reader = this.#waiting;
    if (reader === undefined) {
      this.#queue.push(chunk);
      this.#queuedBytes += chunk.length;
      this.#isPaused = this.#queuedBytes >= MAX_QUEUED_BYTES;
      return !this.#isPaused;
    }
    this.#waiting = undefined;
    this.#readerPauses();
    reader.push(chunk);
    return true;
  }

  protected override complete(): void {
    this.#isComplete = true;
    this.#waiting?.push(null);
    this.#waiting = undefined;
  }

  protected override failed(error: unknown): void {
    const seen = this.#bodyError(error);
    const body = this.#waiting ?? this.#body?.deref();
    this.#waiting = undefined;
    // A stream fails with an Error only; the reason of the caller's signal may be anything.
    body?.destroy(seen instanceof Error ? seen : new DOMException('This operation was aborted', 'AbortError'));
  }

  override expire(now: number): void {
    if (this.status === 0 || this.#waiting !== undefined || now >= this.#endsAt) super.expire(now);
    else if (now >= this.#pauseEndsAt || this.isPoolFull) this.fail('unread');
    else {
      this.request.onEnd?.();
      this.deadlines.add(this, Math.min(POOL_CHECK_MS, this.#pauseEndsAt - now));
    }
  }

  /** Gives the reader its next chunk, or begins to wait for it. */
  #wanted(reader: Readable): void {
    const chunk = this.#queue.shift();
    if (chunk !== undefined) {
      this.#queuedBytes -= chunk.length;
      if (!this.#isComplete) this.#readerPauses();
      reader.push(chunk);
    } else if (this.#isComplete) reader.push(null);
    else {
      this.#waiting = reader;
      this.#limit(this.#mayBeSilent ? Infinity : this.request.timeoutMs);
    }
    if (!this.#isPaused || this.#queue.length > 0) return;
    this.#isPaused = false;
    this.resume?.();
  }

  /**
   * The service has done its part, as far as is known. After the time limit, a paused reader loses the slot of its account, and
   * its connection if other requests wait for one. After some minutes it loses the connection in any case.
   */
  #readerPauses(): void {
    this.#pauseEndsAt = performance.now() + MAX_READER_PAUSE_MS;
    this.#limit(Math.min(this.request.timeoutMs, MAX_READER_PAUSE_MS));
  }

  /** Event streams may be silent for as long as they like, unless the caller has said otherwise. */
  get #mayBeSilent(): boolean {
    if (this.#limitsEvents) return false;
    return /^text\/event-stream(?:;|$)/i.test(headerValue(this.bodyHeaders, 'content-type') ?? '');
  }

  #limit(ms: number): void {
    this.deadlines.extend(this, this.#endsAt === Infinity ? ms : Math.min(ms, this.#endsAt - performance.now()));
  }
}

/** Keeps the failure of an unread stream from ending the process. Readers still get the error. */
function keepFailuresLocal<S extends Readable>(stream: S): S {
  return stream.on('error', () => {});
}

/** Responses whose body is still to be read. */
export const STREAMED: ResponseMode<HttpStream> = Object.freeze({
  isBuffered: false,
  exchange: StreamedExchange<never>,
  read: readErrorBody,
  discard: ({ body }: HttpStream) => {
    body.destroy();
  },
});

/** Maximum size of the body of an error that is kept if the response is a stream. */
const MAX_ERROR_BYTES = 1024 * 1024;

async function readErrorBody({ body }: HttpStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > MAX_ERROR_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES);
}
