import type { TlsOptions } from 'node:tls';
import { checkedRoute, type EmulatorRoute } from './api-routes.js';
import { type Registration, sampleApplication } from './applications.js';
import type { Scopes } from './authorization-request.js';
import { choice, integer, isRecord, list, record, refuse, text } from './checks.js';
import { EmulatorError } from './emulator-error.js';
import type { RefreshTokenReuse } from './grants.js';
import { type EmulatorUser, sampleUsers } from './users.js';

/** A request and its outcome, for a log or a live view. It holds no query, header or body, and so no secret. */
export interface LogEntry {
  readonly method: string;
  readonly host: string;
  /** Without the query. */
  readonly path: string;
  /** The status of the answer, or why there was none. */
  readonly outcome: number | 'hang' | 'reset' | 'gone';
  readonly durationMs: number;
}

/** How the emulated service is to be. Everything may be left out. */
export interface EmulatorOptions {
  /** The port to listen on; 0, the default, takes a free one. */
  readonly port?: number | undefined;
  /** The loopback host that stands in the addresses: `127.0.0.1` (the default), another one of 127.0.0.0/8, `::1` or `localhost`. */
  readonly host?: string | undefined;
  /** Certificate and private key in PEM: the service then speaks HTTPS. */
  readonly https?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /** The registered applications, one at least. A sample one with the redirect URL `http://localhost:3000/callback` unless given. */
  readonly applications?: readonly Registration[] | undefined;
  /** The accounts, one at least. Two sample ones unless given, the second in the organization `acme`. */
  readonly users?: readonly EmulatorUser[] | undefined;
  /** The scopes that exist, with what they mean in words. Unless given, every well-formed name is accepted. */
  readonly scopes?: Scopes | undefined;
  /** Seconds; 7200 unless given. */
  readonly accessTokenLifetime?: number | undefined;
  /** Seconds; 60 unless given. */
  readonly codeLifetime?: number | undefined;
  /** A refresh token that was used already: `refuse` it (the default), `revoke` the grant too, or `grace`: the last one works once more. */
  readonly refreshTokenReuse?: RefreshTokenReuse | undefined;
  /** A code that was used already: `refuse` it (the default), or `revoke` the grant that it gave too. */
  readonly codeReuse?: 'refuse' | 'revoke' | undefined;
  /** Most API requests of one account at once; one more gets 429. No limit unless given. */
  readonly concurrency?: number | undefined;
  /** Further resources of the API. They come before the ones that are always there. */
  readonly routes?: readonly EmulatorRoute[] | undefined;
  /** The time in epoch milliseconds; `Date.now` unless given. */
  readonly clock?: (() => number) | undefined;
  /** Makes codes, tokens and invented secrets the same at each start, given the same requests in the same order at the same time. */
  readonly seed?: string | undefined;
  /** How many requests `requests` keeps, the newest; 100,000 unless given. In a long soak, a smaller number saves memory. */
  readonly keepRequests?: number | undefined;
  /** Called once a request has its outcome. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
}

/** The options after all defaults were filled in. Applications and users are checked where they are registered. */
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
 * The options, checked and complete.
 *
 * @throws {EmulatorError} `ERR_EMULATOR_OPTION` for an option that is unknown, malformed or would let others than this computer in;
 *   `ERR_EMULATOR_PRODUCTION` if `NODE_ENV` is `production`.
 */
export function resolveOptions(options: unknown, nodeEnv: string | undefined): ResolvedOptions {
  refuseProduction(nodeEnv);
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

function refuseProduction(nodeEnv: string | undefined): void {
  if (nodeEnv !== 'production') return;
  throw new EmulatorError(
    'The emulator lets anybody log in as anybody, so it does not start under NODE_ENV=production. Unset NODE_ENV, or use the real service.',
    { code: 'ERR_EMULATOR_PRODUCTION' },
  );
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
  if (!isRecord(value)) refuse('scopes', 'an object of scope names and what they mean in words', value);
  return Object.fromEntries(Object.entries(value).map(([name, words]) => [name, text(`scopes.${name}`, words)]));
}

function callable<T>(option: string, value: unknown): T {
  if (typeof value !== 'function') refuse(option, 'a function', value);
  return value as T;
}
