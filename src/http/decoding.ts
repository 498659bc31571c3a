import type { ZlibOptions } from 'node:zlib';
import type { HttpHeaders } from './message.js';
import { TransportError } from './transport-error.js';

/** A content encoding that is decoded here (RFC 9110, 8.4.1; RFC 7932). */
export type ContentEncoding = 'gzip' | 'deflate' | 'br';

/** Value for `Accept-Encoding`. Without deflate: servers send two forms of it, which only a complete body distinguishes (RFC 9110, 8.4.1.2). */
export const ACCEPTED_ENCODINGS = 'gzip, br';

const ENCODINGS: ReadonlyMap<string, ContentEncoding> = new Map([
  ['gzip', 'gzip'],
  ['x-gzip', 'gzip'],
  ['deflate', 'deflate'],
  ['br', 'br'],
]);

/**
 * Returns the encoding that the body of a response is decoded from: `identity` for none, for an unknown one and for a chain.
 * Chains multiply the size that a small body may decode to, and no service needs them.
 */
export function contentEncoding(headers: HttpHeaders): ContentEncoding | 'identity' {
  return ENCODINGS.get(String(headers['content-encoding']).trim().toLowerCase()) ?? 'identity';
}

/** Returns the headers of a response whose body was decoded, without those that describe the encoded body. */
export function decodedHeaders(headers: HttpHeaders): HttpHeaders {
  const { 'content-encoding': _encoding, 'content-length': _length, ...others } = headers;
  return others;
}

/**
 * Decodes a complete body.
 *
 * @param maxBytes Maximum size of the decoded body; decoding stops there.
 * @throws TransportError `too-large` or `encoding`
 */
export async function decode(body: Buffer, encoding: ContentEncoding, maxBytes: number = Infinity): Promise<Buffer> {
  // Responses to HEAD, 204 and 304 may name an encoding and have no body.
  if (body.length === 0) return body;
  // Loaded on first use: zlib is slow to load, and most responses are not encoded.
  const { brotliDecompress, gunzip, inflate, inflateRaw } = await import('node:zlib');
  const decoders: Record<ContentEncoding, typeof gunzip> = {
    gzip: gunzip,
    br: brotliDecompress,
    // Some servers send deflate without the zlib header that RFC 9110, 8.4.1.2 requires; its low bits are always 8.
    deflate: ((body[0] ?? 0) & 0x0f) === 8 ? inflate : inflateRaw,
  };
  // zlib requires a limit of 1 or more.
  const options: ZlibOptions = maxBytes === Infinity ? {} : { maxOutputLength: Math.max(maxBytes, 1) };
  return new Promise((resolve, reject) => {
    decoders[encoding](body, options, (fault, decoded) => {
      if (fault) reject(decodingError(fault));
      else if (decoded.length > maxBytes) reject(new TransportError('too-large', true));
      else resolve(decoded);
    });
  });
}

/** Returns the error for a fault of zlib. */
export function decodingError(fault: Error): TransportError {
  const isTooLarge = 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
  return new TransportError(isTooLarge ? 'too-large' : 'encoding', true, fault);
}
