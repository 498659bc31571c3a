import { ApiClient } from './api/api-client.js';
import { type ApiContext, createApiContext } from './api/api-context.js';
import type { CredentialSource } from './api/credential.js';
import { ConfigurationError } from './errors.js';
import { publishGrantLost, publishRefresh, warnOfUnlockedRefresh } from './events.js';
import { GrantCodec } from './grants/grant-codec.js';
import { HttpClient } from './http/http-client.js';
import type { LoginContext } from './login/authenticate.js';
import { PendingLogins } from './login/pending-logins.js';
import type { AnyVerify } from './login/verify.js';
import { TokenEndpoint } from './oauth/token-endpoint.js';
import type { Settings } from './options.js';
import { GrantCredentials } from './refresh/grant-credentials.js';
import { GrantManager } from './refresh/grant-manager.js';
import { GrantManagers } from './refresh/grant-managers.js';
import { RequestGrants } from './request/grant-reference.js';
import { RequestClients } from './request/request-clients.js';
import type { TokenStore } from './stores/token-store.js';

/**
 * Key of a strategy's runtime. Inherited by the per-request objects that Passport derives from the strategy;
 * non-enumerable, so that logging a strategy never prints the runtime.
 */
export const RUNTIME: unique symbol = Symbol('runtime');

/**
 * Returns the runtime of a strategy, or of an object that Passport derived from one.
 *
 * @throws ConfigurationError unless `strategy` is a Strategy of this package
 */
export function runtimeOf(strategy: object): Runtime {
  const runtime: unknown =
    typeof strategy === 'object' && strategy !== null ? Reflect.get(strategy, RUNTIME) : undefined;
  if (runtime instanceof Runtime) return runtime;
  throw new ConfigurationError('strategy: expected an instance of the Strategy of passport-oauth-app', {
    option: 'strategy',
  });
}

/**
 * Holds everything that one strategy owns: its settings, pending logins, grants, API clients and connections.
 *
 * Passport derives an object from the strategy for each request. All of them share one runtime.
 */
export class Runtime implements LoginContext {
  readonly settings: Settings;
  readonly verify: AnyVerify | undefined;
  readonly api: ApiContext;
  readonly pendingLogins: PendingLogins;
  readonly endpoint: TokenEndpoint;
  readonly managers: GrantManagers;
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
  readonly #http: HttpClient;

  constructor(settings: Settings, verify: AnyVerify | undefined) {
    const { clientID, clientSecret, clock, name: strategyName } = settings;
    const http = new HttpClient({ dispatcher: settings.dispatcher });
    this.#http = http;
    this.settings = settings;
    this.verify = verify;
    this.api = createApiContext({ ...settings, http, strategyName, now: clock });
    this.pendingLogins = new PendingLogins({ strategyName, clientID, clientSecret, clock });
    this.endpoint = new TokenEndpoint({ ...settings, http });
    this.managers = new GrantManagers(settings.tokenStore, managerFactory(settings, this.endpoint));
    this.grants = new RequestGrants(settings, this.managers);
    const { grants, managers, clientOf } = this;
    this.clients = new RequestClients({ grants, managers, clientOf });
  }

  /** Creates an API client over any source of credentials. Bound, so that it can be passed on. */
  readonly clientOf = (source: CredentialSource): ApiClient => new ApiClient(source, this.api);

  /**
   * Creates an API client for a grant, outside of a request.
   *
   * @throws ConfigurationError if no token store is known yet
   */
  client(grantId: string): ApiClient {
    return this.clientOf(new GrantCredentials(this.managers.only(), grantId));
  }

  /** Waits for running refreshes and saves, then frees the connections. */
  async close(): Promise<void> {
    await this.managers.close();
    await this.#http.close();
  }
}

function managerFactory(settings: Settings, endpoint: TokenEndpoint): (store: TokenStore) => GrantManager {
  const { name: strategy, cache, refresh: window, clock } = settings;
  const codec = new GrantCodec(settings.encryptionKeys);
  return (store) =>
    new GrantManager({
      strategyName: strategy,
      store,
      codec,
      endpoint,
      cache,
      window,
      clock,
      onRefresh: (grantId, event) => publishRefresh({ strategy, grantId, ...event }),
      onLost: (grantId, reason) => publishGrantLost({ strategy, grantId, reason }),
      onUnlockedRefresh: () => warnOfUnlockedRefresh(strategy),
    });
}
