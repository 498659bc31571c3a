import type { Server } from 'node:http';
import { SettingsError } from './settings.js';

const usualPort = 3000;
/** How long requests may take to finish when the server is closed. */
const patienceMs = 5_000;

/**
 * Listens on `port`. Without one, on the usual port, or on a free one if that is taken.
 *
 * @param host `undefined` for all addresses.
 * @returns The port.
 * @throws {SettingsError} if the port that was asked for is taken
 */
export async function listen(server: Server, port: number | undefined, host: string | undefined): Promise<number> {
  try {
    return await listenOn(server, port ?? usualPort, host);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    if (port === undefined) return listenOn(server, 0, host);
    throw new SettingsError(`Port ${port} is taken. End what listens there, or set PORT to another one.`);
  }
}

/** Stops listening, and resolves when all requests have ended. Those that take too long are broken off. */
export async function closeServer(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve));
  // A connection whose last request ends after this is kept for another one that will never come.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const impatience = setTimeout(() => server.closeAllConnections(), patienceMs);
  await closed;
  clearInterval(sweep);
  clearTimeout(impatience);
}

function listenOn(server: Server, port: number, host: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host }, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

/** Resolves on SIGINT or SIGTERM. A second signal ends the process at once. */
export function untilAskedToEnd(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        process.once(signal, () => process.exit(1));
        resolve();
      });
    }
  });
}
