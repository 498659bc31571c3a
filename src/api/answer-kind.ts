import type { HttpClient } from '../http/http-client.js';
import type { HttpHeaders, HttpRequest, HttpResponse, HttpStream, HttpStreamRequest } from '../http/message.js';

/** How the answers of a call are received: as a whole, or as they come. */
export interface ResponseMode<A extends Answer> {
  send(http: HttpClient, request: HttpRequest, streaming: Streaming): Promise<A>;
  /** The body, for an error. */
  read(answer: A): Promise<Buffer>;
  /** Lets go of an answer that nobody will read. */
  discard(answer: A): void;
  /** Calls back when the answer needs its connection no more. */
  whenDone(answer: A, callback: () => void): void;
}

/** What every answer has. */
export interface Answer {
  readonly status: number;
  readonly headers: HttpHeaders;
}

/** What matters to answers that are received as they come. */
export type Streaming = Pick<HttpStreamRequest, 'timeoutCovers' | 'bodyError'>;

/** Most of a streamed body that is kept where it turns out to be that of an error. */
const MAX_ERROR_BYTES = 1024 * 1024;

/** Answers with their whole body. */
export const WHOLE: ResponseMode<HttpResponse> = Object.freeze({
  send: (http: HttpClient, request: HttpRequest) => http.send(request),
  read: ({ body }: HttpResponse) => Promise.resolve(body),
  discard: () => {},
  whenDone: (_answer: HttpResponse, callback: () => void) => callback(),
});

/** Answers whose body is still to come. */
export const STREAMED: ResponseMode<HttpStream> = Object.freeze({
  send: (http: HttpClient, request: HttpRequest, streaming: Streaming) => http.stream({ ...request, ...streaming }),
  read: readErrorBody,
  discard: ({ body }: HttpStream) => {
    body.destroy();
  },
  whenDone: ({ body }: HttpStream, callback: () => void) => {
    body.once('close', callback);
  },
});

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
