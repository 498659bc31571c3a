import { pipeline, Readable } from 'node:stream';
import type { Deadlines } from './deadlines.js';
import { createDecoder, decodedHeaders } from './decoding.js';
import { Exchange } from './exchange.js';
import { decodeHeaders, type HttpResponse, type HttpStream, type HttpStreamRequest } from './message.js';

/** Receives a response as soon as its headers are there, and passes the body on as fast as it is read and no faster. */
export class StreamedExchange<R = never> extends Exchange<R | HttpStream> {
  readonly #bodyError: (error: unknown) => unknown;
  #limitsSilence: boolean;
  #body: Readable | undefined;
  #paused = false;

  constructor(
    request: HttpStreamRequest,
    deadlines: Deadlines,
    resolve: (response: R | HttpStream | Promise<R | HttpStream>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines, resolve, reject);
    this.#limitsSilence = request.timeoutCovers === 'silence';
    this.#bodyError = request.bodyError ?? ((error) => error);
  }

  protected override begin(): void {
    const { status, encoding } = this;
    const headers = decodeHeaders(this.headers);
    if (status >= 400) this.#limitsSilence = false;
    const body = new Readable({
      read: () => this.#resume(),
      destroy: (error, callback) => {
        // Ends the request if it is still running: nobody reads any more.
        this.fail('aborted');
        callback(error);
      },
    });
    this.#body = keepFailuresLocal(body);
    if (encoding === 'identity') {
      this.resolve({ status, headers, body });
      return;
    }
    const decoded = createDecoder(encoding, this.#bodyError).then((decoder) => ({
      status,
      headers: decodedHeaders(headers),
      body: keepFailuresLocal(pipeline(body, decoder, () => {})),
    }));
    this.resolve(decoded);
  }

  protected override receive(chunk: Buffer): boolean {
    this.#paused = this.#body?.push(chunk) === false;
    // While the reader takes its time, the silence is not the service's.
    if (this.#limitsSilence) this.deadlines.extend(this, this.#paused ? Infinity : this.request.timeoutMs);
    return !this.#paused;
  }

  protected override complete(): void {
    this.#body?.push(null);
  }

  protected override failed(error: unknown): void {
    const seen = this.#bodyError(error);
    // A stream fails with an Error only; the reason of the caller's signal may be anything.
    this.#body?.destroy(seen instanceof Error ? seen : new DOMException('This operation was aborted', 'AbortError'));
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#limitsSilence) this.deadlines.extend(this, this.request.timeoutMs);
    this.resume?.();
  }
}

/**
 * Receives a response as soon as its headers are there: with its complete body if that arrived together with them, as
 * small ones do, otherwise with a stream. A stream costs more than the rest of a small request.
 */
export class FetchedExchange extends StreamedExchange<HttpResponse> {
  /** Set between the headers and the end of the turn in which they arrived. */
  #early: Buffer[] | undefined;

  protected override begin(): void {
    if (this.encoding !== 'identity') {
      super.begin();
      return;
    }
    this.#early = [];
    queueMicrotask(() => {
      const chunks = this.#early;
      if (chunks === undefined) return;
      this.#early = undefined;
      super.begin();
      for (const chunk of chunks) super.receive(chunk);
    });
  }

  protected override receive(chunk: Buffer): boolean {
    if (this.#early === undefined) return super.receive(chunk);
    this.#early.push(chunk);
    return true;
  }

  protected override complete(): void {
    const chunks = this.#early;
    if (chunks === undefined) {
      super.complete();
      return;
    }
    this.#early = undefined;
    const { status } = this;
    const [first] = chunks;
    const body = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks);
    this.resolve({ status, headers: decodeHeaders(this.headers), body });
  }

  protected override failed(error: unknown): void {
    this.#early = undefined;
    super.failed(error);
  }
}

/** Keeps the failure of a stream that nobody reads, yet or any more, from ending the process. Readers still get the error. */
function keepFailuresLocal<S extends Readable>(stream: S): S {
  return stream.on('error', () => {});
}
