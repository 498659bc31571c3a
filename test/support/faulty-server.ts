import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createGzip, gzipSync } from 'node:zlib';

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

/** A server that does exactly what it is told, down to the bytes. */
export interface FaultyServer {
  readonly origin: string;
  readonly port: number;
  /** Every request received so far. */
  readonly requests: readonly ReceivedRequest[];
  /** Connections that are open now. */
  readonly open: number;
  /** For the next request, or the next `times` requests. */
  next(behaviour: Behaviour, times?: number): void;
  /** For all requests that nothing else is said about. Default: an empty JSON object. */
  always(behaviour: Behaviour): void;
  /** Resolves when the n-th request is there. */
  received(count: number): Promise<void>;
  /** May be called more than once. */
  close(): Promise<void>;
}

/** Starts a faulty server on a free port of 127.0.0.1. */
export async function startFaultyServer(): Promise<FaultyServer> {
  const requests: ReceivedRequest[] = [];
  const planned: Behaviour[] = [];
  const sockets = new Set<Socket>();
  let usual: Behaviour = json({});
  // It reads requests alone: answers are written to the socket.
  const server = createServer({ noDelay: true, requestTimeout: 0, maxHeaderSize: 1e6 }, async (message) => {
    const request = await whole(message).catch(() => undefined);
    if (request === undefined) return;
    requests.push(request);
    const behaviour = planned.shift() ?? usual;
    behaviour(message.socket, request);
    server.emit('received');
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  });
  const closed = once(server, 'close');
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    origin: `http://127.0.0.1:${port}`,
    port,
    requests,
    get open() {
      return sockets.size;
    },
    next: (behaviour, times = 1) => {
      planned.push(...Array.from({ length: times }, () => behaviour));
    },
    always: (behaviour) => {
      usual = behaviour;
    },
    received: async (count) => {
      while (requests.length < count) await once(server, 'received');
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await closed;
    },
  };
}

/** An origin where nobody listens: no system gives a port below 1024 to a process that asks for a free one. */
export const REFUSING_ORIGIN = 'http://127.0.0.1:1';

/** An answer with these headers and this body. */
export function answer(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Buffer = '',
): Behaviour {
  return (socket) => {
    const length = { 'content-length': String(Buffer.byteLength(body)), ...headers };
    socket.write(`${head(status, length)}`);
    socket.write(body);
  };
}

/** An answer in JSON. */
export function json(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Behaviour {
  return answer(status, { 'content-type': 'application/json', ...headers }, JSON.stringify(body));
}

/** A page of a proxy, where JSON is expected. */
export function html(status = 200): Behaviour {
  return answer(status, { 'content-type': 'text/html; charset=utf-8' }, '<!doctype html><title>Gateway</title>');
}

/** JSON by its type, but not by its text. */
export function badJson(text = '{"data": [', status = 200): Behaviour {
  return answer(status, { 'content-type': 'application/json' }, text);
}

/** Exactly these bytes. */
export const raw =
  (bytes: string | Buffer): Behaviour =>
  (socket) =>
    void socket.write(bytes);

/** No answer, ever. */
export const hang = (): Behaviour => () => {};

/** The connection is reset once the request was read. */
export const reset = (): Behaviour => (socket) => void socket.resetAndDestroy();

/** The connection is closed in good order, with no answer. */
export const hangUp = (): Behaviour => (socket) => void socket.end();

/** Headers, then one byte each `everyMs`, for ever. */
export function drip(everyMs = 10, length = 1_000_000): Behaviour {
  return (socket) => {
    socket.write(head(200, { 'content-type': 'application/json', 'content-length': String(length) }));
    const timer = setInterval(() => socket.write(' '), everyMs);
    socket.on('close', () => clearInterval(timer));
  };
}

/** Less body than announced, then the end of the connection. */
export const truncated = (): Behaviour => (socket) =>
  void socket.end(`${head(200, { 'content-type': 'application/json', 'content-length': '1000' })}{"data": [`);

/** For each request a body of `bytes` zeros without its length announced, written as fast as it is taken. `sent` counts what was written for all. */
export function huge(bytes: number, sent: { bytes: number } = { bytes: 0 }): Behaviour {
  return (socket) => {
    socket.write(head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }));
    const chunk = Buffer.alloc(64 * 1024, '0');
    let written = 0;
    const write = () => {
      while (written < bytes && !socket.destroyed) {
        written += chunk.length;
        sent.bytes += chunk.length;
        socket.write(`${chunk.length.toString(16)}\r\n`);
        socket.write(chunk);
        if (!socket.write('\r\n')) return void socket.once('drain', write);
      }
      if (!socket.destroyed) socket.write('0\r\n\r\n');
    };
    write();
  };
}

/** A body that grows to `bytes` when it is decoded. */
export async function gzipBomb(bytes: number): Promise<Behaviour> {
  const gzip = createGzip({ level: 9 });
  const chunks: Buffer[] = [];
  gzip.on('data', (chunk: Buffer) => chunks.push(chunk));
  const zeros = Buffer.alloc(1024 * 1024);
  for (let written = 0; written < bytes; written += zeros.length) {
    if (!gzip.write(zeros)) await once(gzip, 'drain');
  }
  gzip.end();
  await once(gzip, 'end');
  return answer(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }, Buffer.concat(chunks));
}

/** Compressed twice. */
export function chainedEncodings(): Behaviour {
  const body = gzipSync(gzipSync('{}'));
  return answer(200, { 'content-type': 'application/json', 'content-encoding': 'gzip, gzip' }, body);
}

/** Status line and headers. */
export function head(status: number, headers: Readonly<Record<string, string>>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join('')}\r\n`;
}

/** A request with its body. @throws If the client leaves before its end */
async function whole(message: IncomingMessage): Promise<ReceivedRequest> {
  const { method = '', url: target = '', rawHeaders } = message;
  const names = rawHeaders.filter((_text, index) => index % 2 === 0);
  const headers = Object.fromEntries(names.map((name, index) => [name.toLowerCase(), rawHeaders[2 * index + 1] ?? '']));
  return { method, target, headers, body: await buffer(message) };
}
