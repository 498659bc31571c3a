import { Readable } from 'node:stream';

/** The global `FormData`, or that of any copy of undici. */
export interface FormDataLike {
  entries(): IterableIterator<[string, string | FormPart]>;
}

/** A file or blob in a form. */
interface FormPart {
  readonly size: number;
  readonly type: string;
  readonly name?: string;
  stream(): unknown;
}

/** Whether it is a `FormData`, of whichever realm or copy: each copy of undici has a class of its own. */
export function isFormData(value: unknown): value is FormDataLike {
  return (
    typeof value === 'object' &&
    value !== null &&
    'entries' in value &&
    typeof value.entries === 'function' &&
    Object.prototype.toString.call(value) === '[object FormData]'
  );
}

/** A form ready to be sent, any number of times. */
export interface EncodedForm {
  create(): Readable;
  readonly replayable: true;
  readonly contentType: string;
  readonly contentLength: number;
}

/**
 * A form as `multipart/form-data`. Files are read while they are sent, anew for each try, and the length is told
 * beforehand: many services refuse uploads of unknown length.
 *
 * @see RFC 7578
 */
export function encodeForm(form: FormDataLike): EncodedForm {
  const boundary = `form-${crypto.randomUUID()}`;
  const parts = [...form.entries()].map(([name, value]) => ({
    head: Buffer.from(headOf(boundary, name, value)),
    value: contentOf(value),
  }));
  const tail = Buffer.from(`--${boundary}--\r\n`);
  const contentLength = parts.reduce((sum, { head, value }) => sum + head.length + sizeOf(value) + 2, tail.length);
  return {
    create: () => Readable.from(bytesOf(parts, tail), { objectMode: false }),
    replayable: true,
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength,
  };
}

interface EncodedPart {
  readonly head: Buffer;
  readonly value: Buffer | FormPart;
}

async function* bytesOf(parts: readonly EncodedPart[], tail: Buffer): AsyncGenerator<Uint8Array, void, undefined> {
  for (const { head, value } of parts) {
    yield head;
    // The cast: the stream of a Blob can be iterated in Node, which the types of the web do not say.
    if (Buffer.isBuffer(value)) yield value;
    else yield* value.stream() as AsyncIterable<Uint8Array>;
    yield Buffer.from('\r\n');
  }
  yield tail;
}

function headOf(boundary: string, name: string, value: string | FormPart): string {
  const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(lines(name))}"`;
  if (typeof value === 'string') return `${disposition}\r\n\r\n`;
  const type = /^[\u0020-\u007e]+$/.test(value.type) ? value.type : 'application/octet-stream';
  return `${disposition}; filename="${quoted(value.name ?? 'blob')}"\r\nContent-Type: ${type}\r\n\r\n`;
}

function contentOf(value: string | FormPart): Buffer | FormPart {
  return typeof value === 'string' ? Buffer.from(lines(value)) : value;
}

function sizeOf(value: Buffer | FormPart): number {
  return Buffer.isBuffer(value) ? value.length : value.size;
}

/** Names and texts have CRLF as line breaks, as in browsers. */
function lines(text: string): string {
  return text.replace(/\r\n|\r|\n/g, '\r\n');
}

/** The escapes that browsers use; a name cannot end its line or its quotes. */
function quoted(name: string): string {
  return name.replaceAll('\n', '%0A').replaceAll('\r', '%0D').replaceAll('"', '%22');
}
