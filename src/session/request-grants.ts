import { createHash, randomBytes } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import * as check from '../checks.js';
import { ConfigurationError, closedError } from '../errors.js';
import { checkedGrantId, isRandomGrantId, newGrantId } from '../grants/grant.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { type SessionStoreLike, sessionTokenStore } from '../stores/session-token-store.js';
import type { TokenStore } from '../stores/token-store.js';
import { isRefusedUser, passportRecordOf, type SessionLike, sessionOf, userIdOf, userOf } from './session.js';

/** Value under `connectionKey` of an account that was connected before any login: it belongs to the session, not to a user. */
export const ANONYMOUS = 'anonymous';

/** How a strategy finds the grant of a request. */
export interface RequestGrantsOptions {
  /** Passport's name for the strategy: the key of the reference in the session. */
  readonly name: string;
  /** The option `grantId`. Without it, the session holds a random id. */
  readonly grantId: ((req: IncomingMessage, user: unknown) => unknown) | undefined;
  /** What makes the strategy one of many. */
  readonly tenant?: { readonly carryOver: RequestGrants['carryOver'] } | undefined;
}

/** Finds the grant that a request refers to: by the id in its session, or by the option `grantId`. */
export class RequestGrants {
  readonly #grantId: RequestGrantsOptions['grantId'];
  /** Key of the reference in the session. */
  readonly key: string;
  /** The session's key for what is known of a connected account. No strategy has such a name: the middle dot is not ASCII. */
  readonly connectionKey: string;
  /** False if the application finds the grant by its own id: the session then holds no reference. */
  readonly idIsInSession: boolean;
  /** True if ids are random, so that no grant has had one before. */
  readonly isNewId: boolean;
  /** Copies what a session had of other tenants to that of a login. */
  readonly carryOver: ((former: object, next: object) => void) | undefined;
  /** True once a request had a session. */
  hasSeenSession = false;

  constructor({ name, grantId, tenant }: RequestGrantsOptions) {
    this.#grantId = grantId;
    this.key = name;
    this.connectionKey = `${name}\u00b7connected`;
    // The user of the request may be another tenant's: the session says who logged in at this one.
    this.idIsInSession = grantId === undefined || tenant !== undefined;
    this.isNewId = grantId === undefined;
    this.carryOver = tenant?.carryOver;
  }

  /** Returns true if the request has what {@link idOf} looks into: a session, or a user. */
  canFindGrant(req: IncomingMessage): boolean {
    return this.idIsInSession ? sessionOf(req) !== undefined : Boolean(userOf(req));
  }

  /** Returns true if the request comes with a grant that exists. If the store fails, that is unknown, and counts as true. */
  async hasGrant(req: IncomingMessage, manager: GrantManager): Promise<boolean> {
    const grantId = this.idOf(req);
    return grantId !== undefined && (await manager.has(grantId).catch(() => true));
  }

  /** Returns the id of the request's grant, if it has one. @throws ConfigurationError if the option `grantId` returns no valid id */
  idOf(req: IncomingMessage, session: SessionLike | undefined = sessionOf(req)): string | undefined {
    if (session) this.hasSeenSession = true;
    if (this.idIsInSession || !this.#grantId) {
      const reference = this.referenceOf(req, session);
      if (reference === undefined || !session || !isRefusedUser(req, session)) return reference;
      return session[this.connectionKey] === ANONYMOUS ? reference : undefined;
    }
    const user = userOf(req);
    if (user === undefined || user === null || user === false) return undefined;
    const id = check.result('grantId', this.#grantId(req, user));
    return id === undefined || id === null || id === '' ? undefined : checkedGrantId(id);
  }

  /** Returns the id that the session refers to, whoever is logged in. */
  referenceOf(req: IncomingMessage, session: SessionLike | undefined = sessionOf(req)): string | undefined {
    const reference = this.idIsInSession ? session?.[this.key] : undefined;
    const isReference = this.isNewId ? isRandomGrantId(reference) : reference !== '';
    return isReference && typeof reference === 'string' ? reference : undefined;
  }

  /**
   * Returns a short text that differs for each logged-in user, and is empty without one.
   *
   * @throws ConfigurationError if nothing identifies the user, and a text `isRequired`
   */
  userMarkOf(req: IncomingMessage, isRequired: boolean): string {
    const user = userOf(req);
    // Without passport.session() the user of the session has not been read.
    const record = user ? undefined : passportRecordOf(req);
    if (!user && record === undefined) return '';
    const id = user ? (this.idIsInSession ? userIdOf(user) : this.idOf(req)) : JSON.stringify(record);
    if (id !== undefined) return createHash('sha256').update(id).digest('base64url').slice(0, 11);
    if (!isRequired) return '';
    throw new ConfigurationError(
      'passport.authorize: the logged-in user cannot be identified, so another user could finish the connection. Set the option grantId, or give req.user one of the properties id, _id, sub and username.',
      { code: 'ERR_NO_USER_ID' },
    );
  }

  /**
   * Returns the id for the grant of a user who just logged in.
   *
   * @throws ConfigurationError if the option `grantId` returns no valid id, or one that is made of a missing `user.id`: all users
   *   without it would share a grant
   */
  newId(req: IncomingMessage, user: unknown): string {
    if (!this.#grantId) return randomBytes(32).toString('base64url');
    const id = check.result('grantId', this.#grantId(req, user));
    if (typeof id !== 'string' || !isOfMissingValue(id, user)) return newGrantId(id);
    throw new ConfigurationError(
      'grantId: expected an id that differs for each user, got one made of a missing user.id. profile.id is the claim sub of the access token; opaque tokens have none: set the option userProfile to a function that returns { id }.',
      { option: 'grantId' },
    );
  }
}

/**
 * Returns true if an id has the text `undefined` or `null` in it for a user without an `id`, as `user_${user.id}` has. It may have
 * that text from the user, such as a name, or distinguish users by another key.
 */
function isOfMissingValue(id: string, user: unknown): boolean {
  if (!TEXT_OF_MISSING.test(id)) return false;
  const isObject = typeof user === 'object' && user !== null;
  if (isObject && (Reflect.get(user, 'id') ?? undefined) !== undefined) return false;
  const key = userIdOf(user);
  const known = [key, ...(isObject ? Object.values(user) : [])].filter((value) => typeof value === 'string');
  return !known.some((value) => (value === key || TEXT_OF_MISSING.test(value)) && hasPart(id, value));
}

const TEXT_OF_MISSING = /undefined|null/i;

/** Returns true if a text has a part that is not within a word. The case does not matter. */
function hasPart(text: string, part: string): boolean {
  const escaped = part.replaceAll(/[^\p{L}\p{N}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
  return new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, 'iu').test(text);
}

/** The grant managers of a strategy: one for the option `tokenStore`, else one for each session store of its requests. */
export class GrantManagers {
  readonly #tokenStore: TokenStore | undefined;
  readonly #create: (store: TokenStore) => GrantManager;
  readonly #byStore = new Map<object, GrantManager>();
  readonly #stores: TokenStore[] = [];
  /** True once the strategy is closed. */
  isClosed = false;

  constructor(tokenStore: TokenStore | undefined, create: (store: TokenStore) => GrantManager) {
    this.#tokenStore = tokenStore;
    this.#create = create;
    if (tokenStore) this.#add(tokenStore, tokenStore);
  }

  /** The store of all grants; `undefined` if there is none yet, or several session stores have some. */
  get onlyStore(): TokenStore | undefined {
    return this.#stores.length === 1 ? this.#stores[0] : undefined;
  }

  /** Returns the manager outside of a request. @throws ConfigurationError if there is no store yet, or more than one */
  only(): GrantManager {
    if (this.isClosed) throw closedError();
    const [manager, ...others] = this.#byStore.values();
    if (manager && others.length === 0) return manager;
    throw new ConfigurationError(
      'tokenStore: outside of a request there is no session that leads to a store. Set tokenStore: sessionTokenStore(store), with the store of your sessions.',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  /** Returns the manager for a request. @throws ConfigurationError if neither the option nor the session has a store */
  for(req: IncomingMessage): GrantManager {
    if (this.#tokenStore) return this.only();
    const store: unknown = 'sessionStore' in req ? req.sessionStore : undefined;
    if (typeof store === 'object' && store !== null)
      return this.#byStore.get(store) ?? this.#add(store, sessionTokenStore(store as SessionStoreLike));
    throw new ConfigurationError(
      'tokenStore: the session has no store to keep grants in (cookie-session has none). Set tokenStore, for example to redisTokenStore(…) or postgresTokenStore(…).',
      { option: 'tokenStore', code: 'ERR_NO_TOKEN_STORE' },
    );
  }

  /** Waits for running refreshes and saves. Managers that are created later are closed too. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.#byStore.values()].map((manager) => manager.close()));
  }

  /** See {@link GrantManager.retire}. */
  async retire(): Promise<void> {
    await Promise.all([...this.#byStore.values()].map((manager) => manager.retire()));
  }

  #add(key: object, store: TokenStore): GrantManager {
    const manager = this.#create(store);
    this.#byStore.set(key, manager);
    this.#stores.push(store);
    if (this.isClosed) void manager.close();
    return manager;
  }
}
