import { randomBytes } from 'node:crypto';
import { ConfigurationError, type StrategyOptions } from 'passport-oauth-app';
import { EmulatorError } from 'passport-oauth-app/emulator';

/** The environment, or a test's. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The port, and the secret that signs the session cookies. */
export interface ServerSettings {
  /** `undefined`: 3000, or a free one if that is taken. */
  readonly port: number | undefined;
  readonly sessionSecret: string;
}

/** Thrown if an environment variable is missing or malformed. The message says what to do. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

const needed = [
  'AUTH_URL',
  'BASE_URL',
  'CLIENT_ID',
  'CLIENT_SECRET',
  'CALLBACK_URL',
  'SCOPE',
  'SESSION_SECRET',
] as const;
/** Any of these means that there is a real service. */
const telling = ['AUTH_URL', 'BASE_URL', 'ENTERPRISE_BASE_URL', 'CLIENT_ID', 'CLIENT_SECRET', 'CALLBACK_URL'] as const;

/**
 * Returns the options for a real service; `undefined` if the environment names none, so that the emulator is used.
 *
 * @throws {SettingsError} that names what is missing
 */
export function realService(env: Environment): StrategyOptions | undefined {
  if (!telling.some((name) => env[name])) return undefined;
  const missing = needed.filter((name) => !env[name]);
  if (missing.length > 0) {
    throw new SettingsError(
      `For a real service these environment variables are missing: ${missing.join(', ')}.\n` +
        `To run with the emulator instead, unset ${telling.filter((name) => env[name]).join(', ')}.`,
    );
  }
  const { AUTH_URL = '', BASE_URL = '', CLIENT_ID = '', CLIENT_SECRET = '', CALLBACK_URL = '', SCOPE = '' } = env;
  return {
    authUrl: AUTH_URL,
    baseUrl: BASE_URL,
    enterpriseBaseUrl: env.ENTERPRISE_BASE_URL || undefined,
    clientID: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    callbackURL: CALLBACK_URL,
    scope: SCOPE,
    pkce: env.PKCE === '1',
  };
}

/** Returns the port and the session secret. @throws {SettingsError} if `PORT` is no port */
export function serverSettings(env: Environment): ServerSettings {
  const { PORT, SESSION_SECRET } = env;
  if (PORT && !(/^\d{1,5}$/.test(PORT) && Number(PORT) <= 65_535)) {
    throw new SettingsError(`PORT: expected a number from 0 to 65535, got ${JSON.stringify(PORT)}.`);
  }
  // Without a secret of its own it forgets all logins when it ends, as the sessions in its memory do.
  return { port: PORT ? Number(PORT) : undefined, sessionSecret: SESSION_SECRET || randomBytes(32).toString('hex') };
}

/** Returns whether an error is about the settings: its message says what to do, and a stack adds nothing. */
export function isExpected(error: unknown): error is Error {
  return error instanceof SettingsError || error instanceof ConfigurationError || error instanceof EmulatorError;
}
