import { AssertionError } from 'node:assert';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConfigurationError, type StrategyOptions } from 'passport-oauth-app';
import { EmulatorError } from 'passport-oauth-app/emulator';

/** The port, and the secret that signs the session cookies. */
export type ServerSettings = ReturnType<typeof serverSettings>;

/** Thrown if an environment variable is missing or malformed. The message says what to do. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/** Of an application whose environment names none. */
export const usualPort = 3000;
/** How long requests may take to finish when the server is closed. */
const patienceMs = 5_000;
/** The variables that name a service, by the options of the strategy. */
const variables = {
  authUrl: 'AUTH_URL',
  baseUrl: 'BASE_URL',
  clientID: 'CLIENT_ID',
  clientSecret: 'CLIENT_SECRET',
  callbackURL: 'CALLBACK_URL',
  scope: 'SCOPE',
  enterpriseBaseUrl: 'ENTERPRISE_BASE_URL',
};

/**
 * Returns the options for a real service; `undefined` if the environment names none, so that the emulator is used.
 *
 * @throws {SettingsError} that names what is missing
 */
export function realService(env: NodeJS.ProcessEnv): StrategyOptions | undefined {
  const names = Object.values(variables);
  // A scope and a session secret alone do not ask for one.
  const told = names.filter((name) => env[name] && name !== 'SCOPE');
  if (told.length === 0) return undefined;
  const missing = [...names, 'SESSION_SECRET'].filter((name) => !env[name] && name !== 'ENTERPRISE_BASE_URL');
  if (missing.length > 0) {
    throw new SettingsError(
      `For a real service these environment variables are missing: ${missing.join(', ')}.\n` +
        `To run with the emulator instead, unset ${told.join(', ')}.`,
    );
  }
  const options = Object.entries(variables).map(([option, name]) => [option, env[name] || undefined]);
  return { ...Object.fromEntries(options), pkce: env.PKCE === '1' } as StrategyOptions;
}

/** Returns the environment of a process that takes a service for a real one. */
export function environmentOf(options: StrategyOptions): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(variables).map(([option, name]) => [name, Reflect.get(options, option)]));
}

/** Returns the port, if one is asked for, and the session secret. @throws {SettingsError} if `PORT` is no port */
export function serverSettings({ PORT, SESSION_SECRET }: NodeJS.ProcessEnv) {
  if (PORT && !(/^\d{1,5}$/.test(PORT) && Number(PORT) <= 65_535)) {
    throw new SettingsError(`PORT: expected a number from 0 to 65535, got ${JSON.stringify(PORT)}.`);
  }
  // Without a secret of its own it forgets all logins when it ends, as the sessions in its memory do.
  return { port: PORT ? Number(PORT) : undefined, sessionSecret: SESSION_SECRET || randomBytes(32).toString('hex') };
}

/** Runs a program. Errors of the settings, and of the tour, are printed without a stack: their message says enough. */
export async function run(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    const kinds = [SettingsError, ConfigurationError, EmulatorError, AssertionError];
    if (!(error instanceof Error) || !kinds.some((kind) => error instanceof kind)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exit(1);
  }
}

/**
 * Listens on `port`. Without one, on the usual port, or on a free one if that is taken.
 *
 * @param host `undefined` for all addresses.
 * @returns The port.
 * @throws {SettingsError} if the port that was asked for is taken
 */
export async function listen(server: Server, port: number | undefined, host: string | undefined): Promise<number> {
  try {
    await once(server.listen({ port: port ?? usualPort, host }), 'listening');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EADDRINUSE')) throw error;
    if (port !== undefined)
      throw new SettingsError(`Port ${port} is taken. End what listens there, or set PORT to another one.`);
    await once(server.listen({ port: 0, host }), 'listening');
  }
  return (server.address() as AddressInfo).port;
}

/** Stops listening, and resolves when all requests have ended. Those that take too long are broken off. */
export async function closeServer(server: Server): Promise<void> {
  server.close();
  // A connection whose last request ends after this is kept for another one that will never come.
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const impatience = setTimeout(() => server.closeAllConnections(), patienceMs);
  await once(server, 'close');
  clearInterval(sweep);
  clearTimeout(impatience);
}

/** Resolves on SIGINT or SIGTERM. A second signal ends the process at once. */
export async function untilAskedToEnd(): Promise<void> {
  const signals = ['SIGINT', 'SIGTERM'];
  await Promise.race(signals.map((signal) => once(process, signal)));
  for (const signal of signals) process.once(signal, () => process.exit(1));
}
