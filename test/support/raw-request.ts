import { once } from 'node:events';
import { type IncomingHttpHeaders, request } from 'node:http';

/** An answer to a request that went out exactly as it was written. */
export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** What `fetch` would change or refuse: the path as it is, any method, any header. */
export interface RawOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** One request whose path is sent byte for byte. No redirects, no cookies of its own. */
export async function rawRequest(
  origin: string,
  path: string,
  { method = 'GET', headers = {}, body }: RawOptions = {},
): Promise<RawAnswer> {
  const { hostname, port } = new URL(origin);
  // A kept connection may end under a request: servers close one that has been idle for five seconds.
  const outgoing = request({
    hostname,
    port,
    path,
    method,
    headers: { accept: 'text/html', ...headers },
    agent: false,
  });
  outgoing.end(body);
  const [incoming] = await once(outgoing, 'response');
  let text = '';
  for await (const chunk of incoming.setEncoding('utf8')) text += chunk;
  return { status: incoming.statusCode, headers: incoming.headers, text };
}
