import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** An answer, before it is written: so that a fault can still lose or replace it. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
}

/** A JSON answer that no cache keeps. */
export function json(status: number, body: unknown, headers: OutgoingHttpHeaders = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(body) ?? '',
  };
}

/** An answer with a body that is sent as it is: HTML if it begins with `<`, else plain text, or bytes. */
export function verbatim(status: number, body: string | Uint8Array, headers: OutgoingHttpHeaders = {}): Reply {
  return { status, headers: { 'content-type': typeOf(body), 'cache-control': 'no-store', ...headers }, body };
}

function typeOf(body: string | Uint8Array): string {
  if (typeof body !== 'string') return 'application/octet-stream';
  return body.trimStart().startsWith('<') ? 'text/html; charset=utf-8' : 'text/plain; charset=utf-8';
}

/** The same headers with their names in lower case, as `Reply` has them. */
export function lowerCased(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * A refusal in the one shape that all of the emulator's refusals have. service.md shows none, so it is that of RFC 6749, 5.2.
 *
 * @param error - A code such as `invalid_grant`.
 */
export function refusal(status: number, error: string, description: string, headers?: OutgoingHttpHeaders): Reply {
  return json(status, { error, error_description: description }, headers);
}

/** The answer to a method that the resource does not have. @see RFC 9110, 15.5.6 */
export function methodNotAllowed(allow: string): Reply {
  return refusal(405, 'invalid_request', `Only ${allow} is answered here.`, { allow });
}

/** Writes the answer and resolves when nothing more is to be done. A connection that is gone is no error. */
export function write(response: ServerResponse, reply: Reply, { head }: { readonly head: boolean }): void {
  const empty = reply.status === 204 || reply.status === 304;
  const length = empty ? {} : { 'content-length': Buffer.byteLength(reply.body) };
  response.writeHead(reply.status, { ...length, ...reply.headers });
  response.end(empty || head ? undefined : reply.body);
}
