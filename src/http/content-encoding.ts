import { type HttpHeaders, headerValue } from './message.js';

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
export function contentLengthOf(headers: HttpHeaders): number | undefined {
  const value = headerValue(headers, 'content-length');
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}
