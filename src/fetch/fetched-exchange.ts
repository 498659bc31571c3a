import { Readable } from 'node:stream';
import type { ResponseMode } from '../api/response.js';
import { decodeHeaders } from '../http/exchange.js';
import type { HttpResponse, HttpStream } from '../http/message.js';
import { StreamedExchange } from './streamed-exchange.js';

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
    this.handOver({ status, headers: decodeHeaders(this.headers), body });
  }

  protected override failed(error: unknown): void {
    this.#early = undefined;
    super.failed(error);
  }
}

/** A response of any status, with a complete body if it arrived with the headers. */
export type FetchedResponse = HttpResponse | HttpStream;

/** How {@link FetchedResponse}s are received. */
export const FETCHED: ResponseMode<FetchedResponse> = Object.freeze({
  isBuffered: false,
  exchange: FetchedExchange,
  discard: ({ body }: FetchedResponse) => {
    if (body instanceof Readable) body.destroy();
  },
});
