import { pipeline, Readable, type Transform } from 'node:stream';
import type { Dispatcher } from 'undici';
import { type ContentEncoding, createDecoder, decodedHeaders, decodingError } from './content-encoding.js';
import type { Deadlines } from './deadlines.js';
import { Exchange } from './exchange.js';
import type { HttpHeaders, HttpStream, HttpStreamRequest } from './http.js';
import { TransportError } from './transport-error.js';

/**
 * Sends a request and gives its answer as soon as the headers are there.
 *
 * @throws TransportError
 */
export function exchangeStreamed(
  dispatcher: Dispatcher,
  request: HttpStreamRequest,
  deadlines: Deadlines,
): Promise<HttpStream> {
  return new Promise((resolve, reject) => {
    new StreamedAnswer(request, deadlines, resolve, reject).start(dispatcher);
  });
}

/** Passes the body on as fast as it is read and no faster. */
class StreamedAnswer extends Exchange {
  readonly #resolve: (stream: HttpStream) => void;
  readonly #reject: (error: unknown) => void;
  readonly #limitsSilence: boolean;
  readonly #bodyError: (error: unknown) => unknown;
  #body: Readable | undefined;
  #received = 0;
  #paused = false;

  constructor(
    request: HttpStreamRequest,
    deadlines: Deadlines,
    resolve: (stream: HttpStream) => void,
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
    if (encoding === 'identity') {
      this.#resolve({ status, headers, body: this.#body });
    } else {
      this.#resolve({ status, headers: decodedHeaders(headers), body: this.#decoded(this.#body, encoding) });
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

  #decoded(body: Readable, encoding: ContentEncoding): Readable {
    const decoder = createDecoder(encoding);
    translateErrors(decoder, (fault) => this.#bodyError(fault));
    return pipeline(body, decoder, () => {});
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

/**
 * Has a decoder fail with our own error for damaged data, rather than with zlib's. Errors that were passed on to it
 * from the body have been translated already.
 */
function translateErrors(decoder: Transform, bodyError: (error: unknown) => unknown): void {
  const destroy = decoder._destroy;
  decoder._destroy = (fault, callback) => {
    const isOfZlib = fault !== null && 'errno' in fault && 'code' in fault && String(fault.code).startsWith('Z_');
    const seen = isOfZlib ? bodyError(decodingError(fault)) : fault;
    destroy.call(decoder, seen instanceof Error ? seen : null, callback);
  };
}
