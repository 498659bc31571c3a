import { NotAuthorizedError, ServiceUnavailableError, TokenError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import {
  type Grant,
  hasSameTokens,
  isOlder,
  isOtherSubject,
  refreshedGrant,
  withRotatedRefreshToken,
} from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { HeldLock, LockAge } from '../grants/store-access.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { rotatedRefreshToken, type TokenSet } from '../oauth/token-response.js';
import type { EndpointBackoff } from './backoff.js';
import type { UnsavedGrants } from './unsaved-grants.js';

/** A refresh that runs. */
export interface RefreshInFlight {
  readonly id: string;
  /** The grant that the callers hold. */
  readonly seen: Grant;
  readonly trigger: RefreshEvent['trigger'];
  /** On the monotonic clock. */
  readonly since: number;
  /** The grant whose refresh token was sent last. */
  current?: Grant;
  /** True once a login or logout has come in between: the result is not kept in memory. */
  isOvertaken: boolean;
  /** True once the store had another grant than expected, or none, at the save: the new pair is not used. */
  isDiscarded: boolean;
  /** How long it has waited for the lock, in milliseconds. */
  lockWaitMs: number;
  /** True once the lock was found to be too old to be relied on. */
  lostLease: boolean;
  /** True once it has sent a refresh token that another process had used before. */
  reused: boolean;
}

/** Options of {@link LockedRefreshes}. */
export interface LockedRefreshesOptions {
  readonly repository: GrantRepository;
  readonly endpoint: TokenEndpoint;
  readonly backoff: EndpointBackoff;
  readonly unsaved: UnsavedGrants;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Returns true if a grant that another process has saved can be used without a refresh. */
  readonly isUsable: (grant: Grant) => boolean;
  readonly onLost: (id: string, reason: LossReason) => void;
  /** Aborts when the strategy is closed: no refresh token is sent any more. */
  readonly signal: AbortSignal;
}

/** Message of the NotAuthorizedError for a grant that does not exist (any more). */
export const NO_GRANT = 'There is no grant (any more): the user has to log in again.';

type LossReason = 'refused' | 'other-subject';

/** A grant, and how it came about. */
export interface Refreshed {
  readonly outcome: RefreshEvent['outcome'];
  readonly grant: Grant;
}

/**
 * Pauses between the reads after a refusal, in milliseconds: another process may have refreshed the grant and not saved
 * it yet. A user who has revoked the grant waits for them once.
 */
const PAUSES_MS = [50, 150, 300];
/** The same if the store has failed within the last minute, perhaps in the other process too. */
const PAUSES_AFTER_FAILURE_MS = [...PAUSES_MS, 500, 1_000];

/** Largest number of pairs that one refresh tries: that of the store, one of another process, and that of the caller. */
const MAX_PAIRS = 3;

/** A failure that took at least this long, in milliseconds, is recorded with the grant, so that other processes do not repeat it. */
const SLOW_FAILURE_MS = 1_000;

/** The part of a refresh that runs under the lock: read again, refresh, save. */
export class LockedRefreshes {
  readonly #options: LockedRefreshesOptions;

  constructor(options: LockedRefreshesOptions) {
    this.#options = options;
  }

  /**
   * Reads the grant again, refreshes it and saves it. Returns `undefined` if the lock is too old for that.
   *
   * @param maxAge How old the lock may be when a refresh token is sent.
   * @throws like {@link Refresher.refresh}
   */
  async refresh(refresh: RefreshInFlight, lock: HeldLock, maxAge: LockAge): Promise<Refreshed | undefined> {
    const { id, seen } = refresh;
    const { unsaved, backoff, clock, isUsable, signal } = this.#options;
    // While this process still holds the lock for the save, no other has refreshed the pair.
    let pair = unsaved.heldLock(id) === lock ? unsaved.byId.get(id)?.grant : await this.#newest(id);
    if (!pair) throw new NotAuthorizedError(NO_GRANT);
    for (let tries = 0; tries < MAX_PAIRS; tries++) {
      if (pair.accessToken !== seen.accessToken && isUsable(pair)) break;
      if (pair.retryAt !== undefined) backoff.join(id, clock(), pair.retryAt);
      const error = backoff.error(id, clock());
      if (error) throw error;
      signal.throwIfAborted();
      if (lock.isOlderThan(maxAge)) return undefined;
      const refreshed = await this.#exchange(refresh, lock, () => !lock.isOlderThan(maxAge), pair);
      if (refreshed) return refreshed;
      pair = (await this.#pairAfterRefusal(refresh, pair)) ?? (await this.#giveUp(refresh, pair, 'refused'));
    }
    return { outcome: 'adopted', grant: pair };
  }

  /**
   * Returns the pair to refresh under a lock that was just taken: the stored one, or one that this process has still to
   * save. A save whose answer was lost may have reached the store; another process may have refreshed that pair since.
   */
  async #newest(id: string): Promise<Grant | undefined> {
    const { repository, unsaved } = this.#options;
    const stored = await repository.readAnew(id);
    const kept = unsaved.byId.get(id)?.grant;
    if (!kept || (stored && !isOlder(stored, kept) && stored.version !== kept.version)) return stored;
    return kept;
  }

  /** Refreshes the grant and saves the new pair. Returns `undefined` if the service refuses its refresh tokens. */
  async #exchange(
    refresh: RefreshInFlight,
    lock: HeldLock,
    isHeld: () => boolean,
    grant: Grant,
  ): Promise<Refreshed | undefined> {
    const { repository, backoff, unsaved, clock } = this.#options;
    const { id } = refresh;
    refresh.current = grant;
    const sentAt = performance.now();
    try {
      const { refreshToken, previousRefreshToken } = grant;
      const tokens =
        (refreshToken && (await this.#send(refresh, lock, isHeld, grant, refreshToken))) ||
        (previousRefreshToken && (await this.#send(refresh, lock, isHeld, grant, previousRefreshToken)));
      if (!tokens) return undefined;
      if (isOtherSubject(grant, tokens))
        return { outcome: 'adopted', grant: await this.#giveUp(refresh, grant, 'other-subject') };
      return await this.#save(refresh, lock, grant, refreshedGrant(grant, tokens, clock()));
    } catch (error) {
      const isSlowFailure = error instanceof ServiceUnavailableError && performance.now() - sentAt >= SLOW_FAILURE_MS;
      if (isSlowFailure && !refresh.isOvertaken && !unsaved.byId.has(id)) {
        // Saved with the grant, so that the processes that wait for the lock do not wait for a time-out too.
        const retryAt = clock() + backoff.remainingMs(id, clock());
        lock.holdUntil(repository.replace(id, { ...grant, retryAt }, grant.version).catch(() => undefined));
      }
      throw error;
    }
  }

  /** Sends a refresh token. Returns `undefined` if the service refuses it. @throws whatever may leave the grant valid */
  async #send(
    refresh: RefreshInFlight,
    lock: HeldLock,
    isHeld: () => boolean,
    grant: Grant,
    sent: string,
  ): Promise<TokenSet | undefined> {
    const { endpoint, backoff, clock } = this.#options;
    try {
      const tokens = await endpoint.refresh(sent, isHeld);
      backoff.succeed(refresh.id);
      return tokens;
    } catch (error) {
      if (error instanceof ServiceUnavailableError) {
        // Nothing is remembered of a grant that has been replaced or deleted.
        throw refresh.isOvertaken ? error : backoff.fail(refresh.id, error, clock());
      }
      backoff.succeed(refresh.id);
      if (error instanceof TokenError && error.error === 'invalid_grant') return undefined;
      const refreshToken = rotatedRefreshToken(error);
      if (refreshToken !== undefined && refreshToken !== sent) {
        const rotated = withRotatedRefreshToken(grant, refreshToken, sent);
        await this.#save(refresh, lock, grant, rotated).catch(() => undefined);
      }
      throw error;
    }
  }

  /**
   * Returns the pair to try after a refused one: that of another process, which may save it any moment, or the caller's,
   * if the store has lost a write.
   */
  async #pairAfterRefusal(refresh: RefreshInFlight, refused: Grant): Promise<Grant | undefined> {
    const { repository, signal } = this.#options;
    const { seen } = refresh;
    const pausesMs = repository.access.hasFailedRecently ? PAUSES_AFTER_FAILURE_MS : PAUSES_MS;
    for (const pauseMs of refused.refreshToken === undefined ? [] : [0, ...pausesMs]) {
      if (pauseMs > 0) {
        const { setTimeout: pause } = await import('node:timers/promises');
        await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted());
      }
      const stored = await repository.readAnew(refresh.id);
      if (!stored || refresh.isOvertaken) break;
      if (hasSameTokens(stored, refused) || isOlder(stored, refused)) continue;
      refresh.reused ||= isOlder(refused, stored);
      return stored;
    }
    const isUntried = seen.lineage === refused.lineage && seen.generation >= refused.generation;
    return isUntried && seen.refreshToken !== refused.refreshToken ? seen : undefined;
  }

  /**
   * Saves the new pair. Keeps it in memory if the store fails. Discards it if the store has another grant, or none, and
   * returns the stored one.
   *
   * @throws NotAuthorizedError if there is none
   */
  async #save(refresh: RefreshInFlight, lock: HeldLock, before: Grant, next: Grant): Promise<Refreshed> {
    const { id, trigger } = refresh;
    const { repository, unsaved } = this.#options;
    const storedVersion = unsaved.storedVersion(id, before);
    try {
      if (await repository.replace(id, next, storedVersion)) {
        unsaved.drop(id);
        return { outcome: 'refreshed', grant: next };
      }
    } catch {
      if (!refresh.isOvertaken) {
        unsaved.keep(id, next, storedVersion, trigger, lock);
        return { outcome: 'unsaved', grant: next };
      }
      // A login or a logout has come in between: the pair is of no use, saved or not.
    }
    refresh.isDiscarded = true;
    return { outcome: 'discarded', grant: await this.#adopt(id) };
  }

  /** Ends a grant that is of no use any more. Returns the one that the store has in its place. @throws NotAuthorizedError if there is none */
  async #giveUp(refresh: RefreshInFlight, grant: Grant, reason: LossReason): Promise<Grant> {
    const { repository, unsaved, backoff, onLost } = this.#options;
    const { id } = refresh;
    if (!(await repository.end(id, grant))) return await this.#adopt(id);
    if (!refresh.isOvertaken) {
      unsaved.drop(id);
      backoff.forget(id);
      onLost(id, reason);
    }
    throw new NotAuthorizedError(NO_GRANT);
  }

  /** Returns the stored grant in place of one that could not be refreshed or saved. @throws NotAuthorizedError if there is none */
  async #adopt(id: string): Promise<Grant> {
    const { repository, unsaved } = this.#options;
    unsaved.drop(id);
    const stored = await repository.readAnew(id);
    if (!stored) throw new NotAuthorizedError(NO_GRANT);
    return stored;
  }
}
