import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { EmulatorError } from './checks.js';

/** Address and certificate of the server. */
export interface ListenerSetting {
  readonly port: number;
  /** A loopback host, or any other one for clients on other computers. */
  readonly host: string;
  readonly https: Pick<TlsOptions, 'key' | 'cert'> | undefined;
}

/** Servers that listen on one port. */
export interface Listener {
  readonly port: number;
  /** Ends all connections at once and frees the port. */
  readonly close: () => Promise<void>;
}

/**
 * Listens on IPv4 loopback and, where the computer has it, on IPv6 loopback with the same port: `localhost` and `*.localhost` may
 * resolve to either. Any other host is listened on alone.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_PORT` if the port is taken or not allowed; `ERR_EMULATOR_OPTION` if the certificate cannot be used.
 */
export async function listen(handler: RequestListener, setting: ListenerSetting): Promise<Listener> {
  const first = setting.host === 'localhost' ? '127.0.0.1' : setting.host;
  const isLoopback = first === '::1' || first.startsWith('127.');
  if (!isLoopback) return startServer(handler, setting, first, setting.port);
  const second = first === '::1' ? '127.0.0.1' : '::1';
  for (let attempt = 1; ; attempt += 1) {
    const one = await startServer(handler, setting, first, setting.port);
    try {
      const other = await startServer(handler, setting, second, one.port);
      const close = async () => void (await Promise.all([one.close(), other.close()]));
      return { port: one.port, close };
    } catch (error) {
      // Any other error means that the computer does not have the second address family.
      if (!(error instanceof EmulatorError && isTaken(error.cause))) return one;
      await one.close();
      // A port that is free in one family may be taken in the other. With port 0, another one is tried.
      if (setting.port !== 0 || attempt === 10) throw error;
    }
  }
}

async function startServer(
  handler: RequestListener,
  { https }: ListenerSetting,
  host: string,
  port: number,
): Promise<Listener> {
  const server = createHttpServer(handler, https);
  // Longer than clients keep an idle connection, so none is closed just as a request is sent on it.
  server.keepAliveTimeout = 120_000;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { port: await bind(server, host, port), close };
}

function createHttpServer(handler: RequestListener, https: ListenerSetting['https']): Server {
  if (https === undefined) return createServer(handler);
  try {
    return createTlsServer({ ...https }, handler);
  } catch (cause) {
    throw new EmulatorError('https must hold a private key and its certificate in PEM, but they cannot be used.', {
      code: 'ERR_EMULATOR_OPTION',
      option: 'https',
      cause,
    });
  }
}

function bind(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause) => {
      const message = isTaken(cause)
        ? `Port ${port} is taken. End what listens there, or choose another port (0 takes a free one).`
        : `The emulator cannot listen on port ${port}: ${cause.message}.`;
      reject(new EmulatorError(message, { code: 'ERR_EMULATOR_PORT', option: 'port', cause }));
    });
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function isTaken(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EADDRINUSE';
}
