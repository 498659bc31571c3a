import type { Credential } from '../api/api-context.js';
import { ConfigurationError, NotAuthorizedError } from '../errors.js';
import type { GrantEvent, GrantLostEvent } from '../events.js';
import {
  emptyGrant,
  freshness,
  type Grant,
  type GrantSummary,
  isOlder,
  isPastEnd,
  isSameUser,
  issuedGrant,
  isUnusable,
  type RefreshWindow,
  summaryOf,
  withRefreshTokenOf,
} from '../grants/grant.js';
import { GrantRepository, type GrantRepositoryOptions, type Removal } from '../grants/grant-repository.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { StoreAccess } from '../stores/store-access.js';
import { NO_GRANT } from './locked-refreshes.js';
import { Refresher, type RefresherOptions } from './refresher.js';
import { type UnsavedGrant, UnsavedGrants } from './unsaved-grants.js';

/** Whether to revoke the tokens of a grant. `ask again`: it may be deleted in a moment. */
export type WhetherToRevoke = 'revoke' | 'keep' | 'ask again';

/** Revokes the tokens of grants that were deleted here. */
export interface Revoking {
  /**
   * Starts to revoke the tokens of a grant. Never throws.
   *
   * @param decide Called before each try until it has decided. It may throw a TokenStoreError, which counts as `ask again`.
   */
  start(grantId: string, grant: Grant, decide?: () => Promise<WhetherToRevoke>): void;
  /** Waits for the revocations for some seconds, without pauses between their tries. The others fail. */
  close(): Promise<void>;
}

/** Options of a {@link GrantManager}. */
export interface GrantManagerOptions
  extends Pick<RefresherOptions, 'endpoint' | 'onRefresh' | 'parametersOf'>,
    Pick<GrantRepositoryOptions, 'strategyName' | 'store' | 'codec' | 'cache' | 'clock'> {
  readonly window: RefreshWindow;
  /** `undefined`: the tokens of deleted grants are not revoked at the service. */
  readonly revocations?: Revoking | undefined;
  readonly onLost: (grantId: string, reason: GrantLostEvent['reason']) => void;
  readonly onGrant: (grantId: string, action: GrantEvent['action']) => void;
  /** Called once, when another process has refreshed a grant in a store without a lock. */
  readonly onUnlockedRefresh: () => void;
}

/** Loads grants, decides whether they are due, and has them refreshed. Concurrent callers may share an error object. */
export class GrantManager {
  readonly access: StoreAccess;
  readonly repository: GrantRepository;
  readonly refresher: Refresher;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  readonly endpoint: TokenEndpoint;
  readonly onGrant: GrantManagerOptions['onGrant'];
  readonly #options: GrantManagerOptions;
  readonly #unsaved = new Map<string, UnsavedGrant>();
  /** Number of logins and logouts in this process that may have replaced or deleted a grant that was loaded before. */
  changes = 0;
  /** True once {@link close} was called. */
  isClosed = false;
  #closing: Promise<void> | undefined;

  constructor(options: GrantManagerOptions) {
    const { clock, window, endpoint, onRefresh, onGrant, onLost } = options;
    this.clock = clock;
    this.endpoint = endpoint;
    this.onGrant = onGrant;
    this.#options = options;
    let hasWarned = false;
    this.repository = new GrantRepository({
      ...options,
      unsaved: this.#unsaved,
      onUnreadable: (grantId) => onLost(grantId, 'unreadable'),
      onRecovery: () => void unsaved.flush(),
      onUnlockedRefresh: () => {
        if (!hasWarned) options.onUnlockedRefresh();
        hasWarned = true;
      },
    });
    this.access = this.repository.access;
    const unsaved = new UnsavedGrants(this.#unsaved, this.repository, (grantId, event, grant) => {
      onRefresh(grantId, event);
      if (event.outcome === 'discarded') this.#revokeUnlessStored(grantId, grant);
    });
    this.refresher = new Refresher({
      ...options,
      repository: this.repository,
      unsaved,
      onDiscarded: (grantId, grant) => this.#revokeUnlessStored(grantId, grant),
      isUsable: (grant) => freshness(grant, clock(), window, endpoint.origin) !== 'expired',
    });
  }

  /**
   * Returns the grant with a usable access token. Synchronous, and without I/O, if it is cached and not expired.
   *
   * @param loaded The grant as the same request has loaded it: spares a read where no cache has it.
   * @param mayIssue True outside of requests: the grant may be the application's, which needs no login before it.
   * @throws NotAuthorizedError if there is none; TokenStoreError, TokenError, TokenResponseError or
   *   ServiceUnavailableError if it cannot be loaded or refreshed now
   */
  current(grantId: string, loaded?: Grant, mayIssue = false): Grant | Promise<Grant> {
    const grant = this.repository.known(grantId) ?? loaded;
    if (grant === undefined) return this.#load(grantId, mayIssue);
    if (grant.application && !mayIssue) return Promise.reject(new NotAuthorizedError(NO_GRANT));
    const { clock, window, endpoint } = this.#options;
    const state = freshness(grant, clock(), window, endpoint.origin);
    if (state === 'expired') return this.#refreshed(grantId, grant);
    if (state === 'due' && this.refresher.isIdle(grantId))
      // The failure is published as an event, and the token is still valid.
      this.refresher.refresh(grantId, grant, 'ahead').catch(() => undefined);
    return grant;
  }

  /** Refreshes a grant that has expired, or will within the leeway: its access token serves until then if the refresh fails. */
  async #refreshed(grantId: string, grant: Grant): Promise<Grant> {
    const { clock, endpoint } = this.#options;
    if (grant.expiresAt > clock() && endpoint.pauses.remainingMs('ahead', grantId) > 0) return grant;
    try {
      return await this.refresher.refresh(grantId, grant, 'expired');
    } catch (error) {
      if (grant.expiresAt > clock() && !(error instanceof NotAuthorizedError)) return grant;
      throw error;
    }
  }

  /** Returns true if a user has such a grant, whether or not it is due for a refresh. @throws TokenStoreError if it cannot be read */
  async has(grantId: string): Promise<boolean> {
    const grant = this.repository.known(grantId) ?? (await this.repository.read(grantId));
    return grant !== undefined && !grant.application && !isUnusable(grant, this.#options.clock());
  }

  /** Returns the grant of a user, expired or not. Synchronous, and without I/O, if it is cached. */
  stored(grantId: string): Grant | Promise<Grant> {
    const known = this.repository.known(grantId);
    if (known && !known.application) return known;
    return this.repository.read(grantId).then((read) => {
      const grant = this.repository.known(grantId) ?? read;
      if (grant && !grant.application) return grant;
      throw new NotAuthorizedError(NO_GRANT);
    });
  }

  /**
   * Returns a grant with another access token than the one that the API refused, or with the same one if none can be had now.
   *
   * @param isDead True if the API says only that the token is invalid: a grant that cannot get another one ends.
   * @throws like {@link current}
   */
  async renew(
    grantId: string,
    refused: string,
    { isDead = false, mayIssue = false }: { readonly isDead?: boolean | undefined; readonly mayIssue?: boolean } = {},
  ): Promise<Grant> {
    const known = this.repository.known(grantId) ?? (await this.repository.read(grantId));
    if (!known) return await this.#load(grantId, mayIssue);
    if (known.accessToken !== refused) return await this.current(grantId, known, mayIssue);
    const { clock, endpoint } = this.#options;
    // Nothing can replace it, and the API may have refused it for one request only.
    const isReplaceable = known.refreshToken !== undefined || known.application;
    if (!isDead && !isReplaceable && known.expiresAt > clock()) return known;
    if (endpoint.pauses.remainingMs('renewed', grantId) > 0) return known;
    return await this.refresher.refresh(grantId, known, 'refused');
  }

  /**
   * Records whether the API accepted a grant of {@link renew}. The refusal of one that this process has refreshed begins a pause
   * of `renew`; one of another process may be as old as the refused one before it.
   */
  reportOutcome(grantId: string, renewed: Credential, accepted: boolean): void {
    const { pauses, id } = this.#options.endpoint;
    if (accepted) {
      pauses.end(grantId, 'renewed');
      return;
    }
    const known = this.repository.known(grantId);
    const isOwn = known?.accessToken === renewed.accessToken && known.obtainedBy === id;
    if (isOwn && pauses.remainingMs('renewed', grantId) === 0) pauses.begin('renewed', grantId);
  }

  /**
   * Saves the grant of a login in place of any other.
   *
   * @param isNewId True for an id that no grant has had: there is nothing to forget.
   * @param formerId Returns the id of the grant that the login replaces. If the login has brought no refresh token, and both are of the
   *   same user, the former one's is kept, as in a refresh (RFC 6749, 6).
   * @throws TokenStoreError if it was not saved in time; it may be saved later. ConfigurationError (`ERR_APPLICATION_GRANT`) if
   *   the id is of a grant of the application
   */
  async put(grantId: string, tokens: TokenSet, isNewId = false, formerId?: () => string | undefined): Promise<Grant> {
    const { clock, endpoint, onGrant } = this.#options;
    const { repository } = this;
    if (!isNewId) await this.expectIdOfUser(grantId);
    const now = clock();
    const keptId = tokens.refreshToken === undefined ? formerId?.() : undefined;
    // A refresh that runs may be about to replace the former refresh token.
    const lock = keptId === undefined ? undefined : await this.access.acquire(repository.storeId(keptId));
    try {
      const former = keptId && (this.#unsaved.get(keptId)?.grant ?? (await repository.readAnew(keptId)));
      // With the application's own ids, the same id means the same user.
      const isKept = former && !isPastEnd(former, now) && (isSameUser(former, tokens) ?? keptId === grantId);
      const grant = issuedGrant(isKept ? withRefreshTokenOf(former, tokens, now) : tokens, now, endpoint.id);
      await repository.create(grantId, grant, isNewId ? undefined : () => this.forget(grantId, grant));
      onGrant(grantId, 'stored');
      return grant;
    } finally {
      await lock?.release();
    }
  }

  /** @throws ConfigurationError (`ERR_APPLICATION_GRANT`) if the id is of a grant of the application */
  async expectIdOfUser(grantId: string): Promise<void> {
    if ((await this.#options.parametersOf?.(grantId)) === undefined) return;
    const message =
      'grantId: expected an id for which applicationGrant returns undefined: a user must not get the grant of the application. Let the ids of one of the two begin with a prefix.';
    throw new ConfigurationError(message, { option: 'grantId', code: 'ERR_APPLICATION_GRANT' });
  }

  /**
   * Deletes the grant of a user who logs out, and then revokes its tokens at the service, in the background. A running
   * refresh does not bring it back: its new tokens are revoked too.
   *
   * @param isOfUser True if a grant of the application stays. @throws TokenStoreError if it is not known to be deleted
   */
  async remove(grantId: string, isOfUser = true): Promise<void> {
    if (isOfUser && (await this.#isOfApplication(grantId))) return;
    let unsaved = this.#unsaved.get(grantId)?.grant;
    const newest = (stored: Grant | undefined) => (unsaved && (!stored || isOlder(stored, unsaved)) ? unsaved : stored);
    this.forget(grantId);
    const removal = this.repository.remove(grantId, (stored) => {
      // A refresh that began while the store was slow may have left a newer pair since, which is forgotten here.
      unsaved = this.#unsaved.get(grantId)?.grant ?? unsaved;
      this.forget(grantId);
      const grant = newest(stored);
      if (!grant) return;
      this.#options.onGrant(grantId, 'deleted');
      this.#options.revocations?.start(grantId, grant);
    });
    try {
      await removal.done;
    } catch (error) {
      const grant = newest(removal.grant);
      // If the store deleted it after all, the next try would find nothing to revoke.
      if (grant && removal.outcome === 'unknown') this.#revokeUnlessStored(grantId, grant, removal);
      throw error;
    }
  }

  /**
   * Deletes a grant that a login has replaced, or that no session refers to. Its tokens are not revoked: many services
   * would end the grant of the new login with them. So it waits for a refresh that runs, in any process. @throws TokenStoreError
   */
  async discard(grantId: string): Promise<void> {
    if (await this.#isOfApplication(grantId)) return;
    const lock =
      this.#options.revocations && (await this.access.acquire(this.repository.storeId(grantId)).catch(() => undefined));
    try {
      this.forget(grantId);
      await this.repository.remove(grantId, (grant) => {
        this.forget(grantId);
        if (grant) this.#options.onGrant(grantId, 'deleted');
      }).done;
    } finally {
      await lock?.release();
    }
  }

  /** Returns what is known of a grant, an ended one included; `undefined` if there is none. @throws TokenStoreError */
  async summary(grantId: string): Promise<GrantSummary | undefined> {
    const grant = await this.repository.peek(grantId);
    return grant && summaryOf(grantId, grant, this.#options.clock());
  }

  /** Stops listening to other processes, for a strategy that was replaced. Resolves when its refreshes and saves are done. */
  async retire(): Promise<void> {
    this.repository.stopWatching();
    await this.refresher.settled();
    await this.access.drain();
  }

  /** Resolves when all refreshes and saves are done, or timed out. Later calls join the first. */
  close(): Promise<void> {
    this.repository.stopWatching();
    this.isClosed = true;
    this.#closing ??= this.refresher
      .close()
      .then(() => this.access.drain())
      .then(() => this.#options.revocations?.close());
    return this.#closing;
  }

  /**
   * Revokes tokens unless the store has their grant.
   *
   * @param removal One whose outcome is unknown: the store is asked again once it has answered the deletion, and at each later try.
   */
  #revokeUnlessStored(grantId: string, grant: Grant, removal?: Removal): void {
    const isGone = () => this.repository.isGone(grantId);
    this.#options.revocations?.start(grantId, grant, async () => {
      const isDeleted = (await isGone()) || (await removal?.answer?.then(isGone));
      // A removal that succeeded has revoked the tokens.
      if (isDeleted) return removal?.outcome === 'removed' ? 'keep' : 'revoke';
      return removal?.answer ? 'ask again' : 'keep';
    });
  }

  async #load(grantId: string, mayIssue: boolean): Promise<Grant> {
    const read = await this.repository.read(grantId);
    // A login may have been saved while the store was read.
    const grant = this.repository.known(grantId) ?? read;
    if (!grant && !(mayIssue && this.#options.parametersOf)) throw new NotAuthorizedError(NO_GRANT);
    return this.current(grantId, grant ?? emptyGrant(), mayIssue);
  }

  /** Returns true if the grant is the application's, or is just being requested for it. */
  async #isOfApplication(grantId: string): Promise<boolean> {
    if (!this.#options.parametersOf) return false;
    if (this.refresher.isOfApplication(grantId)) return true;
    const grant = this.repository.known(grantId) ?? (await this.repository.peek(grantId).catch(() => undefined));
    return grant !== undefined && 'application' in grant && grant.application === true;
  }

  /** Forgets a grant that is replaced or deleted. @param successor Replaces it. */
  forget(grantId: string, successor?: Grant): void {
    this.changes += 1;
    this.refresher.forget(grantId, successor);
  }
}
