import { ApiClient } from './api/api-client.js';
import { type ApiContext, createApiContext } from './api/api-context.js';
import type { CredentialSource } from './api/credential.js';
import { publishGrantLost, publishRefresh } from './events.js';
import { GrantRecords } from './grants/grant-codec.js';
import { HttpClient } from './http/http-client.js';
import type { LoginContext } from './login/login-context.js';
import { PendingLogins } from './login/pending-logins.js';
import { TokenEndpoint } from './oauth/token-endpoint.js';
import type { Settings } from './options.js';
import { GrantSource } from './refresh/grant-credentials.js';
import { GrantKeeper } from './refresh/grant-manager.js';
import { Keepers } from './refresh/grant-managers.js';
import { RequestGrants } from './request/grant-reference.js';
import { RequestClients } from './request/request-clients.js';
import type { TokenStore } from './stores/token-store.js';

/**
 * Everything that belongs to one strategy: its settings, its pending logins, its grants, its connections.
 *
 * Passport derives an object from the strategy for each request; this one is shared by all of them.
 */
export class Application implements LoginContext {
  readonly settings: Settings;
  readonly api: ApiContext;
  readonly logins: PendingLogins;
  readonly endpoint: TokenEndpoint;
  readonly keepers: Keepers;
  readonly grants: RequestGrants;
  readonly clients: RequestClients;
  readonly #http: HttpClient;

  constructor(settings: Settings) {
    const { clientID, clientSecret, clock, name: strategyName } = settings;
    const http = new HttpClient({ dispatcher: settings.dispatcher });
    this.#http = http;
    this.settings = settings;
    this.api = createApiContext({ ...settings, http, strategyName, now: clock });
    this.logins = new PendingLogins({ strategyName, clientID, clientSecret, clock });
    this.endpoint = new TokenEndpoint({ ...settings, http });
    this.keepers = new Keepers(settings.tokenStore, keeperFactory(settings, this.endpoint));
    this.grants = new RequestGrants(settings, this.keepers);
    const { grants, keepers } = this;
    this.clients = new RequestClients({ grants, keepers, clientOf: (source) => this.clientOf(source) });
  }

  /** An API client over any source of credentials. */
  clientOf(source: CredentialSource): ApiClient {
    return new ApiClient(source, this.api);
  }

  /** The credentials of a grant, outside of a request. @throws ConfigurationError where no token store is known yet */
  sourceOf(grantId: string): CredentialSource {
    return new GrantSource(this.keepers.only(), grantId);
  }

  /** Lets running refreshes and saves finish, and frees connections. */
  async close(): Promise<void> {
    await this.keepers.close();
    await this.#http.close();
  }
}

function keeperFactory(settings: Settings, endpoint: TokenEndpoint): (store: TokenStore) => GrantKeeper {
  const { name: strategy, cache, refresh: window, clock } = settings;
  const records = new GrantRecords(settings.encryptionKeys);
  return (store) =>
    new GrantKeeper({
      strategyName: strategy,
      store,
      records,
      endpoint,
      cache,
      window,
      clock,
      onRefresh: (grantId, event) => publishRefresh({ strategy, grantId, ...event }),
      onLost: (grantId, reason) => publishGrantLost({ strategy, grantId, reason }),
    });
}
