import type { IncomingMessage } from 'node:http';
import type { Dispatcher } from 'undici';
import type { ApiClient } from './api/api-client.js';
import * as check from './checks.js';
import { ConfigurationError } from './errors.js';
import type { CacheLimits } from './grants/grant-cache.js';
import { enterpriseAddress, serviceAddress } from './oauth/addresses.js';
import type { Claims, OrganizationDomainReader } from './oauth/claims.js';
import { Secret } from './redaction.js';
import type { RefreshWindow } from './refresh/freshness.js';
import type { TokenStore } from './stores/token-store.js';

/** A request as handlers of Express, 4 or 5, and of Connect have it. */
export type IncomingRequest = IncomingMessage & Express.Request;

/** Gives the id of a user's grant. Written as a method, so that request and user may be typed as the application's own. */
export type GrantIdReader = { read(req: IncomingRequest, user: Express.User): string | undefined }['read'];

/**
 * Options of `new Strategy(options, verify?)`. A wrong, unknown or missing one throws a ConfigurationError that names it.
 *
 * The required ones may be typed as `undefined`, for `process.env` to be handed in as it is; they throw where they are.
 */
export interface StrategyOptions {
  /** `{auth_url}` of service.md: base address of the authorization server. https, or http on a loopback host. */
  readonly authUrl: string | undefined;
  /** `{base_url}` of service.md: base address of the API. https, or http on a loopback host. */
  readonly baseUrl: string | undefined;
  /** Template of `{enterprise_base_url}`: `{domain}` stands in its host as one whole label. Without it all calls go to `baseUrl`. */
  readonly enterpriseBaseUrl?: string | undefined;
  /** Received at registration. */
  readonly clientID: string | undefined;
  /** Received at registration. It also seals the cookies of pending logins. */
  readonly clientSecret: string | undefined;
  /** A registered redirect URL. A relative one is resolved against the request, within Express' trust proxy setting. */
  readonly callbackURL: string | undefined;
  /** What the application asks for: `'project tm'` or `['project', 'tm']`. */
  readonly scope: string | readonly string[];
  /** Passport's name for the strategy, and its key under `req.session`. Default `'oauth-app'`. */
  readonly name?: string | undefined;
  /** Reads the organization domain from the access token's claims; `undefined`, `null` or `''` means none. Default: the claim `domain`. */
  readonly organizationDomain?: ((claims: Claims) => unknown) | undefined;
  /** Sends an S256 code challenge (RFC 7636), for services that take it. Default false. */
  readonly pkce?: boolean | undefined;
  /** Gets more of the user's profile, right after the code exchange. What it returns is merged into `profile`. */
  readonly userProfile?: ((client: ApiClient) => Promise<object>) | undefined;
  /** Gives `verify` the request as its first argument. Default false. */
  readonly passReqToCallback?: boolean | undefined;
  /** Where grants are kept. Default: the application's own session store, beside the sessions. */
  readonly tokenStore?: TokenStore | undefined;
  /** Keys grants by an id of the application's own, such as the user's. Default: a random id that the session keeps. */
  readonly grantId?: GrantIdReader | undefined;
  /** One secret or several: tokens at rest are sealed with the first, and opened with any. Default: not sealed. */
  readonly encryptionKeys?: string | readonly string[] | undefined;
  /** Seconds before a token expires: within `leeway` a request waits for the refresh, within `ahead` one starts in the background. Default 30 and 300. */
  readonly refresh?: { readonly leeway?: number | undefined; readonly ahead?: number | undefined } | undefined;
  /** In-process cache of decoded grants: entries, and seconds. Default 10,000 and 30; `false` turns it off. */
  readonly cache?: { readonly max?: number | undefined; readonly ttl?: number | undefined } | false | undefined;
  /** Most API requests at once for each grant. Default: no limit. */
  readonly concurrency?: number | undefined;
  /** Milliseconds for one HTTP request, connect to last byte. Default 10,000. */
  readonly timeout?: number | undefined;
  /** An undici Dispatcher for all requests of the package (proxy, mock, custom TLS). It stays the application's to close. */
  readonly dispatcher?: Dispatcher | undefined;
  /** The clock, in epoch milliseconds, for tests. Default `Date.now`. */
  readonly clock?: (() => number) | undefined;
}

/** The options, checked, with defaults, and in the units that the code works in. */
export interface Settings {
  readonly authUrl: string;
  readonly baseUrl: string;
  readonly enterpriseBaseUrl: string | undefined;
  readonly clientID: string;
  readonly clientSecret: Secret;
  readonly callbackURL: string;
  readonly scope: string;
  readonly name: string;
  readonly organizationDomain: OrganizationDomainReader;
  readonly pkce: boolean;
  readonly userProfile: StrategyOptions['userProfile'];
  readonly passReqToCallback: boolean;
  readonly tokenStore: TokenStore | undefined;
  readonly grantId: ((req: IncomingMessage, user: unknown) => unknown) | undefined;
  readonly encryptionKeys: readonly Secret[];
  readonly refresh: RefreshWindow;
  readonly cache: CacheLimits | undefined;
  readonly concurrency: number | undefined;
  readonly timeoutMs: number;
  readonly dispatcher: Dispatcher | undefined;
  readonly clock: () => number;
}

const KNOWN: Readonly<Record<keyof StrategyOptions, true>> = {
  authUrl: true,
  baseUrl: true,
  enterpriseBaseUrl: true,
  clientID: true,
  clientSecret: true,
  callbackURL: true,
  scope: true,
  name: true,
  organizationDomain: true,
  pkce: true,
  userProfile: true,
  passReqToCallback: true,
  tokenStore: true,
  grantId: true,
  encryptionKeys: true,
  refresh: true,
  cache: true,
  concurrency: true,
  timeout: true,
  dispatcher: true,
  clock: true,
};

/** Longest that a timer can run. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;
const DAY_S = 24 * 60 * 60;

/** Checks the options and fills in the defaults. @throws ConfigurationError that names the option */
export function resolveOptions(options: unknown): Settings {
  const given = check.record('options', options);
  check.onlyKnown(given, Object.keys(KNOWN), 'new Strategy(options)');
  return Object.freeze({
    ...resolveService(given),
    ...resolveLogin(given),
    ...resolveGrants(given),
    ...resolveRequests(given),
  });
}

type Given = Readonly<Record<string, unknown>>;

function resolveService(given: Given) {
  return {
    authUrl: serviceAddress('authUrl', check.required('authUrl', given.authUrl)),
    baseUrl: serviceAddress('baseUrl', check.required('baseUrl', given.baseUrl)),
    enterpriseBaseUrl: check.optional(given.enterpriseBaseUrl, (value) =>
      enterpriseAddress('enterpriseBaseUrl', value),
    ),
    clientID: check.text('clientID', given.clientID),
    clientSecret: new Secret(check.text('clientSecret', given.clientSecret)),
    organizationDomain:
      check.optional(given.organizationDomain, (value) =>
        check.fn<OrganizationDomainReader>('organizationDomain', value),
      ) ?? readDomainClaim,
  };
}

function readDomainClaim(claims: Claims): unknown {
  return claims.domain;
}

function resolveLogin(given: Given) {
  return {
    name: check.optional(given.name, check.strategyName) ?? 'oauth-app',
    callbackURL: check.callbackUrl('callbackURL', given.callbackURL),
    scope: check.scope('scope', given.scope),
    pkce: check.optional(given.pkce, (value) => check.flag('pkce', value)) ?? false,
    userProfile: check.optional(given.userProfile, (value) =>
      check.fn<NonNullable<Settings['userProfile']>>('userProfile', value),
    ),
    passReqToCallback:
      check.optional(given.passReqToCallback, (value) => check.flag('passReqToCallback', value)) ?? false,
  };
}

function resolveGrants(given: Given) {
  return {
    tokenStore: check.optional(given.tokenStore, (value) => check.tokenStore('tokenStore', value)),
    grantId: check.optional(given.grantId, (value) => check.fn<NonNullable<Settings['grantId']>>('grantId', value)),
    encryptionKeys: check.optional(given.encryptionKeys, (value) => check.secrets('encryptionKeys', value)) ?? [],
    refresh: resolveRefresh(given.refresh),
    cache: given.cache === false ? undefined : resolveCache(given.cache),
  };
}

function resolveRefresh(value: unknown): RefreshWindow {
  const given = value === undefined ? {} : check.record('refresh', value);
  check.onlyKnown(given, ['leeway', 'ahead'], 'refresh');
  const seconds = (option: string, entry: unknown) => check.number(option, entry, 0, DAY_S, 'seconds');
  return {
    leewayMs: (check.optional(given.leeway, (entry) => seconds('refresh.leeway', entry)) ?? 30) * 1000,
    aheadMs: (check.optional(given.ahead, (entry) => seconds('refresh.ahead', entry)) ?? 300) * 1000,
  };
}

function resolveCache(value: unknown): CacheLimits {
  const given = value === undefined ? {} : check.record('cache', value);
  check.onlyKnown(given, ['max', 'ttl'], 'cache');
  return {
    max: check.optional(given.max, (entry) => check.integer('cache.max', entry, 1, 100_000_000, 'grants')) ?? 10_000,
    ttlMs: (check.optional(given.ttl, (entry) => check.number('cache.ttl', entry, 0, DAY_S, 'seconds')) ?? 30) * 1000,
  };
}

function resolveRequests(given: Given) {
  return {
    concurrency: check.optional(given.concurrency, (value) =>
      check.integer('concurrency', value, 1, 1_000_000, 'requests'),
    ),
    timeoutMs:
      check.optional(given.timeout, (value) => check.integer('timeout', value, 1, MAX_TIMEOUT_MS, 'milliseconds')) ??
      10_000,
    dispatcher: check.optional(given.dispatcher, (value) => check.dispatcher('dispatcher', value)),
    clock: check.optional(given.clock, (value) => check.fn<() => number>('clock', value)) ?? now,
  };
}

/** Looks `Date.now` up at each call, so that a test that puts another clock in its place is heeded. */
function now(): number {
  return Date.now();
}

/** @throws ConfigurationError unless `verify` is a function or left out */
export function checkVerify(verify: unknown): void {
  if (verify !== undefined && typeof verify !== 'function') {
    throw new ConfigurationError(`verify: expected a function, or nothing, got ${typeof verify}`, { option: 'verify' });
  }
}
