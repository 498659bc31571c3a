import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';

/** Parameters by name. A repeated name has all of its values, in order. */
export type Query = Readonly<Record<string, string | readonly string[]>>;

/** A request, read completely. */
export interface IncomingRequest {
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  /** `undefined` if its percent-encoding is invalid. */
  readonly query: Query | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The host that the request is for: that of an absolute-form target, else the `Host` header. */
  readonly host: string;
  /** The body as sent; `undefined` if it is larger than the limit. */
  readonly bytes: Buffer | undefined;
}

/**
 * Reads a request completely.
 *
 * @param bodyLimit - Bytes. The rest of a larger body is read and dropped: closing the connection would lose the response.
 * @returns `undefined` if the client disconnects first.
 */
export async function readRequest(request: IncomingMessage, bodyLimit: number): Promise<IncomingRequest | undefined> {
  const { headers, url = '/', method = 'GET' } = request;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  const bytes = hasBody ? await readBody(request, bodyLimit) : Buffer.alloc(0);
  if (bytes === 'gone') return undefined;
  // An absolute-form target takes precedence over the Host header (RFC 9112, 3.2.2).
  const [, authority, origin = url] = /^https?:\/\/([^/?#]*)(.*)$/i.exec(url) ?? [];
  const target = origin.startsWith('/') || origin === '*' ? origin : `/${origin}`;
  const mark = target.indexOf('?');
  return {
    method,
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? {} : parseQuery(target.slice(mark + 1)),
    headers,
    host: authority ?? headers.host ?? '',
    bytes: bytes === 'too large' ? undefined : bytes,
  };
}

/** Returns the body decoded as UTF-8. */
export function bodyText({ bytes }: IncomingRequest): string {
  return bytes?.toString() ?? '';
}

/** Returns the media type of the body, in lower case and without parameters; empty if there is no `Content-Type`. */
export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Deeper JSON is rejected, because the code that walks a value is recursive. */
const maxJsonDepth = 200;

/** Parses JSON. Returns `undefined` if it is invalid or nested more than 200 levels deep. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  let depth = 0;
  // Skips strings, which may contain brackets.
  for (const [mark] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[{]|[\]}]/gs)) {
    if (mark === '[' || mark === '{') depth += 1;
    else if (mark === ']' || mark === '}') depth -= 1;
    if (depth > maxJsonDepth) return undefined;
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

const binaryTypes = /^(image|audio|video|font)\/|^application\/(octet-stream|zip|gzip|pdf|wasm|x-protobuf)$/;

/**
 * Returns the body parsed if it is JSON, as text if it is textual, else as bytes; `undefined` if there is no body, or it is too large.
 *
 * Textual is every type that does not stand for binary data, as long as the body is UTF-8 without NUL.
 */
export function parseBody({ headers, bytes }: Pick<IncomingRequest, 'headers' | 'bytes'>): unknown {
  if (bytes === undefined || bytes.length === 0) return undefined;
  const type = mediaType(headers);
  if (binaryTypes.test(type)) return bytes;
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    const json = /[/+]json$/.test(type) ? parseJson(text) : undefined;
    if (json !== undefined) return json.value;
    return text.includes('\0') ? bytes : text;
  } catch {
    return bytes;
  }
}

/**
 * Parses a query string or a form body.
 *
 * @param text - Without the question mark.
 * @returns `undefined` if the percent-encoding is invalid: an unreadable value could not be returned unchanged.
 * @see https://url.spec.whatwg.org/#application/x-www-form-urlencoded
 */
export function parseQuery(text: string): Query | undefined {
  const decode = (part: string) =>
    part.includes('%') || part.includes('+') ? decodeURIComponent(part.replaceAll('+', ' ')) : part;
  const values = new Map<string, string[]>();
  try {
    for (const pair of text.split('&')) {
      if (pair === '') continue;
      const mark = pair.indexOf('=');
      const name = decode(mark < 0 ? pair : pair.slice(0, mark));
      const value = mark < 0 ? '' : decode(pair.slice(mark + 1));
      const known = values.get(name);
      if (known === undefined) values.set(name, [value]);
      else known.push(value);
    }
  } catch {
    return undefined;
  }
  // Makes every name an own property, `__proto__` included.
  return Object.fromEntries([...values].map(([name, all]) => [name, all.length === 1 ? (all[0] ?? '') : all]));
}

/** Returns the value of a parameter; `undefined` if it is absent or repeated. */
export function single(query: Query, name: string): string | undefined {
  const value = Object.hasOwn(query, name) ? query[name] : undefined;
  return typeof value === 'string' ? value : undefined;
}

function readBody(request: IncomingMessage, limit: number): Promise<Buffer | 'too large' | 'gone'> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= limit) {
        chunks.push(chunk);
        return;
      }
      chunks.length = 0;
      resolve('too large');
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('close', () => resolve('gone'));
    request.on('error', () => resolve('gone'));
  });
}

/** A response that is not written yet, so that a fault can still drop or replace it. */
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

/** Returns a response in the format of a form. */
export function form(status: number, body: URLSearchParams, headers: OutgoingHttpHeaders): Reply {
  const own = { 'content-type': 'application/x-www-form-urlencoded', 'cache-control': 'no-store', ...headers };
  return { status, headers: own, body: body.toString() };
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
