import type { IncomingMessage } from 'node:http';
import { ConfigurationError, TokenStoreError } from '../errors.js';
import { checkedGrantId, isRandomGrantId, randomGrantId } from '../grants/grant.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { GrantManagers } from '../refresh/grant-managers.js';
import { userOf } from './incoming-request.js';
import { sessionOf } from './session.js';
import type { StrategyName } from './strategy-names.js';

/** How a strategy finds the grant of a request. */
export interface RequestGrantsOptions {
  /** Passport's name for the strategy: the key of the reference under the session. */
  readonly name: string;
  /** The option `grantId`. Without it, the session holds a random id. */
  readonly grantId: ((req: IncomingMessage, user: unknown) => unknown) | undefined;
  readonly strategyName: StrategyName;
}

/** Finds the grant that a request refers to: by the id in its session, or by the option `grantId`. */
export class RequestGrants {
  readonly #options: RequestGrantsOptions;
  readonly #managers: GrantManagers;
  #sessionSeen = false;

  constructor(options: RequestGrantsOptions, managers: GrantManagers) {
    this.#options = options;
    this.#managers = managers;
  }

  /** True if the session holds the grant's id; false if the option `grantId` makes it. */
  get idIsInSession(): boolean {
    return this.#options.grantId === undefined;
  }

  /** Returns true if the request has what {@link idOf} looks into: a session, or a user. */
  canFindGrant(req: IncomingMessage): boolean {
    return this.idIsInSession ? sessionOf(req) !== undefined : Boolean(userOf(req));
  }

  /** Returns true if the request comes with what a login leaves: the reference in the session, or a user. */
  isKnown(req: IncomingMessage): boolean {
    return this.idIsInSession ? this.idOf(req) !== undefined : Boolean(userOf(req));
  }

  /** Returns the id of the request's grant, if it has one. @throws ConfigurationError if the option `grantId` returns no valid id */
  idOf(req: IncomingMessage): string | undefined {
    const { grantId, name } = this.#options;
    const session = sessionOf(req);
    if (session) this.#sessionSeen = true;
    if (!grantId) this.#options.strategyName.warnIfShared(req);
    if (!grantId) return isRandomGrantId(session?.[name]) ? session[name] : undefined;
    const user = userOf(req);
    if (user === undefined || user === null) return undefined;
    const id = grantId(req, user);
    return id === undefined || id === null || id === '' ? undefined : checkedGrantId(id);
  }

  /** Takes the reference out of the session. @returns the id, if there was one */
  takeReference(req: IncomingMessage): string | undefined {
    const { name } = this.#options;
    const grantId = this.idIsInSession ? this.idOf(req) : undefined;
    const session = sessionOf(req);
    if (session && grantId !== undefined) delete session[name];
    return grantId;
  }

  /** Puts a reference back that {@link takeReference} took. */
  restoreReference(req: IncomingMessage, grantId: string): void {
    const session = sessionOf(req);
    if (session) session[this.#options.name] = grantId;
  }

  /** Returns the id for the grant of a user who has just logged in. @throws ConfigurationError if the option `grantId` returns no valid id */
  newId(req: IncomingMessage, user: unknown): string {
    const { grantId } = this.#options;
    return grantId ? checkedGrantId(grantId(req, user)) : randomGrantId();
  }

  /**
   * Throws if a login could not be finished, before it begins and before its code is spent.
   *
   * @param needsSession True if a session is needed even if it does not hold the grant's id.
   * @throws ConfigurationError if there is no session or no store; TokenStoreError if earlier requests had a session
   */
  requireSessionAndStore(req: IncomingMessage, needsSession: boolean): void {
    if (this.idIsInSession) this.#options.strategyName.warnIfShared(req);
    if (!sessionOf(req) && (this.idIsInSession || needsSession)) {
      if (!this.#sessionSeen) {
        throw new ConfigurationError(
          'The request has no session: mount express-session before Passport and the routes of login and callback, or set grantId and use { session: false }.',
          { code: 'ERR_NO_SESSION' },
        );
      }
      // express-session calls the next handler without a session while its store is disconnected.
      throw new TokenStoreError(
        'The request has no session, although earlier requests had one: the session store is disconnected.',
        { code: 'ERR_SESSION_STORE' },
      );
    }
    this.managerFor(req);
  }

  /** Returns the manager of the request's grants. @throws ConfigurationError if there is no token store */
  managerFor(req: IncomingMessage): GrantManager {
    const manager = this.#managers.for(req);
    if (manager) return manager;
    throw new ConfigurationError(
      'tokenStore: the session has no store to keep grants in (cookie-session has none). Set tokenStore, for example to redisTokenStore(…) or postgresTokenStore(…).',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }
}
