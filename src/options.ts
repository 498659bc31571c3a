import type { IncomingMessage } from 'node:http';
import type { Dispatcher } from 'undici';
import type { ApiClient } from './api/api-client.js';
import { headerIn, type RequestHeaders, strategyHeaders, tokenHeaderName } from './api/request-headers.js';
import * as check from './checks.js';
import { nameOfTenant } from './errors.js';
import type { RefreshWindow } from './grants/grant.js';
import type { GrantRepositoryOptions } from './grants/grant-repository.js';
import type { HttpClient } from './http/http-client.js';
import {
  apiPathBelow,
  authorizationAddress,
  endpointAddress,
  enterpriseAddress,
  furtherOrigins,
  issuerIdentifier,
  serviceAddress,
} from './oauth/addresses.js';
import { type Claims, type EnterpriseUrlReader, enterpriseUrlOf, type TokenResponseFields } from './oauth/claims.js';
import { HostPatterns } from './oauth/host-patterns.js';
import type { EndsGrant } from './oauth/refusal.js';
import type { ApplicationGrant, TokenParams } from './oauth/token-endpoint.js';
import { type GrantedScopes, TEN_YEARS_S } from './oauth/token-response.js';
import { Secret } from './redaction.js';
import type { TokenStore } from './stores/token-store.js';
import { MAX_TIMER_MS } from './waiting.js';

/** A request in a handler of Express 4, Express 5 or Connect. */
export type IncomingRequest = IncomingMessage & Express.Request;

/** Returns the id of a user's grant. A method, so that applications may use narrower types of request and user. */
export type GrantIdReader = { read(req: IncomingRequest, user: Express.User): string | undefined }['read'];

/** The error that a callback has instead of a code. */
export interface CallbackError {
  /** The parameter `error`. */
  readonly error: string;
  /** The parameter `error_description`, at most 500 characters of it. Anyone may have written it. */
  readonly description: string | undefined;
}

/** Further parameters of the authorization request: an object, or a function that returns one for a request. */
export type AuthorizationParams =
  | Readonly<Record<string, string>>
  | { read(req: IncomingRequest): Readonly<Record<string, string>> }['read'];

/**
 * Options of `new Strategy(options, verify?)`. A wrong, unknown or missing option throws a ConfigurationError that names it. The
 * types of required options accept `undefined`, so that values of `process.env` need no cast; at run time it throws.
 *
 * @typeParam UserProfile The properties that `userProfile` adds to the profile.
 */
export interface StrategyOptions<UserProfile extends object = object> {
  /** Base URL of the authorization server. https, or http on a loopback host. */
  readonly authUrl: string | undefined;
  /** Base URL of the API. https, or http on a loopback host. */
  readonly baseUrl: string | undefined;
  /**
   * Base URL of the API for enterprise organizations, with `{domain}` as one whole label of its host. Or a function that returns a
   * URL on one of `enterpriseHosts`, or `undefined` for `baseUrl`. Default: all requests go to `baseUrl`.
   */
  readonly enterpriseBaseUrl?: string | ((claims: Claims, tokenResponse: TokenResponseFields) => unknown) | undefined;
  /** Hosts of the URLs that a function `enterpriseBaseUrl` returns: exact names, or `*.` and a domain. Required with such a function. */
  readonly enterpriseHosts?: readonly string[] | undefined;
  /** Further origins to which `client.fetch` sends the access token, such as `['https://{domain}.mcp.example.com']`. Default: none. */
  readonly origins?: readonly string[] | undefined;
  /** The client ID from registration. */
  readonly clientID: string | undefined;
  /** The client secret from registration. Also encrypts the cookies of pending logins. Of a list, the first is sent and encrypts; all decrypt. */
  readonly clientSecret: string | readonly string[] | undefined;
  /** A registered redirect URL. A relative URL is resolved against the request and follows Express' `trust proxy` setting. */
  readonly callbackURL: string | undefined;
  /** Scopes to request: `'project tm'` or `['project', 'tm']`. */
  readonly scope: string | readonly string[];
  /** Passport's name for the strategy, and its key under `req.session`. Default: `'oauth-app'`. */
  readonly name?: string | undefined;
  /** Returns the organization's domain; `undefined`, `null` or `''` for no organization. Default: the claim `domain`. */
  readonly organizationDomain?: ((claims: Claims, tokenResponse: TokenResponseFields) => unknown) | undefined;
  /** Sends an S256 code challenge (RFC 7636), for services that support PKCE. Default: `false`. */
  readonly pkce?: boolean | undefined;
  /** The issuer identifier (RFC 9207). A callback with another `iss`, or none, is refused with 403. Default: `iss` is ignored. */
  readonly issuer?: string | undefined;
  /**
   * Returns true if an `error` of the callback means that the user declined. Default: `access_denied`, LinkedIn's
   * `user_cancelled_login` and `user_cancelled_authorize`, and `consent_required` without `prompt=none`.
   */
  readonly declines?: ((answer: CallbackError) => boolean) | undefined;
  /** Loads more of the profile after the code exchange. The result is merged into `profile`; with opaque access tokens it must have the `id`. */
  readonly userProfile?: ((client: ApiClient, tokenResponse: TokenResponseFields) => Promise<UserProfile>) | undefined;
  /** Passes the request to `verify` as its first argument. Default: `false`. */
  readonly passReqToCallback?: boolean | undefined;
  /** Stores grants. Default: the application's session store, under keys with a prefix. */
  readonly tokenStore?: TokenStore | undefined;
  /**
   * Returns the id of a user's grant. Never return what the request alone claims, such as a query parameter: anyone could name
   * another user's. Default: a random id in the session.
   */
  readonly grantId?: GrantIdReader | undefined;
  /**
   * Returns the parameters of token requests for a grant of the application itself, such as `{ grant_type: 'client_credentials' }`
   * (RFC 6749, 4.4); `undefined` for ids of users. `strategy.client(grantId)` then needs no login. Called for each token request.
   * Default: all grants are of users.
   */
  readonly applicationGrant?: ApplicationGrant | undefined;
  /** One secret or several. The first encrypts tokens at rest; all decrypt. Default: tokens are not encrypted. */
  readonly encryptionKeys?: string | readonly string[] | undefined;
  /** Seconds before the token expires. Within `leeway` a request waits for a refresh; within `ahead` a refresh starts in the background. Default: 30 and 300. */
  readonly refresh?: { readonly leeway?: number | undefined; readonly ahead?: number | undefined } | undefined;
  /** Size (entries) and time to live (seconds) of the in-process cache of decoded grants. Default: 10,000 and 30. `false` turns it off. */
  readonly cache?: { readonly max?: number | undefined; readonly ttl?: number | undefined } | false | undefined;
  /** Maximum number of concurrent API requests for each account: the user and organization, over all of their grants. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** Name of the header that carries the bare access token, such as `X-Shopify-Access-Token`. Default: `Authorization`, with `Bearer`. */
  readonly accessTokenHeader?: string | undefined;
  /** Headers of each API request. Its `User-Agent` goes to the token and revocation endpoints too. */
  readonly headers?: RequestHeaders | undefined;
  /** Maximum size in bytes of a parsed API response, decoded. `stream` and `fetch` have no limit. Default: 64 MiB. */
  readonly maxResponseBytes?: number | undefined;
  /** Authorization endpoint: a path below `authUrl`, or a whole URL. A trailing slash and a query are kept. Default: `/oauth/authorize`. */
  readonly authorizationPath?: string | undefined;
  /** Token endpoint: a path below `authUrl`, or a whole URL. A trailing slash and a query are kept. Default: `/oauth/token`. */
  readonly tokenPath?: string | undefined;
  /** Revocation endpoint (RFC 7009), for logouts and `deleteGrant`: a path below `authUrl`, or a whole URL. Default: tokens are not revoked. */
  readonly revocationPath?: string | undefined;
  /** Path of the API below `baseUrl`; `''` for none. Default: `/api/v2`. */
  readonly apiPath?: string | undefined;
  /** Format of token requests: `'form'` for `application/x-www-form-urlencoded` (RFC 6749, appendix B). Default: `'json'`. */
  readonly tokenRequest?: 'json' | 'form' | undefined;
  /**
   * Place of client ID and secret in token requests. `'basic'`: the `Authorization` header, each part form-encoded (RFC 6749,
   * 2.3.1); `'basic-raw'`: not encoded, for servers that do not decode. Default: `'body'`.
   */
  readonly clientAuthentication?: 'body' | 'basic' | 'basic-raw' | undefined;
  /**
   * Returns true if a refused refresh means that the refresh token is dead and the user must log in again. Called for each answer
   * without tokens except 408, 429 and 5xx. Default: `({ error }) => error === 'invalid_grant'`.
   */
  readonly endsGrant?: EndsGrant | undefined;
  /** More parameters of token requests, such as `resource` (RFC 8707) or `audience`: the same for all, or by grant type. */
  readonly tokenParams?: TokenParams | undefined;
  /** Seconds that an access token lives if neither it nor its response says. Default: 3,600 with a refresh token, else no end. */
  readonly accessTokenLifetime?: number | undefined;
  /** Maps the names of the scopes that the service granted: aliases, and scopes that imply others. Default: as they are. */
  readonly grantedScopes?: GrantedScopes | undefined;
  /** More parameters of the authorization request, the same for all or by request. */
  readonly authorizationParams?: AuthorizationParams | undefined;
  /** Separator of scope names in the authorization request. Default: a space. */
  readonly scopeSeparator?: string | undefined;
  /** Milliseconds for one HTTP request, from connecting to the last byte. Default: 10,000. */
  readonly timeout?: number | undefined;
  /** An undici Dispatcher for all requests of the package (proxy, mock, custom TLS). The application closes it. Default: a keep-alive pool. */
  readonly dispatcher?: Dispatcher | undefined;
  /** Returns the time in epoch milliseconds, for tests. Default: `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/** Key of {@link TenantSettings} in the options that `tenants()` passes. */
export const TENANT: unique symbol = Symbol('tenant');

/** What makes a strategy one of many. */
export interface TenantSettings {
  readonly tenant: string;
  /** Shared by all tenants. */
  readonly http: readonly [api: HttpClient, authorization: HttpClient];
  /** Copies what the session before a login had of other tenants. */
  readonly carryOver: (former: object, next: object) => void;
}

/** Key of a check in the emulator's options: a test that uses it must not send codes and secrets to another service. */
const EMULATOR = Symbol.for('passport-oauth-app.emulator');

interface InternalOptions {
  readonly [TENANT]?: TenantSettings;
  readonly [EMULATOR]?: (options: object) => readonly [option: string, problem: string] | undefined;
}

/** Options that always have a value, and are used as they are given. */
type Given =
  | ('authUrl' | 'baseUrl' | 'clientID' | 'callbackURL' | 'name' | 'pkce' | 'passReqToCallback')
  | ('authorizationPath' | 'tokenPath' | 'apiPath' | 'tokenRequest' | 'clientAuthentication')
  | ('scopeSeparator' | 'clock');

/** Options that are used in another form, and what is made of them. */
interface Converted {
  readonly enterpriseBaseUrl: string | undefined;
  readonly enterpriseUrl: ((claims: Claims, tokenResponse: TokenResponseFields) => string | undefined) | undefined;
  readonly enterpriseHosts: HostPatterns | undefined;
  readonly origins: readonly string[];
  /** The first is sent, and encrypts; all decrypt. */
  readonly clientSecret: readonly [Secret, ...Secret[]];
  readonly scope: string;
  readonly grantId: ((req: IncomingMessage, user: unknown) => unknown) | undefined;
  readonly encryptionKeys: readonly Secret[];
  readonly refresh: RefreshWindow;
  readonly cache: GrantRepositoryOptions['cache'];
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly authorizationParams: Readonly<Record<string, string>> | ((req: IncomingMessage) => unknown);
  readonly timeoutMs: number;
  readonly tenant: TenantSettings | undefined;
}

type Defined = { readonly [Option in Given]: NonNullable<StrategyOptions[Option]> };

/** The checked options with their defaults, in the units that the code uses. */
export interface Settings extends Defined, Converted, Omit<StrategyOptions, Given | keyof Converted | 'timeout'> {}

/** Options as {@link READERS} reads them, before they are converted. */
interface Changed {
  readonly timeout: number;
  readonly enterpriseBaseUrl: string | EnterpriseUrlReader | undefined;
  readonly refresh: { readonly leeway: number; readonly ahead: number };
  readonly cache: { readonly max: number; readonly ttl: number } | undefined;
}

/** Reads seconds, up to a day. */
const seconds = check.number(0, 24 * 60 * 60, 'seconds');

const cacheLimits = check.group({
  max: check.withDefault(10_000, check.integer(1, 100_000_000, 'grants')),
  ttl: check.withDefault(30, seconds),
});

/** Makes an option optional that has no default. */
const optional = <T>(read: check.Reader<T>): check.Optional<T | undefined> => check.withDefault(undefined, read);

/** Reads an optional function. */
const optionalFunction = <T>(): check.Optional<T | undefined> => optional(check.fn<T>);

/** Reads an option that may be a function, whose results are checked when it is called. */
const orFunction =
  <F, T>(read: check.Reader<T>): check.Reader<F | T> =>
  (option, value) =>
    typeof value === 'function' ? check.fn<F>(option, value) : read(option, value);

/** A shorter secret can be guessed. */
const MIN_SECRET_LENGTH = 16;

/** Reads one secret or several. */
function encryptionKeys(option: string, value: unknown): readonly Secret[] {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  if (all.length > 0 && all.every((entry) => typeof entry === 'string' && entry.length >= MIN_SECRET_LENGTH))
    return Object.freeze(all.map((entry) => new Secret(String(entry))));
  const expected = `expected a string of at least ${MIN_SECRET_LENGTH} characters, or an array of them`;
  throw check.optionError(option, `${expected}; use 32 random bytes in base64`);
}

/** What a service needs no option for. */
export const DEFAULTS = {
  authorizationPath: '/oauth/authorize',
  tokenPath: '/oauth/token',
  apiPath: '/api/v2',
  tokenRequest: 'json',
  clientAuthentication: 'body',
  pkce: false,
} as const;

/** How each option is read, and its default. An option that is not in this table is refused. */
export const READERS: check.Readers<
  Omit<Settings, 'timeoutMs' | 'enterpriseUrl' | 'tenant' | keyof Changed> & Changed
> = {
  authUrl: check.requiredOption(serviceAddress),
  baseUrl: check.requiredOption(serviceAddress),
  enterpriseBaseUrl: optional(orFunction(enterpriseAddress)),
  enterpriseHosts: optional(HostPatterns.read),
  origins: check.withDefault([], furtherOrigins),
  clientID: check.requiredOption(check.text),
  clientSecret: check.requiredOption((option, value) => {
    const [first, ...others] = Array.isArray(value) && value.length > 0 ? value : [value];
    return [new Secret(check.text(option, first)), ...others.map((other) => new Secret(check.text(option, other)))];
  }),
  callbackURL: check.requiredOption(check.callbackUrl),
  scope: check.requiredOption(check.scope),
  name: check.withDefault('oauth-app', check.strategyName),
  organizationDomain: optionalFunction(),
  pkce: check.withDefault(DEFAULTS.pkce, check.boolean),
  issuer: optional(issuerIdentifier),
  declines: optionalFunction(),
  userProfile: optionalFunction(),
  passReqToCallback: check.withDefault(false, check.boolean),
  tokenStore: optional(
    check.withMethods<TokenStore>(
      'a TokenStore (sessionTokenStore(store) makes one of a session store)',
      ['get', 'set', 'delete'],
      ['update', 'add', 'lock', 'list', 'watch'],
    ),
  ),
  grantId: optionalFunction(),
  applicationGrant: optionalFunction(),
  encryptionKeys: check.withDefault([], encryptionKeys),
  refresh: check.group({ leeway: check.withDefault(30, seconds), ahead: check.withDefault(300, seconds) }),
  cache: {
    read: (option, value) => (value === false ? undefined : cacheLimits.read(option, value)),
    fallback: cacheLimits.fallback,
  },
  concurrency: optional(check.integer(1, 1_000_000, 'requests')),
  accessTokenHeader: optional(tokenHeaderName),
  headers: check.withDefault([], strategyHeaders),
  maxResponseBytes: optional(check.integer(1, 2 ** 32, 'bytes')),
  authorizationPath: check.withDefault(DEFAULTS.authorizationPath, authorizationAddress),
  tokenPath: check.withDefault(DEFAULTS.tokenPath, endpointAddress),
  revocationPath: optional(endpointAddress),
  apiPath: check.withDefault(DEFAULTS.apiPath, apiPathBelow),
  tokenRequest: check.withDefault(DEFAULTS.tokenRequest, check.oneOf('json', 'form')),
  clientAuthentication: check.withDefault(DEFAULTS.clientAuthentication, check.oneOf('body', 'basic', 'basic-raw')),
  endsGrant: optionalFunction(),
  tokenParams: optional(orFunction(check.tokenParams)),
  accessTokenLifetime: optional(check.number(1, TEN_YEARS_S, 'seconds')),
  grantedScopes: optionalFunction(),
  authorizationParams: check.withDefault({}, orFunction(check.authorizationParams)),
  scopeSeparator: check.withDefault(' ', check.text),
  timeout: check.withDefault(10_000, check.integer(1, MAX_TIMER_MS, 'milliseconds')),
  dispatcher: optional(check.withMethods<Dispatcher>('an undici Dispatcher, such as new ProxyAgent(…)', ['dispatch'])),
  // Looks `Date.now` up at each call, so that a test can replace it.
  clock: check.withDefault(
    () => Date.now(),
    (option, value) => {
      const clock = check.fn<() => number>(option, value);
      check.invoke(option, 'milliseconds', clock);
      return clock;
    },
  ),
};

/** Checks the options and fills in the defaults. @throws ConfigurationError that names the option */
export function resolveOptions(options: unknown): Settings {
  const {
    timeout,
    refresh,
    cache,
    enterpriseBaseUrl: enterprise,
    ...others
  } = check.readOptions('new Strategy(options)', options, READERS);
  const { enterpriseHosts: hosts, accessTokenHeader, headers } = others;
  const isRead = typeof enterprise === 'function';
  if (isRead !== (hosts !== undefined))
    throw check.optionError(
      'enterpriseHosts',
      'expected together with a function enterpriseBaseUrl, and not without one',
    );
  if (accessTokenHeader !== undefined && headerIn(headers, accessTokenHeader) !== undefined)
    throw check.optionError('headers', `expected no header ${accessTokenHeader}: the option accessTokenHeader sets it`);
  const { [TENANT]: tenant, [EMULATOR]: findForeign }: InternalOptions = Object(options);
  const settings: Settings = Object.freeze({
    ...others,
    name: tenant === undefined ? others.name : nameOfTenant(others.name, tenant.tenant),
    tenant,
    enterpriseBaseUrl: isRead ? undefined : enterprise,
    enterpriseUrl:
      isRead && hosts ? (claims, response) => enterpriseUrlOf(claims, response, enterprise, hosts) : undefined,
    timeoutMs: timeout,
    refresh: { leewayMs: refresh.leeway * 1000, aheadMs: refresh.ahead * 1000 },
    cache: cache && { max: cache.max, ttlMs: cache.ttl * 1000 },
  });
  refuseDefaultPaths(settings);
  // As checked: URLs are parsed without the white space around and in them.
  const [option, problem] = findForeign?.({ ...settings, enterpriseHosts: Object(options).enterpriseHosts }) ?? [];
  if (option !== undefined) throw check.optionError(option, `${problem}`);
  return settings;
}

/** Addresses, and the paths that are appended to them. */
const PATHS = [
  ['authUrl', 'authorizationPath'],
  ['authUrl', 'tokenPath'],
  ['baseUrl', 'apiPath'],
  ['enterpriseBaseUrl', 'apiPath'],
] as const;

/** Throws for an address that ends in the default path, which would be appended again. @throws ConfigurationError */
function refuseDefaultPaths(settings: Settings): void {
  for (const [option, pathOption] of PATHS) {
    const path = DEFAULTS[pathOption];
    if (settings[pathOption] === path && settings[option]?.replace(/\/+$/, '').endsWith(path))
      throw check.optionError(option, `expected the address without ${path}, which is added to it`);
  }
}

/** Tokens that an application obtained elsewhere: with another library, or from an installation event. */
export interface ImportedTokens {
  /** Without one, the first request refreshes. */
  readonly accessToken?: string | undefined;
  /** Without one, the grant ends with its access token. */
  readonly refreshToken?: string | undefined;
  /**
   * When the access token expires, in epoch milliseconds or as a `Date`. Default: its `exp` claim. Without that, the first
   * request refreshes; without a refresh token, the option `accessTokenLifetime` counts, else the token does not expire.
   */
  readonly expiresAt?: number | Date | undefined;
}

/** Options of `strategy.keepAlive`. */
export interface KeepAliveOptions {
  /** Least age of tokens to refresh, in seconds since the service issued them: 0 to ten years. */
  readonly olderThan: number;
  /** Maximum number of refreshes that begin in a second: 0.01 to 1,000. Default: 10. */
  readonly rate?: number | undefined;
  /** Ends the run, which rejects with the signal's reason. Refreshes that have begun go on. */
  readonly signal?: AbortSignal | undefined;
}

/** Counts of what `strategy.keepAlive` did. */
export interface KeepAliveResult {
  /** Grants that had not ended. */
  readonly seen: number;
  /** Grants that this process refreshed. */
  readonly refreshed: number;
  /** Grants whose refresh token the service refused: their users must log in again. */
  readonly ended: number;
  /** Grants whose refresh failed. They are kept; the next run tries them again. */
  readonly failed: number;
}
