import { once } from 'node:events';
import { type IncomingHttpHeaders, type RequestOptions, request } from 'node:http';

/** An answer to a request that went out exactly as it was written. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What `fetch` would change or refuse: the path as it is, any method, any header, another way to the host. */
export interface RawOptions extends Pick<RequestOptions, 'hostname' | 'lookup'> {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One request whose path is sent byte for byte. No redirects, no cookies of its own. */
export async function rawRequest(
  origin: string,
  path: string,
  { headers = {}, body, ...options }: RawOptions = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(origin);
  const all = { accept: 'text/html', ...headers };
  // A kept connection may end under a request: servers close one that has been idle for five seconds.
  const outgoing = request({ hostname, port, path, headers: all, agent: false, ...options });
  outgoing.end(body);
  const [incoming] = await once(outgoing, 'response');
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
  return { status: incoming.statusCode, headers: incoming.headers, text };
}
