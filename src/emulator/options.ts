import type { TlsOptions } from 'node:tls';
import { checkedRoute, type EmulatorRoute } from './api-routes.js';
import { type Registration, sampleApplication } from './applications.js';
import type { Scopes } from './authorization-request.js';
import { choice, EmulatorError, integer, isRecord, list, record, refuse, text } from './checks.js';
import type { RefreshTokenReuse } from './grants.js';
import type { LogEntry } from './server.js';
import { type EmulatorUser, sampleUsers } from './users.js';

/** Options of the emulated service, all optional. */
export interface EmulatorOptions {
  /** Port to listen on. Default 0: a free one. */
  readonly port?: number | undefined;
  /** Loopback host in the addresses: `127.0.0.1` (the default), another one of 127.0.0.0/8, `::1` or `localhost`. */
  readonly host?: string | undefined;
  /** Certificate and private key in PEM. With them, the service speaks HTTPS. */
  readonly https?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /** Registered applications, at least one. Default: a sample one with the redirect URL `http://localhost:3000/callback`. */
  readonly applications?: readonly Registration[] | undefined;
  /** Accounts, at least one. Default: two sample ones, the second in the organization `acme`. */
  readonly users?: readonly EmulatorUser[] | undefined;
  /** Scopes that exist, with descriptions for users. Default: every well-formed name is accepted. */
  readonly scopes?: Scopes | undefined;
  /** Seconds; default 7200. */
  readonly accessTokenLifetime?: number | undefined;
  /** Seconds; default 60. */
  readonly codeLifetime?: number | undefined;
  /** Treatment of a used refresh token: `refuse` it (the default), `revoke` the grant too, or `grace`: the last one works once more. */
  readonly refreshTokenReuse?: RefreshTokenReuse | undefined;
  /** Treatment of a used code: `refuse` it (the default), or also `revoke` the grant that it gave. */
  readonly codeReuse?: 'refuse' | 'revoke' | undefined;
  /** Most API requests of one account at once. One more gets 429. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** Further resources of the API. They come before the built-in ones. */
  readonly routes?: readonly EmulatorRoute[] | undefined;
  /** Returns the time in epoch milliseconds; default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** Makes codes, tokens and generated secrets the same at each start, given the same requests in the same order at the same time. */
  readonly seed?: string | undefined;
  /** Number of requests that `requests` keeps, the newest; default 100,000. A smaller number saves memory in a long soak. */
  readonly keepRequests?: number | undefined;
  /** Called with each request when it has its outcome. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
}

/** The options with all defaults applied. Applications and users are checked where they are registered. */
export interface ResolvedOptions {
  readonly port: number;
  readonly host: string;
  readonly https: Pick<TlsOptions, 'key' | 'cert'> | undefined;
  readonly applications: readonly unknown[];
  readonly users: readonly unknown[];
  readonly scopes: Scopes | undefined;
  readonly accessTokenLifetime: number;
  readonly codeLifetime: number;
  readonly refreshTokenReuse: RefreshTokenReuse;
  readonly revokeOnCodeReuse: boolean;
  readonly concurrency: number | undefined;
  readonly routes: readonly EmulatorRoute[];
  readonly clock: (() => number) | undefined;
  readonly seed: string | undefined;
  readonly keepRequests: number;
  readonly log: ((entry: LogEntry) => void) | undefined;
}

const keys = [
  'port',
  'host',
  'https',
  'applications',
  'users',
  'scopes',
  'accessTokenLifetime',
  'codeLifetime',
  'refreshTokenReuse',
  'codeReuse',
  'concurrency',
  'routes',
  'clock',
  'seed',
  'keepRequests',
  'log',
] as const satisfies readonly (keyof EmulatorOptions)[];

const maxSeconds = 10 * 365 * 24 * 3600;

/**
 * Checks the options and applies the defaults.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` for an option that is unknown, malformed or would open the service to other computers;
 *   `ERR_EMULATOR_PRODUCTION` if `NODE_ENV` is `production`.
 */
export function resolveOptions(options: unknown, nodeEnv: string | undefined): ResolvedOptions {
  if (nodeEnv === 'production') {
    throw new EmulatorError(
      'The emulator lets anyone log in as anyone, so it does not start under NODE_ENV=production. Unset NODE_ENV, or use the real service.',
      { code: 'ERR_EMULATOR_PRODUCTION' },
    );
  }
  const given = record('startEmulator(): the options', options, keys);
  const whole = (key: string, usual: number, min: number, max: number) => integer(key, given[key] ?? usual, min, max);
  return Object.freeze({
    port: whole('port', 0, 0, 65_535),
    host: loopback(given.host ?? '127.0.0.1'),
    https: given.https === undefined ? undefined : certificate(given.https),
    applications: list('applications', given.applications ?? [sampleApplication], { min: 1 }),
    users: list('users', given.users ?? sampleUsers, { min: 1 }),
    scopes: given.scopes === undefined ? undefined : scopes(given.scopes),
    accessTokenLifetime: whole('accessTokenLifetime', 7200, 1, maxSeconds),
    codeLifetime: whole('codeLifetime', 60, 1, maxSeconds),
    refreshTokenReuse: choice('refreshTokenReuse', given.refreshTokenReuse ?? 'refuse', ['refuse', 'revoke', 'grace']),
    revokeOnCodeReuse: choice('codeReuse', given.codeReuse ?? 'refuse', ['refuse', 'revoke']) === 'revoke',
    concurrency: given.concurrency === undefined ? undefined : whole('concurrency', 0, 1, 1_000_000),
    routes: list('routes', given.routes ?? []).map((route, index) => checkedRoute(route, `routes[${index}]`)),
    clock: given.clock === undefined ? undefined : callable<() => number>('clock', given.clock),
    seed: given.seed === undefined ? undefined : text('seed', given.seed),
    keepRequests: whole('keepRequests', 100_000, 0, 10_000_000),
    log: given.log === undefined ? undefined : callable<(entry: LogEntry) => void>('log', given.log),
  });
}

function loopback(value: unknown): string {
  const fits = typeof value === 'string' && /^(localhost|::1|127(\.\d{1,3}){3})$/.test(value);
  return fits ? value : refuse('host', "a loopback host: '127.0.0.1', '::1' or 'localhost'", value);
}

function certificate(value: unknown): { readonly key: string | Buffer; readonly cert: string | Buffer } {
  const { key, cert } = record('https', value, ['key', 'cert']);
  return { key: pem('https.key', key), cert: pem('https.cert', cert) };
}

function pem(option: string, value: unknown): string | Buffer {
  if (Buffer.isBuffer(value)) return value;
  return typeof value === 'string' && value !== '' ? value : refuse(option, 'PEM text or a Buffer of it', value);
}

function scopes(value: unknown): Scopes {
  if (!isRecord(value)) refuse('scopes', 'an object of scope names and their descriptions', value);
  return Object.fromEntries(Object.entries(value).map(([name, words]) => [name, text(`scopes.${name}`, words)]));
}

function callable<T>(option: string, value: unknown): T {
  if (typeof value !== 'function') refuse(option, 'a function', value);
  return value as T;
}
