import type { TlsOptions } from 'node:tls';
import type { EmulatorRoute } from './api.js';
import type { Scopes } from './authorization-endpoint.js';
import { choice, EmulatorError, integer, isRecord, list, record, refuse, text } from './checks.js';
import { type EmulatorUser, isLabel, type Registration, sampleApplication, sampleUsers } from './directory.js';
import { checkedDelay, type Delay } from './faults.js';
import type { DomainHosts } from './hosts.js';
import { type Profile, type ProfileName, type RefreshTokenReuse, resolveProfile, reuses } from './profiles.js';
import type { LogEntry } from './server.js';

/** Options of the emulated service, all optional. */
export interface EmulatorOptions {
  /** Port to listen on. Default 0: a free one. */
  readonly port?: number | undefined;
  /** Host in the addresses: `127.0.0.1` (the default), another one of 127.0.0.0/8, `::1` or `localhost`; any other with `allowRemote`. */
  readonly host?: string | undefined;
  /** Allows hosts other than loopback, for containers: anyone who can reach the port can log in as anyone. Default false. */
  readonly allowRemote?: boolean | undefined;
  /** Place of the organization in `enterpriseBaseUrl`: `subdomain` (the default), or `path` for clients that cannot resolve `*.localhost`. */
  readonly domainHosts?: DomainHosts | undefined;
  /** Certificate and private key in PEM. With them, the service speaks HTTPS. */
  readonly https?: { readonly key: string | Buffer; readonly cert: string | Buffer } | undefined;
  /** Speaks as another service does: a name, or the differences from the default profile. */
  readonly profile?: ProfileName | Partial<Profile> | undefined;
  /** Registered applications, at least one. Default: a sample one with the redirect URL `http://localhost:3000/callback`. */
  readonly applications?: readonly Registration[] | undefined;
  /**
   * Customers, each with a host (`http://{tenant}.localhost:{port}`) and an application: see `optionsOf`. Each name is one DNS
   * label. Default: none.
   */
  readonly tenants?: readonly string[] | undefined;
  /** Accounts, at least one. Default: two sample ones, the second in the organization `acme`. */
  readonly users?: readonly EmulatorUser[] | undefined;
  /** Scopes that exist, with descriptions for users. Default: every well-formed name is accepted. */
  readonly scopes?: Scopes | undefined;
  /** Seconds. Default: that of the profile, 7200 without one. */
  readonly accessTokenLifetime?: number | undefined;
  /** Seconds until a refresh token expires, which token responses state as `refresh_token_expires_in`. Default: that of the profile, or never. */
  readonly refreshTokenLifetime?: number | undefined;
  /** Seconds; default 60. */
  readonly codeLifetime?: number | undefined;
  /**
   * What becomes of a used refresh token: `refuse` it, `revoke` the grant too, `grace`: the last one works once more, `until-used`: it
   * works until the first use of the tokens that replaced it, as with Doorkeeper's `previous_refresh_token`, or `until-refreshed`: until
   * the first use of the refresh token that replaced it. Default: that of the profile, `refuse` without one.
   */
  readonly refreshTokenReuse?: RefreshTokenReuse | undefined;
  /** Treatment of a used code: `refuse` it (the default), or also `revoke` the grant that it gave. */
  readonly codeReuse?: 'refuse' | 'revoke' | undefined;
  /** Accepts tokens of organization members on the plain API host. Default: that of the profile, true without one. */
  readonly plainHostForOrganizations?: boolean | undefined;
  /** Most API requests of one account at once. One more gets 429. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** `ask` the user each time (the default), or `remember`: redirect immediately if the user approved the same scopes before. */
  readonly consent?: 'ask' | 'remember' | undefined;
  /** Header `Cross-Origin-Opener-Policy` of the consent page, such as `same-origin`: a popup there loses its opener. Default: none. */
  readonly crossOriginOpenerPolicy?: OpenerPolicy | undefined;
  /** Milliseconds that every request takes, as a number or a range `[min, max]`. Default: none. */
  readonly latency?: Delay | undefined;
  /** Further resources of the API, or the path of an OpenAPI 3 file that describes them. They come before the built-in ones. */
  readonly routes?: readonly EmulatorRoute[] | string | undefined;
  /** Most bytes of a request body. A larger one gets 413. Default 1 MiB. */
  readonly bodyLimit?: number | undefined;
  /** Returns the time in epoch milliseconds; default `Date.now`. */
  readonly clock?: (() => number) | undefined;
  /** Makes codes, tokens and generated secrets the same at each start, given the same requests in the same order at the same time. */
  readonly seed?: string | undefined;
  /** File that keeps applications, users, grants and time across restarts. Default: none. */
  readonly state?: string | undefined;
  /** Number of requests that `requests` keeps, the newest; default 100,000. A smaller number saves memory in a long test. */
  readonly keepRequests?: number | undefined;
  /** Bytes of all bodies in `requests` together; the oldest bodies are dropped first. Default 256 MiB. */
  readonly keepBodyBytes?: number | undefined;
  /** Called with the outcome of each request. */
  readonly log?: ((entry: LogEntry) => void) | undefined;
}

/** Values of `Cross-Origin-Opener-Policy`. @see https://html.spec.whatwg.org/multipage/browsers.html#cross-origin-opener-policies */
export type OpenerPolicy = 'unsafe-none' | 'same-origin-allow-popups' | 'same-origin' | 'noopener-allow-popups';

const maxSeconds = 10 * 365 * 24 * 3600;
const MiB = 1024 * 1024;

function optional<T>(value: unknown, read: (value: unknown) => T): T | undefined {
  return value === undefined ? undefined : read(value);
}

/** One reader for each option: it checks the value and applies the default. */
const readers = {
  port: (value: unknown = 0): number => integer('port', value, 0, 65_535),
  host: (value: unknown = '127.0.0.1'): string => text('host', value, 'a host name or address'),
  allowRemote: (value: unknown = false): boolean => boolean('allowRemote', value),
  domainHosts: (value: unknown = 'subdomain'): DomainHosts => choice('domainHosts', value, ['subdomain', 'path']),
  https: (value: unknown): Pick<TlsOptions, 'key' | 'cert'> | undefined => optional(value, certificate),
  profile: (value: unknown): Profile => resolveProfile(value),
  applications: (value: unknown = [sampleApplication]): readonly unknown[] => list('applications', value, { min: 1 }),
  tenants: (value: unknown = []): readonly string[] => [...new Set(list('tenants', value).map(tenantName))],
  users: (value: unknown = sampleUsers): readonly unknown[] => list('users', value, { min: 1 }),
  scopes: (value: unknown): Scopes | undefined => optional(value, scopes),
  accessTokenLifetime: (value: unknown): number | undefined =>
    optional(value, (given) => integer('accessTokenLifetime', given, 1, maxSeconds)),
  refreshTokenLifetime: (value: unknown): number | undefined =>
    optional(value, (given) => integer('refreshTokenLifetime', given, 1, maxSeconds)),
  codeLifetime: (value: unknown = 60): number => integer('codeLifetime', value, 1, maxSeconds),
  refreshTokenReuse: (value: unknown): RefreshTokenReuse | undefined =>
    optional(value, (given) => choice('refreshTokenReuse', given, reuses)),
  codeReuse: (value: unknown = 'refuse'): 'refuse' | 'revoke' => choice('codeReuse', value, ['refuse', 'revoke']),
  plainHostForOrganizations: (value: unknown): boolean | undefined =>
    optional(value, (given) => boolean('plainHostForOrganizations', given)),
  concurrency: (value: unknown): number | undefined =>
    optional(value, (given) => integer('concurrency', given, 1, 1_000_000)),
  consent: (value: unknown = 'ask'): 'ask' | 'remember' => choice('consent', value, ['ask', 'remember']),
  crossOriginOpenerPolicy: (value: unknown): OpenerPolicy | undefined =>
    optional(value, (given) =>
      choice('crossOriginOpenerPolicy', given, [
        'unsafe-none',
        'same-origin-allow-popups',
        'same-origin',
        'noopener-allow-popups',
      ]),
    ),
  latency: (value: unknown): Delay | undefined => optional(value, (given) => checkedDelay('latency', given)),
  routes: (value: unknown = []): readonly EmulatorRoute[] | string =>
    typeof value === 'string'
      ? text('routes', value, 'a list, or the path of an OpenAPI file')
      : list('routes', value).map((route, index) => checkedRoute(route, `routes[${index}]`)),
  bodyLimit: (value: unknown = MiB): number => integer('bodyLimit', value, 0, 1024 * MiB),
  clock: (value: unknown): (() => number) | undefined => optional(value, (given) => callable('clock', given)),
  seed: (value: unknown): string | undefined => optional(value, (given) => text('seed', given)),
  state: (value: unknown): string | undefined => optional(value, (given) => text('state', given, 'the path of a file')),
  keepRequests: (value: unknown = 100_000): number => integer('keepRequests', value, 0, 10_000_000),
  keepBodyBytes: (value: unknown = 256 * MiB): number => integer('keepBodyBytes', value, 0, Number.MAX_SAFE_INTEGER),
  log: (value: unknown): ((entry: LogEntry) => void) | undefined => optional(value, (given) => callable('log', given)),
};

type Readers = typeof readers;

/** The options with all defaults applied. Applications and users are checked where they are registered. */
export type ResolvedOptions = { readonly [Key in keyof Readers]: ReturnType<Readers[Key]> };

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
  const given = record('startEmulator(): the options', options, Object.keys(readers));
  const read = Object.entries(readers).map(([name, reader]) => [name, reader(given[name])]);
  const resolved: ResolvedOptions = Object.freeze(Object.fromEntries(read));
  const isLoopback = /^(localhost|::1|127(\.\d{1,3}){3})$/.test(resolved.host);
  const expected = "a loopback host: '127.0.0.1', '::1' or 'localhost' (or any host with allowRemote: true)";
  return isLoopback || resolved.allowRemote ? resolved : refuse('host', expected, resolved.host);
}

function certificate(value: unknown): { readonly key: string | Buffer; readonly cert: string | Buffer } {
  const { key, cert } = record('https', value, ['key', 'cert']);
  const pem = (option: string, part: unknown) =>
    Buffer.isBuffer(part) ? part : text(option, part, 'PEM text or a Buffer of it');
  return { key: pem('https.key', key), cert: pem('https.cert', cert) };
}

function checkedRoute(value: unknown, option: string): EmulatorRoute {
  const route = record(option, value, ['method', 'path', 'handler']);
  const method = text(`${option}.method`, route.method);
  const path = text(`${option}.path`, route.path);
  const { handler } = route;
  if (!/^[A-Z]+$/.test(method)) refuse(`${option}.method`, 'an HTTP method in capitals', method);
  if (!path.startsWith('/') || /^\/api\/|[?#\s]/.test(path)) {
    refuse(`${option}.path`, 'a path below /api/v2, such as /projects/:projectId', path);
  }
  if (typeof handler !== 'function') refuse(`${option}.handler`, 'a function', handler);
  return { method, path, handler: handler as EmulatorRoute['handler'] };
}

function tenantName(value: unknown, index: number): string {
  const isName = typeof value === 'string' && isLabel(value) && value !== 'api' && value !== 'service';
  return isName ? value : refuse(`tenants[${index}]`, 'one DNS label in lower case, such as acme', value);
}

function scopes(value: unknown): Scopes {
  if (!isRecord(value)) refuse('scopes', 'an object of scope names and their descriptions', value);
  return Object.fromEntries(Object.entries(value).map(([name, words]) => [name, text(`scopes.${name}`, words)]));
}

function boolean(option: string, value: unknown): boolean {
  return typeof value === 'boolean' ? value : refuse(option, 'true or false', value);
}

function callable<T>(option: string, value: unknown): T {
  if (typeof value !== 'function') refuse(option, 'a function', value);
  return value as T;
}
