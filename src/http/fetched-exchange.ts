import type { Deadlines } from './deadlines.js';
import type { ContentEncoding } from './decoding.js';
import type { Dispatch } from './exchange.js';
import type { HttpHeaders, HttpResponse, HttpStream, HttpStreamRequest } from './message.js';
import { StreamedExchange } from './streamed-exchange.js';

/**
 * Sends a request and returns its response as soon as the headers are there: with its complete body if that arrived
 * together with them, as small ones do, otherwise with a stream. A stream costs more than the rest of a small request.
 *
 * @throws TransportError
 */
export function sendFetched(
  dispatch: Dispatch,
  request: HttpStreamRequest,
  deadlines: Deadlines,
): Promise<HttpResponse | HttpStream> {
  return new Promise((resolve, reject) => {
    new FetchedExchange(request, deadlines, resolve, reject).start(dispatch);
  });
}

class FetchedExchange extends StreamedExchange {
  readonly #resolve: (response: HttpResponse) => void;
  /** Set between the headers and the end of the turn in which they arrived. */
  #early: { readonly status: number; readonly headers: HttpHeaders; readonly chunks: Buffer[] } | undefined;

  constructor(
    request: HttpStreamRequest,
    deadlines: Deadlines,
    resolve: (response: HttpResponse | HttpStream | Promise<HttpStream>) => void,
    reject: (error: unknown) => void,
  ) {
    super(request, deadlines, resolve, reject);
    this.#resolve = resolve;
  }

  protected override begin(status: number, headers: HttpHeaders, encoding: ContentEncoding | 'identity'): void {
    if (encoding !== 'identity') {
      super.begin(status, headers, encoding);
      return;
    }
    this.#early = { status, headers, chunks: [] };
    queueMicrotask(() => this.#beginStream());
  }

  protected override receive(chunk: Buffer): void {
    if (this.#early === undefined) super.receive(chunk);
    else this.#early.chunks.push(chunk);
  }

  protected override complete(): void {
    if (this.#early === undefined) {
      super.complete();
      return;
    }
    const { status, headers, chunks } = this.#early;
    this.#early = undefined;
    const [first] = chunks;
    this.#resolve({
      status,
      headers,
      body: first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks),
    });
  }

  protected override reject(error: unknown): void {
    this.#early = undefined;
    super.reject(error);
  }

  #beginStream(): void {
    if (this.#early === undefined) return;
    const { status, headers, chunks } = this.#early;
    this.#early = undefined;
    super.begin(status, headers, 'identity');
    for (const chunk of chunks) super.receive(chunk);
  }
}
