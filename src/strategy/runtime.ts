import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { OpenStrategy } from '../advice/open-strategies.js';
import { type ApiContext, createApiContext } from '../api/api-context.js';
import { headerIn } from '../api/request-headers.js';
import { publicName } from '../errors.js';
import {
  type GrantEvent,
  grantChannel,
  grantLostChannel,
  refreshChannel,
  warnOfShortLease,
  warnOfUnlockedRefresh,
} from '../events.js';
import { GrantCodec } from '../grants/grant.js';
import { guardedLookup, HttpClient } from '../http/http-client.js';
import { USER_AGENT } from '../http/message.js';
import type { LoginContext, LoginRuntime, Popup } from '../login/login-context.js';
import type { AnyVerify } from '../login/verify.js';
import { endpointUrl } from '../oauth/addresses.js';
import { TokenEndpoint, type TokenEndpointOptions } from '../oauth/token-endpoint.js';
import { scopeNames } from '../oauth/token-response.js';
import type { Settings } from '../options.js';
import { GrantManager, type GrantManagerOptions, type Revoking } from '../refresh/grant-manager.js';
import { CookieSeal, cookieToken, SealedCookie } from '../session/cookies.js';
import { LoginReturns, ROUND_MAX_AGE_S, type RoundsContent } from '../session/login-returns.js';
import { RequestClients } from '../session/request-clients.js';
import { GrantManagers, RequestGrants } from '../session/request-grants.js';
import { type PageScopes, pageScopesFactory, ReturnCookie } from '../session/return-to.js';
import { LEASE_RESERVE_MS } from '../stores/store-access.js';
import { leaseMsOf, type TokenStore } from '../stores/token-store.js';
import { loadAhead, succeedOnce } from '../waiting.js';

/** Holds what one strategy owns. The objects that Passport derives from the strategy, one for each request, share it. */
export class Runtime implements LoginRuntime {
  readonly settings: Settings;
  readonly service: string;
  readonly verify: AnyVerify | undefined;
  readonly api: ApiContext;
  readonly returnCookie: ReturnCookie;
  readonly returns: LoginReturns;
  readonly openStrategy: OpenStrategy;
  logins: LoginContext | undefined;
  /** Set by the first request to what `embedded()` returned. */
  popups: WeakMap<IncomingMessage, Popup> | undefined;
  readonly pageScopes: () => PageScopes | undefined;
  readonly endpoint: TokenEndpoint;
  readonly managers: GrantManagers;
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
  readonly #http: readonly HttpClient[];

  constructor(settings: Settings, verify: AnyVerify | undefined) {
    const { authUrl, clientID, clientSecret, callbackURL, clock, name: strategyName } = settings;
    this.settings = settings;
    this.verify = verify;
    // Separates strategies of one name for two services, in the token store, cookies and sessions. A tenant may change both values.
    const service = settings.tenant === undefined ? shortHash(authUrl, clientID) : '';
    this.service = service;
    const { dispatcher, enterpriseHosts: hosts } = settings;
    const lookup = hosts && guardedLookup((hostname, address) => hosts.refusesAddress(hostname, address));
    // Logins and refreshes must not wait for the connections that API calls use.
    const [http, authorizationHttp] = settings.tenant?.http ?? [
      new HttpClient({ dispatcher, lookup }),
      new HttpClient({ dispatcher }),
    ];
    this.#http = settings.tenant === undefined ? [http, authorizationHttp] : [];
    const namespace = encodeURIComponent(`${strategyName}.${service}`);
    const sharing = { namespace, store: () => this.managers.onlyStore };
    this.api = createApiContext({ ...settings, http, strategyName, now: clock, sharing });
    // Several applications of a host may be clients of one service: their callback URLs differ.
    const application = shortHash(service, callbackURL);
    const cookieName = (purpose: string) => `${cookieToken(strategyName)}.${purpose}.${application}`;
    this.returnCookie = new ReturnCookie(cookieName('return-to'));
    const cookie = (purpose: string, sealPurpose: string) => {
      return { name: cookieName(purpose), seal: new CookieSeal(sealPurpose, clientSecret), clock };
    };
    const rounds = new SealedCookie<RoundsContent>({ ...cookie('rounds', 'login rounds'), maxAgeS: ROUND_MAX_AGE_S });
    this.returns = new LoginReturns(rounds);
    let scopes: PageScopes | undefined;
    this.pageScopes = () => {
      scopes ??= pageScopesFactory.create?.(cookie('step-up', 'scopes of pages'));
      return scopes;
    };
    const client = {
      ...settings,
      clientSecret: clientSecret[0],
      userAgent: headerIn(settings.headers, 'user-agent') ?? USER_AGENT,
      http: authorizationHttp,
      issuedBy: this.issuedBy,
    };
    this.endpoint = new TokenEndpoint(client);
    const create = managerFactory(settings, service, this.endpoint, client);
    this.managers = new GrantManagers(settings.tokenStore, create);
    this.grants = new RequestGrants(settings);
    const { api, grants, managers, pageScopes, returnCookie, returns } = this;
    const scope = scopeNames(settings.scope);
    this.clients = new RequestClients({ api, grants, managers, returns, returnCookie, pageScopes, scope });
    // Tenants may share a callback URL: which one a login belongs to is sealed in it.
    const shared = settings.tenant === undefined ? callbackURL : '';
    this.openStrategy = new OpenStrategy({ name: strategyName, service, authUrl, callbackURL: shared });
  }

  /** The origins that issue a tenant's tokens; `undefined` for other strategies. */
  get issuedBy(): string | undefined {
    const { tenant, authUrl, tokenPath, revocationPath = tokenPath } = this.settings;
    if (tenant === undefined) return undefined;
    const origins = [authUrl, tokenPath, revocationPath].map((address) => endpointUrl(authUrl, address).origin);
    return [...new Set(origins)].join(' ');
  }

  /** Waits for running refreshes and saves, then frees the connections. */
  async close(): Promise<void> {
    if (!this.managers.isClosed) this.openStrategy.release();
    await Promise.all([this.managers.close(), this.logins?.usedLogins.close(), this.api.limiter.close()]);
    await Promise.all(this.#http.map((http) => http.close()));
  }

  /** Frees what this strategy does not share with others of its tenant. Existing clients go on. Resolves when no refresh or save runs. */
  async retire(): Promise<void> {
    this.openStrategy.release();
    await this.managers.retire();
  }
}

function shortHash(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 11);
}

function managerFactory(
  settings: Settings,
  service: string,
  endpoint: TokenEndpoint,
  client: TokenEndpointOptions,
): (store: TokenStore) => GrantManager {
  const { name: strategy, cache, refresh: window, clock, applicationGrant, revocationPath } = settings;
  const named = publicName(strategy);
  const codec = new GrantCodec(settings.encryptionKeys);
  const shortestMs = endpoint.timeoutMs + LEASE_RESERVE_MS;
  const isBusy = () => endpoint.queue.waiting.size > 0;
  const onGrant = (grantId: string, action: GrantEvent['action']) => {
    if (grantChannel.hasSubscribers) grantChannel.publish({ ...named, grantId, action });
  };
  const loadApplicationGrants = succeedOnce(() => import('../jobs/application-grants.js'));
  if (applicationGrant) loadAhead(loadApplicationGrants);
  const loadRevocations =
    revocationPath === undefined
      ? undefined
      : succeedOnce(async () => {
          const { Revocations } = await import('../jobs/revocations.js');
          return new Revocations({ endpoint: { ...client, revocationPath }, isBusy, onRevoked: onGrant });
        });
  return (store) => {
    const leaseMs = leaseMsOf(store.lock);
    if (leaseMs !== undefined && leaseMs < shortestMs)
      warnOfShortLease(strategy, leaseMs, endpoint.timeoutMs, shortestMs);
    return new GrantManager({
      strategyName: `${strategy}.${service}`,
      store,
      codec,
      endpoint,
      revocations: loadRevocations && lazyRevocations(loadRevocations, onGrant),
      cache,
      window,
      clock,
      onRefresh: (grantId, event) => {
        if (refreshChannel.hasSubscribers) refreshChannel.publish({ ...named, grantId, ...event });
      },
      onLost: (grantId, reason) => {
        if (grantLostChannel.hasSubscribers) grantLostChannel.publish({ ...named, grantId, reason });
      },
      onGrant,
      onUnlockedRefresh: () => warnOfUnlockedRefresh(strategy),
      parametersOf:
        applicationGrant &&
        (async (id) => {
          const { resolveParameters } = await loadApplicationGrants();
          return await resolveParameters(applicationGrant, id, settings.timeoutMs);
        }),
    });
  };
}

/** Revokes tokens by code that is loaded ahead. */
function lazyRevocations(load: () => Promise<Revoking>, onGrant: GrantManagerOptions['onGrant']): Revoking {
  loadAhead(load);
  return {
    start: (grantId, ...rest) => {
      load().then(
        (revocations) => revocations.start(grantId, ...rest),
        () => onGrant(grantId, 'revocation-failed'),
      );
    },
    close: async () => await (await load().catch(() => undefined))?.close(),
  };
}
