import type { IncomingMessage, ServerResponse } from 'node:http';
import { ApiClient } from './api/api-client.js';
import { type ApiContext, createApiContext } from './api/api-context.js';
import type { CredentialSource } from './api/credential-source.js';
import { ConfigurationError, TokenStoreError } from './errors.js';
import { publishGrantLost, publishRefresh } from './events.js';
import { checkedGrantId, isRandomGrantId, randomGrantId } from './grants/grant-id.js';
import { GrantKeeper } from './grants/grant-keeper.js';
import { GrantRecords } from './grants/grant-record.js';
import { GrantSource } from './grants/grant-source.js';
import { type SessionStoreLike, sessionTokenStore } from './grants/session-token-store.js';
import type { TokenStore } from './grants/token-store.js';
import { PendingLogins } from './login/pending-logins.js';
import { sessionOf } from './login/session-reference.js';
import { noTokenStore } from './no-token-store.js';
import type { Settings } from './options.js';
import { HttpClient } from './service/http-client.js';
import { TokenEndpoint } from './service/token-endpoint.js';

/**
 * Everything that belongs to one strategy: its settings, its pending logins, its grants, its connections.
 *
 * Passport derives an object from the strategy for each request; this one is shared by all of them.
 */
export class Application {
  readonly #settings: Settings;
  readonly #http: HttpClient;
  readonly #api: ApiContext;
  readonly #logins: PendingLogins;
  readonly #endpoint: TokenEndpoint;
  readonly #records: GrantRecords;
  readonly #keepers = new Map<object, GrantKeeper>();
  readonly #responses = new WeakMap<IncomingMessage, ServerResponse>();
  readonly #sources = new WeakMap<IncomingMessage, GrantSource>();
  /** The properties of requests that hold a client of this strategy. */
  readonly #clientProperties = new Set<string>();
  #sessionSeen = false;

  constructor(settings: Settings) {
    const { authUrl, clientID, clientSecret, timeoutMs, organizationDomain, clock, name: strategyName } = settings;
    this.#settings = settings;
    this.#http = new HttpClient({ dispatcher: settings.dispatcher });
    this.#api = createApiContext({ ...settings, http: this.#http, strategyName, now: clock });
    this.#logins = new PendingLogins({ strategyName, clientID, clientSecret, clock });
    this.#endpoint = new TokenEndpoint({
      http: this.#http,
      authUrl,
      clientID,
      clientSecret,
      timeoutMs,
      organizationDomain,
      clock,
    });
    this.#records = new GrantRecords(settings.encryptionKeys);
  }

  get settings(): Settings {
    return this.#settings;
  }

  get api(): ApiContext {
    return this.#api;
  }

  get logins(): PendingLogins {
    return this.#logins;
  }

  get endpoint(): TokenEndpoint {
    return this.#endpoint;
  }

  /** Keeps the response for a strategy that will see the request only. Express links the two by itself, Connect does not. */
  rememberResponse(req: IncomingMessage, res: ServerResponse): void {
    if (!('res' in req)) this.#responses.set(req, res);
  }

  /** @throws ConfigurationError where nothing has handed the response over */
  responseOf(req: IncomingMessage): ServerResponse {
    const linked = 'res' in req ? (req.res as ServerResponse | undefined) : undefined;
    const res = linked ?? this.#responses.get(req);
    if (res) return res;
    throw new ConfigurationError(
      'apiClient(strategy) has to stand before the routes of login and callback: under Connect a strategy gets to the response through it alone.',
      { code: 'ERR_NO_RESPONSE' },
    );
  }

  /** An API client over any source of credentials. */
  clientOf(source: CredentialSource): ApiClient {
    return new ApiClient(source, this.#api);
  }

  /** The source of a known grant. */
  sourceOf(keeper: GrantKeeper, grantId: string): GrantSource {
    return new GrantSource(keeper, grantId, this.#settings.clock);
  }

  /** The source of a request's grant, for its API client. */
  sourceFor(req: IncomingMessage, keeper: GrantKeeper, grantId: string): GrantSource {
    const source = this.sourceOf(keeper, grantId);
    this.#sources.set(req, source);
    return source;
  }

  /** Gives the request its API client. */
  attachClient(req: IncomingMessage, property: string, source: CredentialSource): void {
    this.#clientProperties.add(property);
    Reflect.set(req, property, this.clientOf(source));
  }

  /** Has the request's API client be one for a grant that has just come to be: for the handlers after a login. Never rejects. */
  async switchClient(req: IncomingMessage, keeper: GrantKeeper, grantId: string): Promise<GrantSource> {
    const source = this.sourceFor(req, keeper, grantId);
    await source.prepare();
    for (const property of this.#clientProperties) {
      if (Reflect.get(req, property) instanceof ApiClient) this.attachClient(req, property, source);
    }
    return source;
  }

  /** Tells the request's API client that the user has logged out. */
  endSource(req: IncomingMessage): void {
    this.#sources.get(req)?.end();
  }

  /** The keeper outside of a request. @throws ConfigurationError where no store is known yet */
  keeper(): GrantKeeper {
    const { tokenStore } = this.#settings;
    if (tokenStore) return this.#keeperOver(tokenStore, () => tokenStore);
    for (const keeper of this.#keepers.values()) return keeper;
    throw noTokenStore();
  }

  /** The keeper for a request: over the option `tokenStore`, or over the store of its session; `undefined` where there is neither. */
  keeperFor(req: IncomingMessage): GrantKeeper | undefined {
    const { tokenStore } = this.#settings;
    if (tokenStore) return this.#keeperOver(tokenStore, () => tokenStore);
    const store: unknown = 'sessionStore' in req ? req.sessionStore : undefined;
    if (typeof store !== 'object' || store === null) return undefined;
    return this.#keeperOver(store, () => sessionTokenStore(store as SessionStoreLike));
  }

  /** The id of the request's grant: what the session refers to, or what the option `grantId` says. `undefined` for none. */
  grantIdOf(req: IncomingMessage): string | undefined {
    const { grantId, name } = this.#settings;
    const session = sessionOf(req);
    if (session) this.#sessionSeen = true;
    if (!grantId) return isRandomGrantId(session?.[name]) ? session[name] : undefined;
    const user: unknown = 'user' in req ? req.user : undefined;
    if (user === undefined || user === null) return undefined;
    const id = grantId(req, user);
    return id === undefined || id === null || id === '' ? undefined : checkedGrantId(id);
  }

  /** The id for the grant of a user who has just logged in. @throws ConfigurationError if the option `grantId` gives none */
  newGrantId(req: IncomingMessage, user: unknown): string {
    const { grantId } = this.#settings;
    return grantId ? checkedGrantId(grantId(req, user)) : randomGrantId();
  }

  /** Whether the session is where the grant's id is kept. */
  get keepsReference(): boolean {
    return this.#settings.grantId === undefined;
  }

  /**
   * Makes sure that a login can be brought to its end before it is begun, and before its code is used up.
   *
   * @param needsSession Whether a session has to be there, also where the grant's id is not kept in it.
   * @throws ConfigurationError if there is no session or no store; TokenStoreError if there was a session until now
   */
  checkLoginIsPossible(req: IncomingMessage, needsSession: boolean): GrantKeeper {
    if (!sessionOf(req) && (this.keepsReference || needsSession)) throw this.#noSession();
    const keeper = this.keeperFor(req);
    if (keeper) return keeper;
    throw new ConfigurationError(
      'tokenStore: the session has no store to keep grants in (cookie-session, for example). Set tokenStore, to redisTokenStore(…) or postgresTokenStore(…), say.',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  /** Lets running refreshes and saves finish, and frees connections. */
  async close(): Promise<void> {
    await Promise.all([...this.#keepers.values()].map((keeper) => keeper.close()));
    await this.#http.close();
  }

  #noSession(): ConfigurationError | TokenStoreError {
    if (this.#sessionSeen) {
      // express-session lets requests pass without a session while its store is disconnected.
      return new TokenStoreError(
        'There is no session now, though earlier requests had one: the session store is disconnected.',
        {
          code: 'ERR_SESSION_STORE',
        },
      );
    }
    return new ConfigurationError(
      'There is no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.',
      { code: 'ERR_NO_SESSION' },
    );
  }

  #keeperOver(key: object, open: () => TokenStore): GrantKeeper {
    const known = this.#keepers.get(key);
    if (known) return known;
    const keeper = this.#newKeeper(open());
    this.#keepers.set(key, keeper);
    return keeper;
  }

  #newKeeper(store: TokenStore): GrantKeeper {
    const { name: strategy, cache, refresh, clock } = this.#settings;
    return new GrantKeeper({
      strategyName: strategy,
      store,
      records: this.#records,
      endpoint: this.#endpoint,
      cache,
      window: refresh,
      clock,
      onRefresh: (grantId, event) => publishRefresh({ strategy, grantId, ...event }),
      onLost: (grantId, reason) => publishGrantLost({ strategy, grantId, reason }),
    });
  }
}
