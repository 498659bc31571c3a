import type { OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** A response before it is written, so that a fault can still drop or replace it. */
export interface Reply {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | Uint8Array;
}

/** Returns a JSON response that must not be cached. */
export function json(status: number, body: unknown, headers: OutgoingHttpHeaders = {}): Reply {
  return {
    status,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(body) ?? '',
  };
}

/** Returns a response whose body is sent unchanged: bytes, HTML if it begins with `<`, else plain text. */
export function verbatim(status: number, body: string | Uint8Array, headers: OutgoingHttpHeaders = {}): Reply {
  let type = 'application/octet-stream';
  if (typeof body === 'string') type = `text/${body.trimStart().startsWith('<') ? 'html' : 'plain'}; charset=utf-8`;
  return { status, headers: { 'content-type': type, 'cache-control': 'no-store', ...headers }, body };
}

/** Returns the same headers with their names in lower case, as `Reply` has them. */
export function lowerCased(headers: OutgoingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/**
 * Returns a refusal in the shape of RFC 6749, 5.2, because service.md does not show one.
 *
 * @param error - A code such as `invalid_grant`.
 */
export function refusal(status: number, error: string, description: string, headers?: OutgoingHttpHeaders): Reply {
  return json(status, { error, error_description: description }, headers);
}

/** Returns a refusal of the API, in the shape that APIs of this kind use: `{ error: { message, code } }`, `code` the status. */
export function apiRefusal(status: number, message: string, headers?: OutgoingHttpHeaders): Reply {
  return json(status, { error: { message, code: status } }, headers);
}

/** Returns the response to a method that the resource does not support. @see RFC 9110, 15.5.6 */
export function methodNotAllowed(allow: string): Reply {
  return refusal(405, 'invalid_request', `Only ${allow} is supported here.`, { allow });
}

/** Writes the response. A closed connection is not an error. */
export function write(response: ServerResponse, reply: Reply, { head }: { readonly head: boolean }): void {
  const empty = reply.status === 204 || reply.status === 304;
  const length = empty ? {} : { 'content-length': Buffer.byteLength(reply.body) };
  response.writeHead(reply.status, { ...length, ...reply.headers });
  response.end(empty || head ? undefined : reply.body);
}
