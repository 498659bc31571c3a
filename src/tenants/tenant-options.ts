import type { IncomingMessage } from 'node:http';
import * as check from '../checks.js';
import { ConfigurationError } from '../errors.js';
import { type IncomingRequest, type StrategyOptions, TENANT, type TenantSettings } from '../options.js';
import type { TokenStore } from '../stores/token-store.js';
import { AllowedHosts } from './allowed-hosts.js';

/** A request as `tenantOf` gets it. Express sets the properties that it adds. */
export type TenantRequest = IncomingRequest & {
  /** Parameters of the route, of Express. */
  readonly params: Readonly<Record<string, string>>;
  /** The host of the request, of Express. */
  readonly hostname: string;
};

/** Returns the tenant that a request is for. Declared as a method, so that an application can use its own type of request. */
export type TenantReader = {
  read(req: TenantRequest): string | undefined | null | Promise<string | undefined | null>;
}['read'];

/** The options of one tenant: those of a strategy that are not common to all. */
export type TenantOptions<UserProfile extends object = object> = Partial<
  Omit<StrategyOptions<UserProfile>, 'name' | 'callbackURL' | 'tokenStore' | 'encryptionKeys' | 'clock'>
>;

/**
 * Options of `tenants(options, verify?)`: those of a strategy that are common to all tenants, and these.
 *
 * @typeParam UserProfile The properties that `userProfile` adds to the profile.
 */
export interface TenantsOptions<UserProfile extends object = object>
  extends Partial<Omit<StrategyOptions<UserProfile>, 'callbackURL' | 'tokenStore'>> {
  /** Holds the grants of all tenants. */
  readonly tokenStore: TokenStore;
  /**
   * Returns the tenant that a request is for. It only chooses one, so its input need not be trusted. `undefined`: a callback
   * belongs to the tenant of its pending login, and any other request to the session's latest login.
   */
  readonly tenantOf: TenantReader;
  /**
   * Returns the options of a tenant, or `undefined` for an unknown one. The name is canonical: lower case, 1 to 253 characters of
   * `[a-z0-9._-]`.
   */
  readonly resolve: (
    tenant: string,
  ) => TenantOptions<UserProfile> | undefined | null | Promise<TenantOptions<UserProfile> | undefined | null>;
  /**
   * Hosts that the addresses of tenants may have: exact names, or `*.example.com` for all names below one. A port counts only if it
   * is listed. Private addresses have to be listed exactly, or lie below `*.localhost`.
   */
  readonly allowedHosts: readonly string[];
  /** Callback URL. `{tenant}` stands for the tenant; without it, `allowedHosts` has to be one domain. */
  readonly callbackURL: string;
  /** Most tenants that a process keeps ready. Default: 1,000. */
  readonly max?: number | undefined;
  /** Seconds until `resolve` is asked again. Default: 300. */
  readonly ttl?: number | undefined;
}

/** The options of a {@link TenantsOptions} that are not those of a strategy, checked. */
export interface TenantsSettings {
  readonly tenantOf: (req: IncomingMessage) => unknown;
  readonly resolve: (tenant: string) => unknown;
  readonly allowedHosts: AllowedHosts;
  readonly callbackURL: string;
  readonly tokenStore: TokenStore;
  readonly max: number;
  readonly ttlMs: number;
  /** The options that all strategies share. */
  readonly common: object;
}

const OWN = {
  tenantOf: check.requiredOption(check.fn<(req: IncomingMessage) => unknown>),
  resolve: check.requiredOption(check.fn<(tenant: string) => unknown>),
  allowedHosts: check.requiredOption(AllowedHosts.read),
  callbackURL: check.requiredOption(check.callbackUrl),
  tokenStore: check.requiredOption(
    check.withMethods<TokenStore>('a TokenStore', ['get', 'set', 'delete'], ['update', 'add', 'lock', 'list', 'watch']),
  ),
  max: check.withDefault(1_000, check.integer(1, 10_000_000, 'tenants')),
  ttl: check.withDefault(300, check.number(0, 86_400, 'seconds')),
};

/** Checks the options that are not those of a strategy. @throws ConfigurationError */
export function readTenantsOptions(options: unknown): TenantsSettings {
  const given = check.record('tenants(options)', options);
  const isOwn = (name: string) => Object.hasOwn(OWN, name);
  const own = Object.fromEntries(Object.entries(given).filter(([name]) => isOwn(name)));
  const common = Object.fromEntries(Object.entries(given).filter(([name]) => !isOwn(name)));
  const { ttl, ...settings } = check.readOptions('tenants(options)', own, OWN);
  if (!settings.callbackURL.includes('{tenant}') && settings.allowedHosts.domain === undefined)
    throw check.optionError(
      'callbackURL',
      'expected {tenant} in it: one URL for tenants of several domains would let one of them get the codes of another (RFC 9700, 4.4)',
    );
  return { ...settings, ttlMs: ttl * 1000, common };
}

/** Returns the hosts of addresses that token responses name: they have to be allowed too. */
export function hostsOf({ enterpriseBaseUrl }: { readonly enterpriseBaseUrl?: unknown }, hosts: AllowedHosts): object {
  return typeof enterpriseBaseUrl === 'function' ? { enterpriseHosts: hosts.entries } : {};
}

/** Options that have to be the same for all tenants: they decide where grants are found. */
const COMMON = ['name', 'callbackURL', 'tokenStore', 'encryptionKeys', 'clock'];

/** Options with an address of the tenant. */
const TENANT_ADDRESSES = [
  ...(['authUrl', 'baseUrl', 'enterpriseBaseUrl', 'authorizationPath', 'tokenPath', 'revocationPath'] as const),
];

/**
 * Returns the options of a tenant's strategy, which checks the rest of them.
 *
 * @throws ConfigurationError for an option that only all tenants can have; with the code `ERR_TENANT_HOST` for a foreign address
 */
export async function strategyOptions(
  { common, callbackURL, tokenStore, allowedHosts }: TenantsSettings,
  tenant: TenantSettings,
  given: object,
): Promise<object> {
  const fixed = COMMON.find((name) => Object.hasOwn(given, name));
  if (fixed !== undefined)
    throw new ConfigurationError(`expected no option ${fixed}. Set it in tenants(options), for all tenants.`, {
      option: fixed,
    });
  const merged: Readonly<Record<string, unknown>> = { ...common, ...given };
  const { origins = [] } = merged;
  const addresses = [
    ...TENANT_ADDRESSES.map((option) => [option, merged[option]] as const),
    ...(Array.isArray(origins) ? origins.map((origin: unknown) => ['origins', origin] as const) : []),
  ].flatMap(([option, value]) => {
    // A label stands for {domain}. What is no address at all is named by the strategy.
    const address = typeof value === 'string' ? value.replace('{domain}', 'domain') : '';
    return URL.canParse(address) ? [[option, address] as const] : [];
  });
  for (const [option, address] of addresses) allowedHosts.check(option, address);
  await Promise.all(addresses.map(([option, address]) => allowedHosts.checkAddresses(option, address)));
  const own = {
    ...hostsOf(merged, allowedHosts),
    callbackURL: callbackURL.replaceAll('{tenant}', tenant.tenant),
    tokenStore,
    [TENANT]: tenant,
  };
  return { ...merged, ...own };
}
