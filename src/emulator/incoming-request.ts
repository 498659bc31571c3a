import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

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
  /** `undefined` if it was larger than 1 MiB. */
  readonly text: string | undefined;
  /** The organization domain that the `Host` header names; `undefined` on the plain host. */
  readonly organization: string | undefined;
}

const maxBodyBytes = 1024 * 1024;

/**
 * Reads a request completely.
 *
 * @returns `undefined` if the client disconnects first.
 */
export async function readRequest(request: IncomingMessage): Promise<IncomingRequest | undefined> {
  const { headers, url: target = '/', method = 'GET' } = request;
  const mark = target.indexOf('?');
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  const body = hasBody ? await readBody(request) : { text: '' };
  if (body === undefined) return undefined;
  return {
    method,
    path: mark < 0 ? target : target.slice(0, mark),
    query: mark < 0 ? {} : parseQuery(target.slice(mark + 1)),
    headers,
    text: body.text,
    organization: organizationOf(headers.host),
  };
}

/**
 * Returns the organization that a host names: the part before `.api.localhost`.
 *
 * @returns `undefined` for any other host, which is the plain one.
 */
export function organizationOf(host: string | undefined): string | undefined {
  return /^(.+)\.api\.localhost\.?(?::\d+)?$/i.exec(host ?? '')?.[1]?.toLowerCase();
}

/** Returns the media type of the body, in lower case and without parameters; empty if there is no `Content-Type`. */
export function mediaType(headers: IncomingHttpHeaders): string {
  return (headers['content-type'] ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** Parses JSON. Returns `undefined` if it is invalid. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}

/** Returns the body parsed if it is JSON, else its text; `undefined` if there is no body. */
export function parseBody({ headers, text }: IncomingRequest): unknown {
  if (text === undefined || text === '') return undefined;
  const json = /[/+]json$/.test(mediaType(headers)) ? parseJson(text) : undefined;
  return json === undefined ? text : json.value;
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
