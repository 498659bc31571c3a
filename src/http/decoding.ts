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
import type { ContentEncoding } from './content-encoding.js';
import { TransportError } from './transport-error.js';

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

/**
 * A stream that decodes what is written to it.
 *
 * @param bodyError What it fails with where the data is damaged, made of a `TransportError`. Errors that are passed on to
 *   it from the body are left as they are.
 */
export function createDecoder(encoding: ContentEncoding, bodyError: (error: TransportError) => unknown): Transform {
  const decoder = newDecoder(encoding);
  const destroy = decoder._destroy;
  decoder._destroy = (fault, callback) => {
    const isOfZlib = fault !== null && 'errno' in fault && 'code' in fault && String(fault.code).startsWith('Z_');
    const seen = isOfZlib ? bodyError(decodingError(fault)) : fault;
    destroy.call(decoder, seen instanceof Error ? seen : null, callback);
  };
  return decoder;
}

function newDecoder(encoding: ContentEncoding): Transform {
  if (encoding === 'gzip') return createGunzip();
  return encoding === 'deflate' ? createInflate() : createBrotliDecompress();
}

function decodingError(fault: Error): TransportError {
  const tooLarge = 'code' in fault && fault.code === 'ERR_BUFFER_TOO_LARGE';
  return new TransportError(tooLarge ? 'too-large' : 'encoding', true, fault);
}

function decoderFor(body: Buffer, encoding: ContentEncoding): typeof gunzip {
  if (encoding === 'gzip') return gunzip;
  if (encoding === 'br') return brotliDecompress;
  // Some servers send deflate without the zlib header that RFC 9110, 8.4.1.2 asks for; its low bits are always 8.
  return ((body[0] ?? 0) & 0x0f) === 8 ? inflate : inflateRaw;
}
