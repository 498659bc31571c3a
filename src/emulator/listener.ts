import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TlsOptions } from 'node:tls';
import { EmulatorError } from './emulator-error.js';

/** Where to listen, and with what. */
export interface ListenerSetting {
  readonly port: number;
  /** A loopback host. */
  readonly host: string;
  readonly https: Pick<TlsOptions, 'key' | 'cert'> | undefined;
}

/** Servers that listen on one port. */
export interface Listener {
  readonly port: number;
  /** Ends all connections, whatever they wait for, and frees the port. */
  readonly close: () => Promise<void>;
}

/**
 * Listens on IPv4 loopback and, where the computer has it, on IPv6 loopback with the same port: `localhost` and `*.localhost` may
 * resolve to either.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_PORT` if the port is taken or not allowed; `ERR_EMULATOR_OPTION` if the certificate cannot be used.
 */
export async function listen(handler: RequestListener, setting: ListenerSetting): Promise<Listener> {
  const first = setting.host === 'localhost' ? '127.0.0.1' : setting.host;
  const second = first === '::1' ? '127.0.0.1' : '::1';
  for (let attempt = 1; ; attempt += 1) {
    const one = await started(handler, setting, first, setting.port);
    const other = await started(handler, setting, second, one.port).catch((error: unknown) => error);
    if (isListener(other)) return both(one, other);
    if (!isTaken(other)) return one;
    await one.close();
    // A port that is free in one family may be taken in the other; if any will do, another one is tried.
    if (setting.port !== 0 || attempt === 10) throw other;
  }
}

function both(one: Listener, other: Listener): Listener {
  return {
    port: one.port,
    close: async function close() {
      await Promise.all([one.close(), other.close()]);
    },
  };
}

function isListener(value: unknown): value is Listener {
  return typeof value === 'object' && value !== null && 'close' in value;
}

async function started(
  handler: RequestListener,
  setting: ListenerSetting,
  host: string,
  port: number,
): Promise<Listener> {
  const server = created(handler, setting);
  // Longer than clients keep an idle connection, so that none is closed just as a request is sent on it.
  server.keepAliveTimeout = 120_000;
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return { port: await bound(server, host, port), close: () => closed(server, sockets) };
}

function created(handler: RequestListener, { https }: ListenerSetting): Server {
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

function bound(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(unusable(error, port)));
    server.listen({ port, host, exclusive: true }, () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function unusable(cause: Error, port: number): EmulatorError {
  const reason = isTaken(cause)
    ? `Port ${port} is taken. End what listens there, or choose another port (0 takes a free one).`
    : `The emulator cannot listen on port ${port}: ${cause.message}.`;
  return new EmulatorError(reason, { code: 'ERR_EMULATOR_PORT', option: 'port', cause });
}

function isTaken(error: unknown): boolean {
  const underneath = error instanceof EmulatorError ? error.cause : error;
  return underneath instanceof Error && 'code' in underneath && underneath.code === 'EADDRINUSE';
}

function closed(server: Server, sockets: ReadonlySet<Socket>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const socket of sockets) socket.destroy();
  });
}
