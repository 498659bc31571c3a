import { pipeline, Readable } from 'node:stream';
import type { Deadlines } from './deadlines.js';
import { type ContentEncoding, createDecoder, decodedHeaders } from './decoding.js';
import { type Dispatch, Exchange } from './exchange.js';
import type { HttpHeaders, HttpStream, HttpStreamRequest } from './message.js';
import { TransportError } from './transport-error.js';

/**
 * Sends a request and returns its response as soon as the headers are there.
 *
 * @throws TransportError
 */
export function sendStreamed(
  dispatch: Dispatch,
  request: HttpStreamRequest,
  deadlines: Deadlines,
): Promise<HttpStream> {
  return new Promise((resolve, reject) => {
    new StreamedExchange(request, deadlines, resolve, reject).start(dispatch);
  });
}

/** Passes the body on as fast as it is read and no faster. */
export class StreamedExchange extends Exchange {
  readonly #resolve: (stream: HttpStream | Promise<HttpStream>) => void;
  readonly #reject: (error: unknown) => void;
  readonly #bodyError: (error: unknown) => unknown;
  #limitsSilence: boolean;
  #body: Readable | undefined;
  #received = 0;
  #paused = false;

  constructor(
    request: HttpStreamRequest,
    deadlines: Deadlines,
    resolve: (stream: HttpStream | Promise<HttpStream>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines);
    this.#limitsSilence = request.timeoutCovers === 'silence';
    this.#bodyError = request.bodyError ?? ((error) => error);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  protected override begin(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void {
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
      this.#resolve({ status, headers, body });
      return;
    }
    const decoded = createDecoder(encoding, this.#bodyError).then((decoder) => ({
      status,
      headers: decodedHeaders(headers),
      body: keepFailuresLocal(pipeline(body, decoder, () => {})),
    }));
    this.#resolve(decoded);
  }

  protected override receive(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > (this.request.maxBytes ?? Infinity)) {
      this.fail('too-large');
      return;
    }
    if (this.#limitsSilence) this.deadlines.extend(this, this.request.timeoutMs);
    if (this.#body?.push(chunk) !== false) return;
    this.#paused = true;
    this.controller?.pause();
    // While the reader takes its time, the silence is not the service's.
    if (this.#limitsSilence) this.deadlines.extend(this, Infinity);
  }

  protected override complete(): void {
    this.#body?.push(null);
  }

  protected override reject(error: unknown): void {
    this.#reject(error);
    const seen = this.#bodyError(error);
    this.#body?.destroy(seen instanceof Error ? seen : new TransportError('aborted', true));
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#limitsSilence) this.deadlines.extend(this, this.request.timeoutMs);
    this.controller?.resume();
  }
}

/** Keeps the failure of a stream that nobody reads, yet or any more, from ending the process. Readers still get the error. */
function keepFailuresLocal<S extends Readable>(stream: S): S {
  return stream.on('error', () => {});
}
