import type { IncomingMessage } from 'node:http';
import type { ApiClient } from '../api/api-client.js';
import { createApiContext } from '../api/api-context.js';
import * as check from '../checks.js';
import { ofStrategy } from '../errors.js';
import type { GrantSummary } from '../grants/grant.js';
import { checkedGrantId } from '../grants/grant.js';
import { guardedLookup, HttpClient } from '../http/http-client.js';
import { abortSignal } from '../jobs/grant-list.js';
import type { PassportActions, RouteOptions } from '../login/login-context.js';
import type { AnyVerify, Verify, VerifyWithRequest } from '../login/verify.js';
import { type ManyStrategies, manyHandlers } from '../middleware/api-client.js';
import type { ImportedTokens, KeepAliveOptions, KeepAliveResult } from '../options.js';
import { resolveOptions } from '../options.js';
import { runtimeOf, Strategy } from '../strategy/strategy.js';
import { Directory } from './directory.js';
import { tenantClient } from './tenant-client.js';
import { unknownTenant } from './tenant-error.js';
import { type TenantGrantSummary, TenantGrants } from './tenant-grants.js';
import { canonicalTenant } from './tenant-name.js';
import { hostsOf, readTenantsOptions, strategyOptions, type TenantsOptions } from './tenant-options.js';
import { TenantRequests } from './tenant-requests.js';
import { type TenantLogin, TenantSessions } from './tenant-session.js';

/** A grant of `tenants()`. */
export interface GrantPlace {
  readonly tenant: string;
  /** The value of `req.apiClient.grantId`, or of the option `grantId`. */
  readonly grantId: string;
}

/** Options that a strategy needs and only a tenant has, to check the common ones at creation. */
const SAMPLE = {
  ...{ authUrl: 'https://tenant.invalid', baseUrl: 'https://tenant.invalid', clientID: 'tenant', scope: '' },
  ...{ clientSecret: 'of the tenant', callbackURL: '/' },
};

/** Key of the working parts. Inherited by the objects that Passport derives for requests, and never printed. */
const PARTS: unique symbol = Symbol('parts');

/** The working parts of a {@link Tenants}. */
interface Parts {
  readonly directory: Directory;
  readonly requests: TenantRequests;
  readonly grants: TenantGrants;
  readonly http: readonly HttpClient[];
  readonly deleteGrant: (login: TenantLogin) => Promise<void>;
  /** Strategies that are not handed out again, while their refreshes run. */
  readonly retiring: Set<Promise<void>>;
  readonly unknownClient: (grantId: string, tenant: string | undefined, find: () => Promise<ApiClient>) => ApiClient;
}

/** Returns the working parts of a {@link Tenants}, or of an object that Passport derived from one. */
function internalsOf(tenants: Tenants): Parts {
  return Reflect.get(tenants, PARTS);
}

/**
 * Stands in for many strategies, one for each tenant. Hand it to `passport.use`, `apiClient`, `requireAuthorization`'s client,
 * `logout` and `forward` as a strategy.
 */
export class Tenants implements ManyStrategies {
  /** Passport's name for all of them. */
  readonly name: string;
  // Passport sets these on the object that it derives for a request.
  declare success: PassportActions['success'];
  declare fail: PassportActions['fail'];
  declare redirect: PassportActions['redirect'];
  declare error: PassportActions['error'];
  declare pass: () => void;

  /** Not for applications: call {@link tenants}. */
  constructor(options: object, verify: AnyVerify | undefined) {
    if (verify !== undefined) check.fn('verify', verify);
    const settings = readTenantsOptions(options);
    const { tokenStore: store, tenantOf, resolve, allowedHosts, max, ttlMs, common } = settings;
    const shared = resolveOptions({ ...SAMPLE, ...common, ...hostsOf(common, allowedHosts), tokenStore: store });
    const { name, clock, timeoutMs, encryptionKeys, dispatcher } = shared;
    this.name = name;
    const refuses = (hostname: string, address: string) => allowedHosts.refusesAddress(hostname, address);
    const pool = { dispatcher, lookup: guardedLookup(refuses) };
    const http = [new HttpClient(pool), new HttpClient(pool)] as const;
    const sessions = new TenantSessions(name);
    const retiring = new Set<Promise<void>>();
    const create = async (tenant: string, given: object) => {
      const own = { tenant, http, carryOver: sessions.carryOver(tenant) };
      const strategy: Strategy = Reflect.construct(Strategy, [await strategyOptions(settings, own, given), verify]);
      return strategy;
    };
    const retire = (strategy: Strategy) => {
      const done = runtimeOf(strategy).retire();
      retiring.add(done);
      void done.finally(() => retiring.delete(done)).catch(() => {});
    };
    const directory = new Directory({ resolve, create, retire, max, ttlMs, timeoutMs, clock });
    const grants = new TenantGrants({ name, store, encryptionKeys, clock });
    const api = createApiContext({ ...shared, http: http[0], strategyName: name, now: clock });
    const deleteGrant = async (login: TenantLogin) => {
      const strategy = await strategyOf(this, login.tenant).catch(() => undefined);
      await (strategy ? strategy.deleteGrant(login.grantId) : grants.delete(login));
    };
    const requests = new TenantRequests({ name, tenantOf, directory, sessions, api, deleteGrant });
    const parts: Parts = {
      ...{ directory, requests, grants, http, retiring, deleteGrant },
      unknownClient: (grantId, tenant, find) => tenantClient(grantId, tenant, api, find),
    };
    Object.defineProperty(this, PARTS, { value: parts });
    manyHandlers.set(this, { each: requests.each.bind(requests), logout: requests.logout.bind(requests) });
  }

  /** Handles a request to the routes of login and callback. Passport calls it. */
  authenticate(req: IncomingMessage, options: RouteOptions = {}): void {
    // Requests share an instance that is given to passport.authenticate: its actions are this request's until the next await.
    const actions: PassportActions = {
      success: this.success.bind(this),
      fail: this.fail.bind(this),
      redirect: this.redirect.bind(this),
      error: this.error.bind(this),
    };
    void internalsOf(this).requests.authenticate(req, actions, options);
  }

  /**
   * Creates an API client for a grant outside of a request. Each call finds the tenant, so it may be kept. `baseUrl`, `scope` and
   * `organizationDomain` are known after the first call; `credentials()` returns them at any time.
   *
   * @throws ConfigurationError for an invalid grant id
   */
  client({ tenant, grantId }: GrantPlace): ApiClient {
    const id = checkedId(this.name, grantId);
    const find = async () => (await strategyOf(this, tenant)).client(id);
    return internalsOf(this).unknownClient(id, canonicalTenant(tenant), find);
  }

  /** Resolves to what is known of a grant, or to `undefined` if there is none. @throws like {@link importGrant} */
  async grant({ tenant, grantId }: GrantPlace): Promise<TenantGrantSummary | undefined> {
    const summary = await (await strategyOf(this, tenant)).grant(grantId);
    return summary && ofTenant(summary, tenant);
  }

  /**
   * Stores tokens that were obtained elsewhere: see `Strategy.importGrant`.
   *
   * @throws TenantError for an unknown tenant; ServiceUnavailableError if `resolve` fails; otherwise as `Strategy.importGrant`
   */
  async importGrant(
    { tenant, grantId }: GrantPlace,
    tokens: ImportedTokens,
    options?: { readonly replace?: boolean | undefined },
  ): Promise<boolean> {
    return await (await strategyOf(this, tenant)).importGrant(grantId, tokens, options);
  }

  /** Redeems an authorization code that has come without a redirect: see `Strategy.importCode`. @throws like {@link importGrant} */
  async importCode(
    {
      tenant,
      grantId,
    }: { readonly tenant: string; readonly grantId: string | ((grant: GrantSummary) => string | undefined) },
    code: string,
    options?: { readonly replace?: boolean | undefined },
  ): Promise<TenantGrantSummary | undefined> {
    const summary = await (await strategyOf(this, tenant)).importCode(grantId, code, options);
    return summary && ofTenant(summary, tenant);
  }

  /**
   * Deletes grants outside of a request: see `Strategy.deleteGrant`. A tenant that the directory does not know is no error; the tokens
   * of its grants are not revoked.
   *
   * @throws ConfigurationError for an invalid id; TokenStoreError if a grant could not be deleted
   */
  async deleteGrant(place: { readonly tenant: string; readonly grantId: string | readonly string[] }): Promise<void> {
    const name = canonicalOrThrow(this.name, place.tenant);
    const ids = [place.grantId].flat();
    for (const id of ids) checkedId(this.name, id);
    const { deleteGrant } = internalsOf(this);
    const deletions = await Promise.allSettled(ids.map((id) => deleteGrant({ tenant: name, grantId: id })));
    for (const deletion of deletions) if (deletion.status === 'rejected') throw deletion.reason;
  }

  /** Deletes all grants of a tenant, also of one that the directory does not know. @throws ConfigurationError with the code `ERR_NO_LIST`; TokenStoreError */
  async deleteTenant(tenant: string): Promise<void> {
    const { grants, deleteGrant } = internalsOf(this);
    await grants.deleteAll(canonicalOrThrow(this.name, tenant), deleteGrant);
  }

  /** Yields what is known of each grant, of one tenant or of all: see `Strategy.grants`. */
  async *grants(
    options: { readonly tenant?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<TenantGrantSummary, void> {
    const { tenant, signal } = check.readOptions('grants', options, {
      tenant: check.withDefault(undefined, check.text),
      signal: abortSignal,
    });
    try {
      yield* internalsOf(this).grants.summaries(
        tenant === undefined ? undefined : canonicalOrThrow(this.name, tenant),
        signal,
      );
    } catch (error) {
      throw ofStrategy(error, this.name);
    }
  }

  /**
   * Refreshes idle grants of one tenant or of all: see `Strategy.keepAlive`. Skips a tenant whose directory lookup fails.
   */
  async keepAlive({
    tenant,
    ...options
  }: KeepAliveOptions & { readonly tenant?: string | undefined }): Promise<KeepAliveResult> {
    if (tenant !== undefined) return await (await strategyOf(this, tenant)).keepAlive(options);
    const known = new Set<string>();
    for await (const login of internalsOf(this).grants.ids(undefined, options.signal)) known.add(login.tenant);
    const sum = { seen: 0, refreshed: 0, ended: 0, failed: 0 };
    for (const one of known) {
      const strategy = await strategyOf(this, one).catch(() => undefined);
      const counts = await strategy?.keepAlive(options);
      for (const what of ['seen', 'refreshed', 'ended', 'failed'] as const) sum[what] += counts?.[what] ?? 0;
    }
    return sum;
  }

  /** Makes the next use of a tenant call `resolve` again, and ends its grace period. */
  forget(tenant: string): void {
    const name = canonicalTenant(tenant);
    if (name !== undefined) internalsOf(this).directory.forget(name);
  }

  /** Waits for running refreshes and saves, then frees the connections. Await it before the process ends. */
  async close(): Promise<void> {
    const { directory, retiring, http } = internalsOf(this);
    await Promise.all([...directory.strategies.map((strategy) => strategy.close()), ...retiring]);
    await Promise.all(http.map((one) => one.close()));
  }
}

/** Returns the strategy of a tenant. @throws TenantError, ServiceUnavailableError, ConfigurationError, which name the strategy */
async function strategyOf(tenants: Tenants, tenant: unknown): Promise<Strategy> {
  try {
    return await internalsOf(tenants).directory.get(canonicalOrThrow(tenants.name, tenant));
  } catch (error) {
    throw ofStrategy(error, tenants.name);
  }
}

/** @throws TenantError for what no tenant is called */
function canonicalOrThrow(name: string, tenant: unknown): string {
  const canonical = canonicalTenant(tenant);
  if (canonical === undefined) throw ofStrategy(unknownTenant(), name);
  return canonical;
}

/** @throws ConfigurationError that names the strategy */
function checkedId(name: string, grantId: unknown): string {
  try {
    return checkedGrantId(grantId);
  } catch (error) {
    throw ofStrategy(error, name);
  }
}

function ofTenant(summary: GrantSummary, tenant: string): TenantGrantSummary {
  return { ...summary, tenant: canonicalTenant(tenant) ?? tenant };
}

/**
 * Creates one object that stands in for many strategies, each for a tenant: a customer of the application whose service has its own
 * host, client ID and secret.
 *
 * @throws ConfigurationError that names the wrong, unknown or missing option
 * @see RFC 9700, 4.4
 * @example
 * ```ts
 * const shops = tenants({
 *   ...{ name: 'shop', tokenStore, scope: ['read_orders'], callbackURL: 'https://app.example.net/callback/{tenant}' },
 *   allowedHosts: ['*.myshopify.com'],
 *   tenantOf: (req) => req.params.shop,
 *   resolve: async (tenant) => customers.find(tenant),
 * }, verify);
 * passport.use(shops);
 * ```
 */
export function tenants<UserProfile extends object = object>(
  options: TenantsOptions<UserProfile> & { readonly passReqToCallback: true },
  verify: VerifyWithRequest<UserProfile>,
): Tenants;
export function tenants<UserProfile extends object = object>(
  options: TenantsOptions<UserProfile>,
  verify?: Verify<UserProfile>,
): Tenants;
export function tenants(options: object, verify?: AnyVerify): Tenants {
  return new Tenants(options, verify);
}
