import { pipeline, Readable } from 'node:stream';
import { type ContentEncoding, decodedHeaders } from './content-encoding.js';
import type { Deadlines } from './deadlines.js';
import { type Dispatch, Exchange } from './exchange.js';
import type { HttpHeaders, HttpStream, HttpStreamRequest } from './message.js';
import { TransportError } from './transport-error.js';

/**
 * Sends a request and gives its answer as soon as the headers are there.
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
class StreamedExchange extends Exchange {
  readonly #resolve: (stream: HttpStream | Promise<HttpStream>) => void;
  readonly #reject: (error: unknown) => void;
  readonly #limitsSilence: boolean;
  readonly #bodyError: (error: unknown) => unknown;
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

  protected override answer(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void {
    this.#body = new Readable({
      read: () => this.#resume(),
      destroy: (error, callback) => {
        // Nobody reads any more: nothing more need be sent.
        this.fail('aborted');
        callback(error);
      },
    });
    keepFailuresLocal(this.#body);
    if (encoding === 'identity') {
      this.#resolve({ status, headers, body: this.#body });
    } else {
      this.#resolve(
        this.#decoded(this.#body, encoding).then((body) => ({ status, headers: decodedHeaders(headers), body })),
      );
    }
  }

  protected override receive(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > (this.request.maxBytes ?? Infinity)) {
      this.fail('too-large');
      return;
    }
    if (this.#limitsSilence) this.deadlines.extend(this, this.request.timeoutMs);
    if (this.#body?.push(chunk) === false) this.#pause();
  }

  protected override complete(): void {
    this.#body?.push(null);
  }

  protected override reject(error: unknown): void {
    this.#reject(error);
    this.#destroyBody(error);
  }

  #destroyBody(error: unknown): void {
    const seen = this.#bodyError(error);
    this.#body?.destroy(seen instanceof Error ? seen : new TransportError('aborted', true));
  }

  async #decoded(body: Readable, encoding: ContentEncoding): Promise<Readable> {
    const { createDecoder } = await import('./decoding.js');
    return keepFailuresLocal(pipeline(body, createDecoder(encoding, this.#bodyError), () => {}));
  }
  #pause(): void {
    this.#paused = true;
    this.controller?.pause();
    // While the reader takes its time, the silence is not the service's.
    if (this.#limitsSilence) this.deadlines.extend(this, Infinity);
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#limitsSilence) this.deadlines.extend(this, this.request.timeoutMs);
    this.controller?.resume();
  }
}

/** A stream that fails while nobody reads it, yet or any more, must not end the process. Readers still get the error. */
function keepFailuresLocal<S extends Readable>(stream: S): S {
  return stream.on('error', () => {});
}
