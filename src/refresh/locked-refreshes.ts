import {
  NotAuthorizedError,
  ServiceUnavailableError,
  TokenError,
  TokenResponseError,
  TokenStoreError,
} from '../errors.js';
import type { RefreshEvent } from '../events.js';
import {
  emptyGrant,
  type Grant,
  hasSameTokens,
  isIssuer,
  isOlder,
  isPastEnd,
  isSameUser,
  issuedGrant,
  NO_TOKEN,
  tenantChanged,
  withRotatedRefreshToken,
} from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { Turn } from '../oauth/request-queue.js';
import type { TokenEndpoint, TokenParameters } from '../oauth/token-endpoint.js';
import { responseFactsOf, type TokenSet } from '../oauth/token-response.js';
import type { HeldLock } from '../stores/store-access.js';
import { pause } from '../waiting.js';
import type { UnsavedGrants } from './unsaved-grants.js';

/** A running refresh, and what is known of it so far. */
export interface RefreshInFlight {
  readonly id: string;
  /** The grant that the callers hold. */
  readonly seen: Grant;
  readonly trigger: RefreshEvent['trigger'];
  /** Its slot at the token endpoint. */
  readonly turn: Turn;
  /** Parameters of the token request of a grant of the application, which has no refresh token. */
  parameters: TokenParameters | undefined;
  /** The grant of the token request that was sent last; `undefined` before the first. */
  current: Grant | undefined;
  /** True once a login or a logout came in between: the result is not kept in memory. */
  isOvertaken: boolean;
  /** True if a refresh token was sent that another process had used before. */
  reused: boolean;
  /** How long it waited for the lock, in milliseconds. */
  lockWaitMs: number;
  /** True if a lock was found to be too old, or lost. */
  lostLease: boolean;
}

/** The outcome of a refresh that took a lock. */
export type LockedResult =
  | { readonly outcome: 'refreshed' | 'adopted' | 'unsaved'; readonly grant: Grant }
  /** The store had another grant than expected at the save, or none. */
  | { readonly outcome: 'discarded'; readonly grant: Grant | undefined };

/** Options of {@link LockedRefreshes}. */
export interface LockedRefreshesOptions {
  readonly repository: GrantRepository;
  readonly endpoint: TokenEndpoint;
  readonly unsaved: UnsavedGrants;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Returns true if a grant that another process has saved can be used without a refresh. */
  readonly isUsable: (grant: Grant) => boolean;
  readonly onLost: (id: string, reason: LossReason) => void;
  /** Called with new tokens that the store did not take, since a login or a logout came during the refresh. */
  readonly onDiscarded: (id: string, grant: Grant) => void;
  /** Aborts when the strategy is closed. */
  readonly signal: AbortSignal;
}

/** Message of the NotAuthorizedError for a grant that does not exist, or was removed. */
export const NO_GRANT = 'No grant for this user; they must log in again.';

type LossReason = 'refused' | 'expired' | 'other-subject';

/** Pauses between the reads after a refusal, in milliseconds: another process may have refreshed the grant and not saved it yet. */
const PAUSES_AFTER_REFUSAL_MS = [50, 150, 300];
/** The same if the store failed within the last minute: it may fail in the other process too. */
const PAUSES_AFTER_FAILURE_MS = [...PAUSES_AFTER_REFUSAL_MS, 500, 1_000];

/** Largest number of pairs that one refresh tries: that of the store, one of another process, and that of the caller. */
const MAX_PAIRS = 3;

/** Shortest failure, in milliseconds, that is recorded with the grant, so that other processes do not repeat it. */
const SLOW_FAILURE_MS = 1_000;

/** Maximum age of the lock when a refresh token is sent, by try. Beyond it, too little of its lease is left for saves that fail. */
const MAX_LOCK_AGES_MS = [1_000, 5_000, 5_000];

/** Runs refreshes under a lock. Keeps no state of one: an error that is kept holds the objects whose methods are in its stack. */
export class LockedRefreshes {
  readonly #options: LockedRefreshesOptions;

  constructor(options: LockedRefreshesOptions) {
    this.#options = options;
  }

  /** Reads the grant again under its lock, refreshes it and saves it. Takes another lock if the first is too old, or lost. */
  async refresh(refresh: RefreshInFlight): Promise<LockedResult> {
    const { repository, unsaved, endpoint, signal } = this.#options;
    const { id } = refresh;
    const kept = unsaved.byId.get(id);
    const heldLock = kept?.lock.limitTo(endpoint.timeoutMs);
    // One that is too old stays held: its next owner may know the old pair only.
    if (kept && heldLock?.maySend) {
      const running = this.#run(refresh, heldLock, kept.grant);
      heldLock.holdUntil(running);
      const result = await running;
      if (result !== 'lock-lost') return result;
    }
    for (const [tries, maxAgeMs] of MAX_LOCK_AGES_MS.entries()) {
      const askedAt = performance.now();
      const lock = await repository.access.acquire(repository.storeId(id), signal);
      refresh.lockWaitMs += performance.now() - askedAt;
      try {
        // A wall clock that has jumped each time is being set; no machine is suspended that often.
        const trustsWallClock = tries < MAX_LOCK_AGES_MS.length - 1;
        const result = await this.#run(refresh, lock.limitTo(endpoint.timeoutMs, maxAgeMs, trustsWallClock));
        if (result !== 'lock-lost') return result;
        refresh.lostLease = true;
      } finally {
        await lock.release();
      }
    }
    const message = "Lost the grant's lock three times before refreshing. The grant is kept.";
    throw new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_LOCKED' });
  }

  /** @param kept The pair that this process holds the lock for until it is saved: no other has refreshed it. */
  async #run(refresh: RefreshInFlight, lock: HeldLock, kept?: Grant): Promise<LockedResult | 'lock-lost'> {
    const { id, seen, trigger, parameters } = refresh;
    const { endpoint, clock, isUsable, signal } = this.#options;
    // Checked after the read began: the owner of a lock that was lost since may have read the same pair.
    const [stored, isHeld = true] = await Promise.all([kept ?? this.#newest(id), kept ? true : lock.isHeld?.()]);
    if (!stored && !parameters) throw new NotAuthorizedError(NO_GRANT);
    let pair = stored ?? emptyGrant();
    for (let tries = 0; tries < MAX_PAIRS; tries++) {
      if (pair.accessToken !== seen.accessToken && isUsable(pair)) break;
      const isPast = isPastEnd(pair, clock());
      const isReplaceable = parameters !== undefined || (pair.refreshToken !== undefined && !isPast);
      // An access token that nothing can replace serves until it expires.
      if (!isReplaceable && pair.expiresAt > clock() && trigger !== 'refused') break;
      // A pair of another process ends by that one's clock, which may differ: the service is asked once.
      if (!isReplaceable && !(isPast && pair.obtainedBy !== endpoint.id)) {
        pair = await this.#giveUp(refresh, pair, trigger === 'refused' && !isPast ? 'refused' : 'expired');
        continue;
      }
      if (pair.retryAt !== undefined) endpoint.pauses.join(id, pair.retryAt);
      const error = endpoint.pauses.error(id);
      if (error) throw error;
      signal.throwIfAborted();
      if (!isIssuer(pair.issuedBy, endpoint.origin)) throw tenantChanged();
      if (!isHeld || !lock.maySend) return 'lock-lost';
      endpoint.pauses.probe();
      const refreshed = await this.#exchange(refresh, lock, pair);
      if (refreshed) return refreshed;
      pair =
        (await this.#pairAfterRefusal(refresh, pair)) ??
        (await this.#giveUp(refresh, pair, isPast ? 'expired' : 'refused'));
    }
    return { outcome: 'adopted', grant: pair };
  }

  /** Returns the stored pair, or an unsaved one, unless its save reached the store and another process has refreshed it since. */
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
    grant: Grant,
  ): Promise<LockedResult | 'lock-lost' | undefined> {
    const { repository, endpoint, unsaved, clock } = this.#options;
    const { id } = refresh;
    refresh.current = grant;
    const sentAt = performance.now();
    try {
      if (refresh.parameters) return await this.#request(refresh, lock, grant, refresh.parameters);
      const { refreshToken, previousRefreshToken } = grant;
      let tokens = refreshToken && (await this.#send(refresh, lock, grant, refreshToken));
      if (!tokens && previousRefreshToken) {
        if (!lock.maySend) return 'lock-lost';
        tokens = await this.#send(refresh, lock, grant, previousRefreshToken);
      }
      if (!tokens) return undefined;
      if (isSameUser(grant, tokens) === false)
        return { outcome: 'adopted', grant: await this.#giveUp(refresh, grant, 'other-subject') };
      return await this.#save(refresh, lock, grant, issuedGrant(tokens, clock(), endpoint.id, grant));
    } catch (error) {
      const isSlowFailure = error instanceof ServiceUnavailableError && performance.now() - sentAt >= SLOW_FAILURE_MS;
      if (isSlowFailure && !refresh.isOvertaken && !unsaved.byId.has(id)) {
        // Saved with the grant, so that processes that wait for the lock do not time out too.
        const retryAt = clock() + endpoint.pauses.beforeRequestMs(id);
        lock.holdUntil(repository.replace(id, { ...grant, retryAt }, grant.version));
      }
      throw error;
    }
  }

  /** Gets new tokens for a grant of the application, and saves them. */
  async #request(
    refresh: RefreshInFlight,
    lock: HeldLock,
    grant: Grant,
    parameters: TokenParameters,
  ): Promise<LockedResult> {
    const { endpoint, clock } = this.#options;
    const { id } = refresh;
    try {
      const tokens = await endpoint.requestTokens(parameters, { mayRepeat: () => lock.maySend });
      endpoint.pauses.succeeded(id, false);
      const next = { ...issuedGrant(tokens, clock(), endpoint.id, grant), application: true };
      return await this.#save(refresh, lock, grant, next);
    } catch (error) {
      throw refresh.isOvertaken ? error : endpoint.pauses.failed(id, error, false);
    }
  }

  /** Sends a refresh token. Returns `undefined` if the service refuses it; any error may leave the grant valid. */
  async #send(
    refresh: RefreshInFlight,
    lock: HeldLock,
    grant: Grant,
    refreshToken: string,
  ): Promise<TokenSet | undefined> {
    const { endpoint, clock } = this.#options;
    const { pauses } = endpoint;
    const { id, trigger, turn } = refresh;
    // Some services refuse a refresh while the access token is good, which says nothing about the refresh token.
    const goodMs = trigger === 'refused' ? 0 : Math.max(0, grant.expiresAt - clock());
    try {
      const mayRepeat = () => lock.maySend;
      const tokens = await endpoint.refresh(refreshToken, { mayRepeat, turn, isEarly: goodMs > 0 });
      pauses.succeeded(id, true);
      return tokens;
    } catch (error) {
      const { rotatedToken: rotated } = responseFactsOf(error);
      if (rotated !== undefined && rotated !== refreshToken) {
        const next = withRotatedRefreshToken(grant, rotated, refreshToken);
        await this.#save(refresh, lock, grant, next).catch(() => undefined);
      }
      const isRefusal = error instanceof TokenError || error instanceof TokenResponseError;
      // The service was asked, and the stated end has passed.
      if (isRefusal && rotated === undefined && isPastEnd(grant, clock())) return undefined;
      throw refresh.isOvertaken ? error : pauses.failed(id, error, true, goodMs);
    }
  }

  /** Returns the pair to try after a refused one: that of another process, or the caller's if the store has lost a write. */
  async #pairAfterRefusal(refresh: RefreshInFlight, refused: Grant): Promise<Grant | undefined> {
    const { repository, signal } = this.#options;
    const { id, seen } = refresh;
    const pausesMs = repository.access.hasFailedRecently ? PAUSES_AFTER_FAILURE_MS : PAUSES_AFTER_REFUSAL_MS;
    for (const pauseMs of [0, ...pausesMs]) {
      if (pauseMs > 0) await pause(pauseMs, { signal });
      const stored = await repository.readAnew(id);
      if (!stored || refresh.isOvertaken) break;
      if (hasSameTokens(stored, refused) || isOlder(stored, refused)) continue;
      refresh.reused ||= isOlder(refused, stored);
      return stored;
    }
    const isUntried = seen.lineage === refused.lineage && seen.generation >= refused.generation;
    return isUntried && seen.refreshToken !== refused.refreshToken ? seen : undefined;
  }

  /** Saves the new pair. Keeps it and the lock if the store fails; discards it if the store has another grant, or none. */
  async #save(refresh: RefreshInFlight, lock: HeldLock, before: Grant, next: Grant): Promise<LockedResult> {
    const { id, trigger } = refresh;
    const { repository, unsaved, onDiscarded } = this.#options;
    const isFirst = before.accessToken === NO_TOKEN;
    const kept = unsaved.byId.get(id);
    // What the store most likely has.
    const { storedVersion } = kept ?? { storedVersion: isFirst ? undefined : before.version };
    try {
      // A deleted grant of the application leaves no trace in the store.
      if (!(isFirst && refresh.isOvertaken) && (await repository.replace(id, next, storedVersion))) {
        if (kept) unsaved.drop(id);
        return { outcome: 'refreshed', grant: next };
      }
    } catch {
      if (!refresh.isOvertaken) {
        unsaved.keep(id, next, storedVersion, trigger, lock);
        return { outcome: 'unsaved', grant: next };
      }
      // After a login or a logout, the pair is useless, saved or not.
    }
    unsaved.drop(id);
    onDiscarded(id, next);
    return { outcome: 'discarded', grant: await repository.readAnew(id) };
  }

  /** Ends a grant, and returns the one that the store has in its place. @throws NotAuthorizedError if there is none */
  async #giveUp(refresh: RefreshInFlight, grant: Grant, reason: LossReason): Promise<Grant> {
    const { repository, unsaved, endpoint, onLost } = this.#options;
    const { id } = refresh;
    const end = await repository.end(id, grant);
    if (end === 'kept') {
      unsaved.drop(id);
      const stored = await repository.readAnew(id);
      if (stored) return stored;
    } else if (!refresh.isOvertaken) {
      unsaved.drop(id);
      endpoint.pauses.forget(id);
      // The service refuses the token of a grant that a logout elsewhere has deleted and revoked: no loss.
      if (end === 'ended' || reason !== 'refused') onLost(id, reason);
    }
    throw new NotAuthorizedError(NO_GRANT);
  }
}
