import type { Transform } from 'node:stream';
import {
  brotliDecompress,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  gunzip,
  inflate,
  inflateRaw,
  type ZlibOptions,
} from 'node:zlib';
import { type HttpHeaders, headerValue } from './http.js';
import { TransportError } from './transport-error.js';

/** A content encoding that is decoded here (RFC 9110, 8.4.1; RFC 7932). */
export type ContentEncoding = 'gzip' | 'deflate' | 'br';

/** Value for `Accept-Encoding`. */
export const ACCEPTED_ENCODINGS = 'gzip, deflate, br';

const ENCODINGS: Readonly<Record<string, ContentEncoding | 'identity'>> = {
  '': 'identity',
  identity: 'identity',
  gzip: 'gzip',
  'x-gzip': 'gzip',
  deflate: 'deflate',
  br: 'br',
};

/**
 * The one encoding of an answer, `identity` for none, `undefined` for an unknown one and for several: chains multiply
 * what a small body may grow to, and no service needs them.
 */
export function contentEncoding(headers: HttpHeaders): ContentEncoding | 'identity' | undefined {
  const value = headers['content-encoding'];
  if (value === undefined) return 'identity';
  if (typeof value === 'object') return undefined;
  const name = value.trim().toLowerCase();
  return Object.hasOwn(ENCODINGS, name) ? ENCODINGS[name] : undefined;
}

/** The headers of an answer once its body is decoded: what described the encoded body is left out. */
export function decodedHeaders(headers: HttpHeaders): HttpHeaders {
  const { 'content-encoding': _encoding, 'content-length': _length, ...others } = headers;
  return others;
}

/** Bytes that the headers announce; `undefined` where they do not, or senselessly. */
export function announcedLength(headers: HttpHeaders): number | undefined {
  const value = headerValue(headers, 'content-length');
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/**
 * The decoded body.
 *
 * @param maxBytes Most bytes to give; decoding stops there.
 * @throws TransportError `too-large` or `encoding`
 */
export function decode(body: Buffer, encoding: ContentEncoding, maxBytes: number | undefined): Promise<Buffer> {
  // Answers to HEAD, 204 and 304 may name an encoding and have no body.
  if (body.length === 0) return Promise.resolve(body);
  const options: ZlibOptions = maxBytes === undefined ? {} : { maxOutputLength: Math.max(maxBytes, 1) };
  return new Promise((resolve, reject) => {
    decoderFor(body, encoding)(body, options, (fault, decoded) => {
      if (fault) return reject(decodingError(fault));
      // zlib wants at least 1 as a limit.
      if (maxBytes !== undefined && decoded.length > maxBytes) return reject(new TransportError('too-large', true));
      resolve(decoded);
    });
  });
}

/** A stream that decodes what is written to it. */
export function createDecoder(encoding: ContentEncoding): Transform {
  if (encoding === 'gzip') return createGunzip();
  return encoding === 'deflate' ? createInflate() : createBrotliDecompress();
}

/** The error for what zlib reported. */
export function decodingError(fault: Error): TransportError {
  const tooLarge = 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
  return new TransportError(tooLarge ? 'too-large' : 'encoding', true, fault);
}

function decoderFor(body: Buffer, encoding: ContentEncoding): typeof gunzip {
  if (encoding === 'gzip') return gunzip;
  if (encoding === 'br') return brotliDecompress;
  // Some servers send deflate without the zlib header that RFC 9110, 8.4.1.2 asks for; its low bits are always 8.
  return ((body[0] ?? 0) & 0x0f) === 8 ? inflate : inflateRaw;
}
