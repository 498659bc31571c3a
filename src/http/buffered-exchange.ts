import { type ContentEncoding, decodedHeaders } from './content-encoding.js';
import type { Deadlines } from './deadlines.js';
import { type Dispatch, Exchange } from './exchange.js';
import type { HttpHeaders, HttpRequest, HttpResponse } from './message.js';

const NOTHING = Buffer.alloc(0);

/**
 * Sends a request and gives its whole answer.
 *
 * @throws TransportError
 */
export function sendBuffered(dispatch: Dispatch, request: HttpRequest, deadlines: Deadlines): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    new BufferedExchange(request, deadlines, resolve, reject).start(dispatch);
  });
}

class BufferedExchange extends Exchange {
  readonly #resolve: (response: HttpResponse | Promise<HttpResponse>) => void;
  readonly #reject: (error: unknown) => void;
  #status = 0;
  #headers: HttpHeaders = {};
  #encoding: ContentEncoding | 'identity' = 'identity';
  #first: Buffer | undefined;
  #chunks: Buffer[] | undefined;
  #received = 0;

  constructor(
    request: HttpRequest,
    deadlines: Deadlines,
    resolve: (response: HttpResponse | Promise<HttpResponse>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines);
    this.#resolve = resolve;
    this.#reject = reject;
  }

  protected override answer(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void {
    this.#status = status;
    this.#headers = headers;
    this.#encoding = encoding;
  }

  protected override receive(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > (this.request.maxBytes ?? Infinity)) this.fail('too-large');
    // Most answers come in one piece, which is then the body.
    else if (this.#first === undefined) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
  }

  protected override complete(): void {
    const body = this.#chunks === undefined ? (this.#first ?? NOTHING) : Buffer.concat(this.#chunks, this.#received);
    if (this.#encoding === 'identity') this.#resolve({ status: this.#status, headers: this.#headers, body });
    else this.#resolve(this.#decoded(body, this.#encoding));
  }

  protected override reject(error: unknown): void {
    this.#first = undefined;
    this.#chunks = undefined;
    this.#reject(error);
  }

  async #decoded(encoded: Buffer, encoding: ContentEncoding): Promise<HttpResponse> {
    // Loaded when it is needed: zlib takes its time, and most answers come without.
    const { decode } = await import('./decoding.js');
    const body = await decode(encoded, encoding, this.request.maxBytes);
    return { status: this.#status, headers: decodedHeaders(this.#headers), body };
  }
}
