import type { IncomingMessage } from 'node:http';
import { ConfigurationError, TokenStoreError } from '../errors.js';
import { checkedGrantId, isRandomGrantId, randomGrantId } from '../grants/grant-id.js';
import type { Settings } from '../options.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { GrantManagers } from '../refresh/grant-managers.js';
import { userOf } from './incoming-request.js';
import { sessionOf } from './session.js';

/** Which grant a request has: the one that its session refers to, or the one that the option `grantId` says. */
export class RequestGrants {
  readonly #settings: Settings;
  readonly #managers: GrantManagers;
  #sessionSeen = false;

  constructor(settings: Settings, managers: GrantManagers) {
    this.#settings = settings;
    this.#managers = managers;
  }

  /** Whether the session is where the grant's id is kept. */
  get idIsInSession(): boolean {
    return this.#settings.grantId === undefined;
  }

  /** The id of the request's grant; `undefined` for none. @throws ConfigurationError if the option `grantId` gives what is no id */
  idOf(req: IncomingMessage): string | undefined {
    const { grantId, name } = this.#settings;
    const session = sessionOf(req);
    if (session) this.#sessionSeen = true;
    if (!grantId) return isRandomGrantId(session?.[name]) ? session[name] : undefined;
    const user = userOf(req);
    if (user === undefined || user === null) return undefined;
    const id = grantId(req, user);
    return id === undefined || id === null || id === '' ? undefined : checkedGrantId(id);
  }

  /** The id for the grant of a user who has just logged in. @throws ConfigurationError if the option `grantId` gives none */
  newId(req: IncomingMessage, user: unknown): string {
    const { grantId } = this.#settings;
    return grantId ? checkedGrantId(grantId(req, user)) : randomGrantId();
  }

  /**
   * Makes sure that a login can be brought to its end before it is begun, and before its code is used up.
   *
   * @param needsSession Whether a session has to be there, also where the grant's id is not kept in it.
   * @returns the manager for the new grant
   * @throws ConfigurationError if there is no session or no store; TokenStoreError if there was a session until now
   */
  checkLoginIsPossible(req: IncomingMessage, needsSession: boolean): GrantManager {
    if (!sessionOf(req) && (this.idIsInSession || needsSession)) throw this.#noSession();
    const manager = this.#managers.for(req);
    if (manager) return manager;
    throw new ConfigurationError(
      'tokenStore: the session has no store to keep grants in (cookie-session, for example). Set tokenStore, to redisTokenStore(…) or postgresTokenStore(…), say.',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  #noSession(): ConfigurationError | TokenStoreError {
    if (this.#sessionSeen) {
      // express-session lets requests pass without a session while its store is disconnected.
      return new TokenStoreError(
        'There is no session now, though earlier requests had one: the session store is disconnected.',
        { code: 'ERR_SESSION_STORE' },
      );
    }
    return new ConfigurationError(
      'There is no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.',
      { code: 'ERR_NO_SESSION' },
    );
  }
}
