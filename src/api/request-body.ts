import { Readable } from 'node:stream';
import type { ReadableStream, ReadableStreamDefaultReader } from 'node:stream/web';
import type { HttpRequest } from '../http/message.js';

/** The global `FormData`, or that of any copy of undici. */
export interface FormDataLike {
  append(name: string, value: string): void;
  getAll(name: string): unknown[];
  entries(): IterableIterator<[string, unknown]>;
}

/** A body that is not JSON. Streams and iterables can be sent once, all others repeatedly. */
export type RequestBodyInit =
  | string
  | ArrayBuffer
  | ArrayBufferView
  | URLSearchParams
  | Blob
  | FormDataLike
  | Readable
  | ReadableStream
  | globalThis.ReadableStream
  | AsyncIterable<string | Uint8Array>;

/** A body ready to be sent. */
export interface RequestBody {
  /** Returns what one try sends. @throws the error of a stream that broke before it could be sent */
  create(): HttpRequest['body'];
  /** Destroys a stream that will not be sent, or no further. */
  discard?(): void;
  /** True if the body can be sent more than once. */
  readonly isReplayable: boolean;
  /** Default for `Content-Type`. */
  readonly contentType?: string | undefined;
  /** Set if `create` returns a stream of a known length. */
  readonly contentLength?: number;
}

/**
 * Returns the body of a request, from the options `json` and `body`.
 *
 * @throws TypeError for both at once, a value without a JSON form, a stream that was read, and any other kind
 */
export function requestBody(options: { readonly json?: unknown; readonly body?: unknown }): RequestBody | undefined {
  const { json, body } = options;
  if (json === undefined) return body === undefined ? undefined : givenBody(body);
  if (body !== undefined) throw new TypeError('json and body: expected one of them, got both');
  const text: string | undefined = JSON.stringify(json);
  if (text === undefined) throw new TypeError(`json: a ${typeof json} has no JSON form`);
  return bytesBody(text, 'application/json');
}

function givenBody(body: unknown): RequestBody {
  if (typeof body === 'string' || body instanceof Uint8Array) return bytesBody(body);
  if (body instanceof URLSearchParams) {
    return bytesBody(body.toString(), 'application/x-www-form-urlencoded;charset=UTF-8');
  }
  if (body instanceof Blob) return blobBody(body, body.type === '' ? undefined : body.type);
  if (body instanceof ArrayBuffer) return bytesBody(new Uint8Array(body));
  if (ArrayBuffer.isView(body)) return bytesBody(new Uint8Array(body.buffer, body.byteOffset, body.byteLength));
  if (Object.prototype.toString.call(body) === '[object FormData]') return formBody(body as FormDataLike);
  if (body instanceof Readable) return streamBody(body);
  // By its tag: loading the class costs an eighth of the package's import, and it does not know the streams of other realms.
  if (Object.prototype.toString.call(body) === '[object ReadableStream]') {
    const stream = body as ReadableStream;
    refuseUsed(stream.locked || isDisturbed(stream));
    return streamBody(readableOf(stream.getReader()));
  }
  if (typeof body === 'object' && body !== null && Symbol.asyncIterator in body) {
    return streamBody(Readable.from(body as AsyncIterable<unknown>, { objectMode: false }));
  }
  throw new TypeError(
    'body: expected a string, bytes, Blob, URLSearchParams, FormData, Readable, web stream or async iterable; JSON goes into `json`',
  );
}

/** Larger bodies are sent in pieces of this size, so that a stalled upload can be detected. */
const PIECE_BYTES = 64 * 1024;

function bytesBody(body: string | Uint8Array, contentType?: string): RequestBody {
  if (body.length <= PIECE_BYTES) return { create: () => body, isReplayable: true, contentType };
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const create = () => Readable.from(piecesOf(bytes), { objectMode: false });
  return { create, isReplayable: true, contentType, contentLength: bytes.length };
}

function* piecesOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += PIECE_BYTES) yield bytes.subarray(start, start + PIECE_BYTES);
}

/** One read of a web stream. */
type WebRead = Promise<{ readonly done: boolean; readonly value?: unknown }>;

/**
 * Returns the content of a web stream in pieces: some give all of their bytes at once. Destroying it cancels the web stream
 * at once, even while it waits for a chunk.
 *
 * @param begun Reads that have begun already, in order
 */
export function readableOf(
  reader: Pick<ReadableStreamDefaultReader, 'read' | 'cancel'>,
  begun: WebRead[] = [],
): Readable {
  return new Readable({
    read() {
      const read: WebRead = begun.shift() ?? reader.read();
      read.then(
        ({ done, value }) => {
          const bytes = typeof value === 'string' ? Buffer.from(value) : value;
          if (done) this.push(null);
          else if (!(bytes instanceof Uint8Array))
            this.destroy(new TypeError('body: expected chunks of text or bytes'));
          else if (bytes.length === 0) this._read(0);
          else for (const piece of piecesOf(bytes)) this.push(piece);
        },
        (error: Error) => this.destroy(error),
      );
    },
    destroy(error, callback) {
      reader.cancel(error).catch(() => {});
      callback(error);
    },
  });
}

/** Each try reads the blob again: that of `fs.openAsBlob` is a file. */
function blobBody(blob: Blob, contentType: string | undefined): RequestBody {
  return {
    create: () => readableOf(blob.stream().getReader()),
    isReplayable: true,
    contentType,
    contentLength: blob.size,
  };
}

/** In names and texts of a form, which have CRLF instead, as in browsers. */
const LINE_BREAK = /\r\n|\r|\n/g;

/** Encodes a form as one Blob, which does not read the form's files yet. @see RFC 7578 */
function formBody(form: FormDataLike): RequestBody {
  const boundary = `form-${crypto.randomUUID()}`;
  const parts = [...form.entries()].flatMap(([name, value]): (string | Blob)[] => {
    const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${escapedQuotes(name.replace(LINE_BREAK, '\r\n'))}"`;
    if (typeof value === 'string') return [`${disposition}\r\n\r\n${value.replace(LINE_BREAK, '\r\n')}\r\n`];
    if (!(value instanceof Blob))
      throw new TypeError('body: expected each file of the form to be a Blob or File of Node');
    const fileName = value instanceof File ? value.name : 'blob';
    const type = value.type === '' ? 'application/octet-stream' : value.type;
    return [`${disposition}; filename="${escapedQuotes(fileName)}"\r\nContent-Type: ${type}\r\n\r\n`, value, '\r\n'];
  });
  return blobBody(new Blob([...parts, `--${boundary}--\r\n`]), `multipart/form-data; boundary=${boundary}`);
}

/** Escapes a name as browsers do, so that it ends neither its line nor its quotes. */
function escapedQuotes(name: string): string {
  return name.replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22');
}

function streamBody(body: Readable): RequestBody {
  refuseUsed(body.errored === null && (isDisturbed(body) || body.destroyed));
  // Without a listener, a stream that breaks while the call waits for a token or a slot would end the process.
  body.on('error', () => {});
  return {
    create: () => {
      if (body.errored) throw body.errored;
      return body;
    },
    discard: () => void body.destroy(),
    isReplayable: false,
  };
}

/** Takes web streams too; its types do not say so. */
const isDisturbed = Readable.isDisturbed as (stream: object) => boolean;

function refuseUsed(isUsed: boolean): void {
  if (isUsed) throw new TypeError('body: the stream was read or destroyed already; pass a new one');
}
