import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { type Query, readQuery } from './query.js';

/** A request, read to its end. */
export interface Incoming {
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** `undefined` if its percent-encoding is broken. */
  readonly query: Query | undefined;
  readonly headers: IncomingHttpHeaders;
  /** `undefined` if it was larger than 1 MiB. */
  readonly text: string | undefined;
}

const maxBodyBytes = 1024 * 1024;

/**
 * Reads a request to its end.
 *
 * @returns `undefined` if the client went away before that.
 */
export async function readIncoming(request: IncomingMessage): Promise<Incoming | undefined> {
  const target = request.url ?? '/';
  const mark = target.indexOf('?');
  const body = hasBody(request.headers) ? await readBody(request) : { text: '' };
  if (body === undefined) return undefined;
  return {
    method: request.method ?? 'GET',
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? {} : readQuery(target.slice(mark + 1)),
    headers: request.headers,
    text: body.text,
  };
}

/** The media type of the body, in lower case and without parameters; empty if there is none. */
export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The body as JSON; `undefined` if it is something else. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

// Resolves to no text for a body that is too large, and to nothing for a client that went away.
function readBody(request: IncomingMessage): Promise<{ readonly text: string | undefined } | undefined> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= maxBodyBytes) chunks.push(chunk);
      else resolve({ text: undefined });
    });
    request.on('end', () => resolve({ text: Buffer.concat(chunks).toString('utf8') }));
    request.on('close', () => resolve(undefined));
    request.on('error', () => resolve(undefined));
  });
}
