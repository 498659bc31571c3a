import type { Age } from '../clock.js';
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
  grantOfApplication,
  hasSameTokens,
  isEmptyGrant,
  isOlder,
  isPastEnd,
  isSameUser,
  refreshedGrant,
  withRotatedRefreshToken,
} from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import { isIssuer, tenantChanged } from '../oauth/addresses.js';
import type { Turn } from '../oauth/request-queue.js';
import type { TokenEndpoint, TokenParameters } from '../oauth/token-endpoint.js';
import { responseFactsOf, type TokenSet } from '../oauth/token-response.js';
import type { HeldLock } from '../stores/held-lock.js';
import { pause } from '../waiting.js';
import type { UnsavedGrants } from './unsaved-grants.js';

/** A refresh that runs. */
export interface RefreshInFlight {
  readonly id: string;
  /** The grant that the callers hold. */
  readonly seen: Grant;
  readonly trigger: RefreshEvent['trigger'];
  /** Aborts once a login or a logout has come in between: the result is not kept in memory. */
  readonly overtaken: AbortSignal;
  /** The grant whose refresh token was sent last. */
  current?: Grant;
  /** Its slot at the token endpoint. */
  readonly turn: Turn;
  /** Parameters of the token request of a grant of the application, which has no refresh token. */
  parameters?: TokenParameters | undefined;
}

/** What a refresh came to. */
type Outcome =
  | { readonly outcome: 'refreshed' | 'adopted' | 'unsaved'; readonly grant: Grant }
  /** The store had another grant than expected at the save, or none. */
  | { readonly outcome: 'discarded'; readonly grant: Grant | undefined }
  | { readonly outcome: 'failed'; readonly error: unknown };

/** How it went. */
interface Facts {
  /** True if a refresh token was sent that another process had used before. */
  reused: boolean;
  /** True if a token request was sent. */
  sent: boolean;
  /** How long it waited for the lock, in milliseconds. */
  lockWaitMs: number;
  /** True if a lock was found to be too old, or lost. */
  lostLease: boolean;
}

/** What a refresh came to that took a lock, or failed before. */
export type LockedResult = Outcome & Readonly<Facts>;

/** The facts of a refresh that has taken no lock. */
export const NOTHING_SENT: Readonly<Facts> = { reused: false, sent: false, lockWaitMs: 0, lostLease: false };

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
  /** Aborts when the strategy is closed: from then on no refresh token is sent. */
  readonly signal: AbortSignal;
}

/** Message of the NotAuthorizedError for a grant that does not exist, or was removed. */
export const NO_GRANT = 'No grant for this user; they must log in again.';

type LossReason = 'refused' | 'expired' | 'other-subject';

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

/** How long the store may take to check whether the lock is still held, in milliseconds: as long as for a read. */
const CHECK_MS = 5_000;

/**
 * How old the lock may be when a refresh token is sent, in milliseconds; by try. Beyond it, too little of its lease is
 * left for saves that fail. Usually it is a few milliseconds old; a read of a slow store takes up to 5 s.
 */
const MAX_LOCK_AGES: readonly Age[] = [
  { ageMs: 1_000, wallAgeMs: 1_000 },
  { ageMs: 5_000, wallAgeMs: 5_000 },
  // A wall clock that has jumped each time is being set; no machine is suspended that often.
  { ageMs: 5_000, wallAgeMs: Number.POSITIVE_INFINITY },
];

/** A refresh under one lock. */
interface LockedRun {
  readonly refresh: RefreshInFlight;
  readonly lock: HeldLock;
  /** Of the whole refresh, as far as it has come. */
  readonly facts: Facts;
}

/**
 * The part of a refresh that runs under a lock: lock, read again, refresh, save.
 *
 * Has no state of a refresh: an error that is kept holds the objects whose methods are in its stack.
 */
export class LockedRefreshes {
  readonly #options: LockedRefreshesOptions;

  constructor(options: LockedRefreshesOptions) {
    this.#options = options;
  }

  /**
   * Reads the grant again under its lock, refreshes it and saves it. Takes another lock if the first is too old, or lost, once a
   * refresh token is to be sent. Never rejects: a failure is a result.
   */
  async refresh(refresh: RefreshInFlight): Promise<LockedResult> {
    const facts = { ...NOTHING_SENT };
    const outcome = await this.#underLock(refresh, facts).catch(
      (error: unknown): Outcome => ({ outcome: 'failed', error }),
    );
    return { ...outcome, ...facts };
  }

  async #underLock(refresh: RefreshInFlight, facts: Facts): Promise<Outcome> {
    const { repository, unsaved, endpoint, signal } = this.#options;
    const { id } = refresh;
    const kept = unsaved.byId.get(id);
    const heldLock = kept?.lock.limitTo(endpoint.timeoutMs);
    // One that is too old is held on: whoever gets it next may know the old pair only.
    if (kept && heldLock?.maySend) {
      const running = this.#run({ refresh, lock: heldLock, facts }, kept.grant);
      heldLock.holdUntil(running);
      const outcome = await running;
      if (outcome !== 'lock-lost') return outcome;
    }
    for (const maxAge of MAX_LOCK_AGES) {
      const askedAt = performance.now();
      const lock = await repository.access.acquire(repository.storeId(id), signal);
      facts.lockWaitMs += performance.now() - askedAt;
      try {
        const outcome = await this.#run({ refresh, lock: lock.limitTo(endpoint.timeoutMs, maxAge), facts });
        if (outcome !== 'lock-lost') return outcome;
        facts.lostLease = true;
      } finally {
        await lock.release();
      }
    }
    const message = "Lost the grant's lock three times before refreshing. The grant is kept.";
    throw new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_LOCKED' });
  }

  /** @param kept The pair that this process holds the lock for until it is saved: no other has refreshed it. */
  async #run(run: LockedRun, kept?: Grant): Promise<Outcome | 'lock-lost'> {
    const { id, seen, trigger, parameters } = run.refresh;
    const { repository, endpoint, clock, isUsable, signal } = this.#options;
    // Checked after the read, and at once: whoever has taken a lost lock since may have read the same pair.
    const reading = kept ?? this.#newest(id);
    const checking =
      !kept && run.lock.isLease ? repository.access.use(() => run.lock.isHeld(), 'lock', CHECK_MS) : true;
    const [stored, isHeld] = await Promise.all([reading, checking]);
    if (!stored && !parameters) throw new NotAuthorizedError(NO_GRANT);
    let pair = stored ?? emptyGrant();
    for (let tries = 0; tries < MAX_PAIRS; tries++) {
      if (pair.accessToken !== seen.accessToken && isUsable(pair)) break;
      const isPast = isPastEnd(pair, clock());
      const isReplaceable = parameters !== undefined || (pair.refreshToken !== undefined && !isPast);
      // An access token that nothing replaces serves to its own end.
      if (!isReplaceable && pair.expiresAt > clock() && trigger !== 'refused') break;
      // The end of a pair that another process got is by a clock that may differ: the service is asked once.
      if (!isReplaceable && !(isPast && pair.obtainedBy !== endpoint.id)) {
        pair = await this.#giveUp(run, pair, trigger === 'refused' && !isPast ? 'refused' : 'expired');
        continue;
      }
      if (pair.retryAt !== undefined) endpoint.pauses.join(id, pair.retryAt);
      const error = endpoint.pauses.errorBeforeRequest(id);
      if (error) throw error;
      signal.throwIfAborted();
      if (!isIssuer(pair.issuedBy, endpoint.origin)) throw tenantChanged();
      if (!isHeld || !run.lock.maySend) return 'lock-lost';
      const refreshed = await this.#exchange(run, pair);
      if (refreshed) return refreshed;
      pair =
        (await this.#pairAfterRefusal(run, pair)) ?? (await this.#giveUp(run, pair, isPast ? 'expired' : 'refused'));
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
  async #exchange(run: LockedRun, grant: Grant): Promise<Outcome | 'lock-lost' | undefined> {
    const { repository, endpoint, unsaved, clock } = this.#options;
    const { id, overtaken } = run.refresh;
    run.refresh.current = grant;
    run.facts.sent = true;
    const sentAt = performance.now();
    try {
      if (run.refresh.parameters) return await this.#request(run, grant, run.refresh.parameters);
      const { refreshToken, previousRefreshToken } = grant;
      let tokens = refreshToken && (await this.#send(run, grant, refreshToken));
      if (!tokens && previousRefreshToken) {
        if (!run.lock.maySend) return 'lock-lost';
        tokens = await this.#send(run, grant, previousRefreshToken);
      }
      if (!tokens) return undefined;
      if (isSameUser(grant, tokens) === false)
        return { outcome: 'adopted', grant: await this.#giveUp(run, grant, 'other-subject') };
      return await this.#save(run, grant, refreshedGrant(grant, tokens, clock(), endpoint.id));
    } catch (error) {
      const isSlowFailure = error instanceof ServiceUnavailableError && performance.now() - sentAt >= SLOW_FAILURE_MS;
      if (isSlowFailure && !overtaken.aborted && !unsaved.byId.has(id)) {
        // Saved with the grant, so that the processes that wait for the lock do not wait for a time-out too.
        const retryAt = clock() + endpoint.pauses.beforeRequestMs(id);
        run.lock.holdUntil(repository.replace(id, { ...grant, retryAt }, grant.version));
      }
      throw error;
    }
  }

  /** Gets new tokens for a grant of the application, and saves them. @throws whatever the token endpoint throws: the grant is kept */
  async #request(run: LockedRun, grant: Grant, parameters: TokenParameters): Promise<Outcome> {
    const { endpoint, clock } = this.#options;
    const { id, overtaken } = run.refresh;
    try {
      const tokens = await endpoint.requestTokens(parameters, { mayRepeat: () => run.lock.maySend });
      endpoint.pauses.succeeded(id, false);
      return await this.#save(run, grant, grantOfApplication(grant, tokens, clock(), endpoint.id));
    } catch (error) {
      throw overtaken.aborted ? error : endpoint.pauses.failed(id, error, false);
    }
  }

  /** Sends a refresh token. Returns `undefined` if the service refuses it. @throws whatever may leave the grant valid */
  async #send(run: LockedRun, grant: Grant, refreshToken: string): Promise<TokenSet | undefined> {
    const { endpoint, clock } = this.#options;
    const { pauses } = endpoint;
    const { id, trigger, overtaken, turn } = run.refresh;
    // Some services refuse a refresh while the access token is good. That says nothing of the refresh token.
    const goodMs = trigger === 'refused' ? 0 : Math.max(0, grant.expiresAt - clock());
    try {
      const mayRepeat = () => run.lock.maySend;
      const tokens = await endpoint.refresh(refreshToken, { mayRepeat, turn, isEarly: goodMs > 0 });
      pauses.succeeded(id, true);
      return tokens;
    } catch (error) {
      const { rotatedToken: rotated } = responseFactsOf(error);
      if (rotated !== undefined && rotated !== refreshToken)
        await this.#save(run, grant, withRotatedRefreshToken(grant, rotated, refreshToken)).catch(() => undefined);
      const isRefusal = error instanceof TokenError || error instanceof TokenResponseError;
      // The service was asked, and the stated end has passed.
      if (isRefusal && rotated === undefined && isPastEnd(grant, clock())) return undefined;
      // Nothing is remembered of a grant that has been replaced or deleted.
      throw overtaken.aborted ? error : pauses.failed(id, error, true, goodMs);
    }
  }

  /**
   * Returns the pair to try after a refused one: that of another process, which may save it any moment, or the caller's,
   * if the store has lost a write.
   */
  async #pairAfterRefusal(run: LockedRun, refused: Grant): Promise<Grant | undefined> {
    const { repository, signal } = this.#options;
    const { id, seen, overtaken } = run.refresh;
    const pausesMs = repository.access.hasFailedRecently ? PAUSES_AFTER_FAILURE_MS : PAUSES_MS;
    for (const pauseMs of [0, ...pausesMs]) {
      if (pauseMs > 0) await pause(pauseMs, { signal });
      const stored = await repository.readAnew(id);
      if (!stored || overtaken.aborted) break;
      if (hasSameTokens(stored, refused) || isOlder(stored, refused)) continue;
      run.facts.reused ||= isOlder(refused, stored);
      return stored;
    }
    const isUntried = seen.lineage === refused.lineage && seen.generation >= refused.generation;
    return isUntried && seen.refreshToken !== refused.refreshToken ? seen : undefined;
  }

  /**
   * Saves the new pair. Keeps it in memory, and the lock with it, if the store fails. Discards it if the store has
   * another grant, or none, and returns the stored one.
   */
  async #save(run: LockedRun, before: Grant, next: Grant): Promise<Outcome> {
    const { id, trigger, overtaken } = run.refresh;
    const { repository, unsaved, onDiscarded } = this.#options;
    const isFirst = isEmptyGrant(before);
    const kept = unsaved.byId.get(id);
    const ownVersion = isFirst ? undefined : before.version;
    // What the store most likely has.
    const storedVersion = kept ? kept.storedVersion : ownVersion;
    try {
      // A deleted grant of the application leaves no trace in the store.
      if (!(isFirst && overtaken.aborted) && (await repository.replace(id, next, storedVersion))) {
        unsaved.drop(id);
        return { outcome: 'refreshed', grant: next };
      }
    } catch {
      if (!overtaken.aborted) {
        unsaved.keep(id, next, storedVersion, trigger, run.lock);
        return { outcome: 'unsaved', grant: next };
      }
      // A login or a logout has come in between: the pair is of no use, saved or not.
    }
    unsaved.drop(id);
    onDiscarded(id, next);
    return { outcome: 'discarded', grant: await repository.readAnew(id) };
  }

  /** Ends a grant that is no longer of use. Returns the one that the store has in its place. @throws NotAuthorizedError if there is none */
  async #giveUp(run: LockedRun, grant: Grant, reason: LossReason): Promise<Grant> {
    const { repository, unsaved, endpoint, onLost } = this.#options;
    const { id, overtaken } = run.refresh;
    const end = await repository.end(id, grant);
    if (end === 'kept') {
      unsaved.drop(id);
      const stored = await repository.readAnew(id);
      if (stored) return stored;
    } else if (!overtaken.aborted) {
      unsaved.drop(id);
      endpoint.pauses.forget(id);
      // The service refuses the token of a grant that a logout elsewhere has deleted and revoked: no loss.
      if (end === 'ended' || reason !== 'refused') onLost(id, reason);
    }
    throw new NotAuthorizedError(NO_GRANT);
  }
}
