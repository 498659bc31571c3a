import { setMaxListeners } from 'node:events';
import { OAuthAppError, ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import type { Grant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { HeldLock, LockAge } from '../grants/store-access.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { EndpointBackoff } from './backoff.js';
import { LockedRefreshes, type Refreshed, type RefreshInFlight } from './locked-refreshes.js';
import type { UnsavedGrants } from './unsaved-grants.js';

/** Options of a {@link Refresher}. */
export interface RefresherOptions {
  readonly repository: GrantRepository;
  readonly unsaved: UnsavedGrants;
  readonly endpoint: TokenEndpoint;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Returns true if a grant that another process has saved can be used without a refresh. */
  readonly isUsable: (grant: Grant) => boolean;
  readonly onRefresh: (id: string, event: Omit<RefreshEvent, 'strategy' | 'grantId'>) => void;
  readonly onLost: (id: string, reason: 'refused' | 'other-subject') => void;
}

/**
 * How old the lock may be when a refresh token is sent, in milliseconds; by try. Beyond it, its lease may have ended.
 * Usually it is a few milliseconds old; a read of a slow store takes up to 5 s.
 */
const MAX_LOCK_AGES: readonly LockAge[] = [
  { ageMs: 1_000, wallAgeMs: 1_000 },
  { ageMs: 6_000, wallAgeMs: 6_000 },
  // A wall clock that has jumped each time is being set; no machine is suspended that often.
  { ageMs: 6_000, wallAgeMs: Number.POSITIVE_INFINITY },
];
const ANY_AGE: LockAge = { ageMs: Number.POSITIVE_INFINITY, wallAgeMs: Number.POSITIVE_INFINITY };

/** Shortest wait for the lock that an event mentions, in milliseconds. */
const MIN_LOCK_WAIT_MS = 100;

/**
 * Refreshes grants: lock, read again, refresh, save. Each grant once at a time, however many callers ask.
 *
 * A refresh belongs to no request: when the browser disconnects, the refresh and its save go on.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #inFlight = new Map<string, RefreshInFlight & { readonly result: Promise<Grant> }>();
  readonly #backoff = new EndpointBackoff();
  readonly #locked: LockedRefreshes;
  readonly #closing = new AbortController();

  constructor(options: RefresherOptions) {
    this.#options = options;
    const { signal } = this.#closing;
    // Each refresh that waits for a lock listens to it.
    setMaxListeners(0, signal);
    this.#locked = new LockedRefreshes({ ...options, backoff: this.#backoff, signal });
  }

  /** Returns true if a background refresh makes sense now: none runs, the endpoint is not in backoff, and the strategy is not closed. */
  isIdle(id: string): boolean {
    if (this.#inFlight.has(id) || this.#closing.signal.aborted) return false;
    return this.#backoff.remainingMs(id, this.#options.clock()) === 0;
  }

  /**
   * Returns the grant after `seen`, refreshed by this process or another one. Concurrent callers get the same result.
   *
   * @throws NotAuthorizedError if the grant is gone; TokenError, TokenResponseError, ServiceUnavailableError or
   *   TokenStoreError if it is kept but cannot be refreshed now. Concurrent callers share the error object.
   */
  async refresh(id: string, seen: Grant, trigger: RefreshEvent['trigger']): Promise<Grant> {
    // A refresh that a login or logout has overtaken may end with "no grant", which says nothing about the new grant.
    for (let other = this.#inFlight.get(id); other; other = this.#inFlight.get(id)) {
      if (!other.isOvertaken) return await other.result;
      await other.result.catch(() => undefined);
    }
    this.#closing.signal.throwIfAborted();
    const refresh: RefreshInFlight = {
      id,
      seen,
      trigger,
      since: performance.now(),
      isOvertaken: false,
      isDiscarded: false,
      lockWaitMs: 0,
      lostLease: false,
      reused: false,
    };
    const result = this.#run(refresh).finally(() => this.#inFlight.delete(id));
    this.#inFlight.set(id, Object.assign(refresh, { result }));
    return await result;
  }

  /** Forgets a grant that a login replaces or a logout deletes. @param successor Grant of the login. Its own refresh goes on. */
  forget(id: string, successor?: Grant): void {
    const refresh = this.#inFlight.get(id);
    const isOfSuccessor = successor !== undefined && refresh?.current?.version === successor.version;
    if (refresh && !isOfSuccessor) refresh.isOvertaken = true;
    this.#options.unsaved.drop(id);
    this.#backoff.forget(id);
  }

  /**
   * Resolves when all refreshes have ended and all grants are saved, as far as possible. From now on no refresh token is
   * sent, because the answer might be lost: refreshes that wait for the lock end with an error.
   */
  async close(): Promise<void> {
    const closed = 'The strategy is closed: it refreshes no more grants. The grant is kept.';
    this.#closing.abort(new ServiceUnavailableError(closed));
    await Promise.allSettled([...this.#inFlight.values()].map(({ result }) => result));
    await this.#options.unsaved.saveAll();
  }

  async #run(refresh: RefreshInFlight): Promise<Grant> {
    const { id, seen } = refresh;
    const { clock, repository, isUsable } = this.#options;
    if (this.#backoff.error(id, clock())) {
      // Another process may have refreshed it meanwhile.
      const stored = await repository.readAnew(id).catch(() => undefined);
      if (stored && stored.accessToken !== seen.accessToken && isUsable(stored)) return stored;
      const error = this.#backoff.error(id, clock());
      if (error) throw error;
    }
    try {
      const { outcome, grant } = await this.#refreshUnderLock(refresh);
      this.#publish(refresh, { outcome });
      return grant;
    } catch (error) {
      const reason = error instanceof OAuthAppError ? error.code : 'ERR_UNKNOWN';
      // After a logout nothing is left to go on with, but the refresh itself has worked.
      this.#publish(refresh, refresh.isDiscarded ? { outcome: 'discarded' } : { outcome: 'failed', reason });
      throw error;
    }
  }

  #publish(refresh: RefreshInFlight, event: Pick<RefreshEvent, 'outcome' | 'reason'>): void {
    const { id, trigger, since, lockWaitMs, lostLease, reused } = refresh;
    this.#options.onRefresh(id, {
      ...event,
      trigger,
      durationMs: performance.now() - since,
      ...(lockWaitMs < MIN_LOCK_WAIT_MS ? {} : { lockWaitMs }),
      ...(lostLease ? { lostLease } : {}),
      ...(reused ? { reused } : {}),
    });
  }

  /** Takes the lock and refreshes under it. Takes it again if it is too old once a refresh token is to be sent. */
  async #refreshUnderLock(refresh: RefreshInFlight): Promise<Refreshed> {
    const { repository, unsaved } = this.#options;
    const held = unsaved.heldLock(refresh.id);
    if (held) {
      const result = this.#locked.refresh(refresh, held, ANY_AGE);
      held.holdUntil(result);
      const refreshed = await result;
      if (refreshed) return refreshed;
    }
    const storeId = repository.storeId(refresh.id);
    for (const maxAge of MAX_LOCK_AGES) {
      const askedAt = performance.now();
      const work = (lock: HeldLock) => {
        refresh.lockWaitMs += performance.now() - askedAt;
        return this.#locked.refresh(refresh, lock, maxAge);
      };
      const refreshed = await repository.access.locked(storeId, work, this.#closing.signal);
      if (refreshed) return refreshed;
      refresh.lostLease = true;
    }
    throw new TokenStoreError('The lock of the grant was too old each time before its refresh. The grant is kept.', {
      code: 'ERR_TOKEN_STORE_LOCKED',
    });
  }
}
