import { once } from 'node:events';
import { type IncomingMessage, type RequestOptions, request } from 'node:http';
import { text } from 'node:stream/consumers';

/** What `fetch` would change or refuse: the path as it is, any method, any header, another way to the host. */
export interface RawOptions extends Pick<RequestOptions, 'hostname' | 'lookup' | 'method'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export type RawAnswer = Awaited<ReturnType<typeof rawRequest>>;

/** One request whose path is sent byte for byte. No redirects, no cookies of its own. */
export async function rawRequest(origin: string, path: string, { headers, body, ...options }: RawOptions = {}) {
  const { hostname, port } = new URL(origin);
  // A kept connection may end under a request: servers close one that has been idle for five seconds.
  const sent = { hostname, port, path, headers: { accept: 'text/html', ...headers }, agent: false, ...options };
  const [incoming]: IncomingMessage[] = await once(request(sent).end(body), 'response');
  if (!incoming) throw new Error('No answer');
  return { status: incoming.statusCode ?? 0, headers: incoming.headers, text: await text(incoming) };
}
