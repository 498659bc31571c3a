import type { Deadlines } from './deadlines.js';
import { type ContentEncoding, decode, decodedHeaders } from './decoding.js';
import { type Dispatch, Exchange } from './exchange.js';
import type { HttpHeaders, HttpRequest, HttpResponse } from './message.js';

const NOTHING = Buffer.alloc(0);

/**
 * Sends a request and returns its complete response.
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

  protected override begin(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void {
    this.#status = status;
    this.#headers = headers;
    this.#encoding = encoding;
  }

  protected override receive(chunk: Buffer): void {
    this.#received += chunk.length;
    if (this.#received > (this.request.maxBytes ?? Infinity)) this.fail('too-large');
    // Most responses arrive in one piece, which is then the body.
    else if (this.#first === undefined) this.#first = chunk;
    else if (this.#chunks === undefined) this.#chunks = [this.#first, chunk];
    else this.#chunks.push(chunk);
  }

  protected override complete(): void {
    const status = this.#status;
    const headers = this.#headers;
    const body = this.#chunks === undefined ? (this.#first ?? NOTHING) : Buffer.concat(this.#chunks, this.#received);
    if (this.#encoding === 'identity') {
      this.#resolve({ status, headers, body });
      return;
    }
    const decoded = decode(body, this.#encoding, this.request.maxBytes);
    this.#resolve(decoded.then((decodedBody) => ({ status, headers: decodedHeaders(headers), body: decodedBody })));
  }

  protected override reject(error: unknown): void {
    this.#first = undefined;
    this.#chunks = undefined;
    this.#reject(error);
  }
}
