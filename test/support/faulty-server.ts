import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** One request as it came over the wire. */
export interface ReceivedRequest {
  readonly method: string;
  /** Path and query, exactly as sent. */
  readonly target: string;
  /** Names in lower case; the last value where one came more than once. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

/** What the server does with a request. It owns the connection from then on. */
export type Behaviour = (socket: Socket, request: ReceivedRequest) => void;

export type FaultyServer = Awaited<ReturnType<typeof startFaultyServer>>;

/** Starts a server on a free port of 127.0.0.1 that does exactly what it is told, down to the bytes. */
export async function startFaultyServer() {
  const requests: ReceivedRequest[] = [];
  const planned: Behaviour[] = [];
  const sockets = new Set<Socket>();
  let usual = json({});
  // It reads requests alone: answers are written to the socket.
  const server = createServer({ noDelay: true, requestTimeout: 0, maxHeaderSize: 1e6 }, async (message) => {
    const { method = '', url: target = '', headersDistinct } = message;
    const body = await buffer(message).catch(() => undefined);
    // The client has left before the end of its request.
    if (body === undefined) return;
    const lines = Object.entries(headersDistinct).map(([name, values]) => [name, values?.at(-1)]);
    const request = { method, target, headers: Object.fromEntries(lines), body };
    requests.push(request);
    (planned.shift() ?? usual)(message.socket, request);
    server.emit('received');
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  const closed = once(server, 'close');
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    /** Every request received so far. */
    requests: requests as readonly ReceivedRequest[],
    /** Connections that are open now. */
    get open() {
      return sockets.size;
    },
    /** For the next request, or the next `times` requests. */
    next: (behaviour: Behaviour, times = 1) => void planned.push(...Array<Behaviour>(times).fill(behaviour)),
    /** For all requests that nothing else is said about. Default: an empty JSON object. */
    always: (behaviour: Behaviour) => {
      usual = behaviour;
    },
    /** Resolves when the n-th request is there. */
    received: async (count: number) => {
      while (requests.length < count) await once(server, 'received');
    },
    /** May be called more than once. */
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await closed;
    },
  };
}

/** An origin where nobody listens: no system gives a port below 1024 to a process that asks for a free one. */
export const REFUSING_ORIGIN = 'http://127.0.0.1:1';

/** Status line and headers. */
export function head(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

/** An answer with these headers and this body. */
export const answer =
  (status: number, headers: Readonly<Record<string, string>>, body: string | Buffer = ''): Behaviour =>
  (socket) => {
    socket.write(head(status, { 'content-length': String(Buffer.byteLength(body)), ...headers }));
    socket.write(body);
  };

/** An answer in JSON. */
export const json = (body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Behaviour =>
  answer(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(body));

/** Exactly these bytes. */
export const raw =
  (bytes: string | Buffer): Behaviour =>
  (socket) =>
    void socket.write(bytes);

/** No answer, ever. */
export const hang = (): Behaviour => () => {};

/** The connection is reset once the request was read. */
export const reset = (): Behaviour => (socket) => void socket.resetAndDestroy();
