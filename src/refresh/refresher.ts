import { setMaxListeners } from 'node:events';
import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import { type Grant, hasSameTokens, isEmptyGrant, isPastEnd } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { Turn } from '../oauth/request-queue.js';
import type { TokenEndpoint, TokenParameters } from '../oauth/token-endpoint.js';
import type { LockAge } from '../stores/held-lock.js';
import { EndpointBackoff } from './backoff.js';
import { LockedRefreshes, type LockedResult, NO_GRANT, type RefreshInFlight } from './locked-refreshes.js';
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
  /** Called with new tokens that the store did not take, since a login or a logout came during the refresh. */
  readonly onDiscarded: (id: string, grant: Grant) => void;
  readonly onRefresh: (id: string, event: Omit<RefreshEvent, 'strategy' | 'grantId'>) => void;
  readonly onLost: (id: string, reason: 'refused' | 'expired' | 'other-subject') => void;
  /** Asks for the parameters of a grant of the application; `undefined` without the option `applicationGrant`. */
  readonly parametersOf?: ((id: string) => Promise<TokenParameters | undefined>) | undefined;
}

/**
 * How old the lock may be when a refresh token is sent, in milliseconds; by try. Beyond it, too little of its lease is
 * left for saves that fail. Usually it is a few milliseconds old; a read of a slow store takes up to 5 s.
 */
const MAX_LOCK_AGES: readonly LockAge[] = [
  { ageMs: 1_000, wallAgeMs: 1_000 },
  { ageMs: 5_000, wallAgeMs: 5_000 },
  // A wall clock that has jumped each time is being set; no machine is suspended that often.
  { ageMs: 5_000, wallAgeMs: Number.POSITIVE_INFINITY },
];

/** How a refresh has ended, and what it has met on the way. */
type RefreshResult = Exclude<LockedResult, { outcome: 'lock-lost' }> & {
  /** How long it has waited for the lock, in milliseconds. */
  readonly lockWaitMs: number;
  /** True if a lock was found to be too old, or lost. */
  readonly lostLease: boolean;
};

/** A refresh that callers can join. */
class SharedRefresh implements RefreshInFlight {
  readonly id: string;
  readonly seen: Grant;
  readonly trigger: RefreshEvent['trigger'];
  /** On the monotonic clock. */
  readonly since: number = performance.now();
  readonly turn: Turn;
  readonly result: Promise<Grant>;
  current?: Grant;
  outcome?: RefreshResult['outcome'];
  parameters?: TokenParameters | undefined;
  readonly #overtaking = new AbortController();
  readonly overtaken: AbortSignal = this.#overtaking.signal;

  constructor(
    id: string,
    seen: Grant,
    trigger: RefreshEvent['trigger'],
    turn: Turn,
    run: (refresh: SharedRefresh) => Promise<Grant>,
  ) {
    this.id = id;
    this.seen = seen;
    this.trigger = trigger;
    this.turn = turn;
    this.result = run(this);
  }

  /** A login or a logout has come in between. */
  overtake(): void {
    this.#overtaking.abort();
  }
}

/** Shortest wait for the lock that an event mentions, in milliseconds. */
const MIN_LOCK_WAIT_MS = 100;

/**
 * Refreshes grants: lock, read again, refresh, save. Each grant once at a time, however many callers ask.
 *
 * A refresh belongs to no request: when the browser disconnects, the refresh and its save go on.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #inFlight = new Map<string, SharedRefresh>();
  readonly #backoff = new EndpointBackoff();
  readonly #locked: LockedRefreshes;
  readonly #closing = new AbortController();
  /** Grants that refreshes of this process have brought. */
  readonly #refreshed = new WeakSet<object>();

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

  /** Returns true for a grant that a refresh of this process has brought: it does not come from another one. */
  hasRefreshed(grant: object): boolean {
    return this.#refreshed.has(grant);
  }

  /**
   * Returns the grant after `seen`, refreshed by this process or another one. Concurrent callers get the same result.
   *
   * @throws NotAuthorizedError if the grant is gone; TokenError, TokenResponseError, ServiceUnavailableError or
   *   TokenStoreError if it is kept but cannot be refreshed now. Concurrent callers share the error object.
   */
  async refresh(id: string, seen: Grant, trigger: RefreshEvent['trigger']): Promise<Grant> {
    const { endpoint, repository, isUsable } = this.#options;
    const isAwaited = trigger === 'expired' || trigger === 'refused';
    let known = seen;
    for (let other = this.#inFlight.get(id); other; other = this.#inFlight.get(id)) {
      if (isAwaited) other.turn.hurry();
      const { aborted: isOvertaken } = other.overtaken;
      try {
        const grant = await other.result;
        if (!isOvertaken) return grant;
      } catch (error) {
        // A refresh that a login or a logout has overtaken says nothing about the new grant.
        if (isOvertaken) continue;
        // "No grant" says nothing about a login of another process that came after its read.
        const stored = error instanceof NotAuthorizedError ? await repository.read(id) : undefined;
        if (!stored) throw error;
        if (!hasSameTokens(stored, seen) && isUsable(stored)) return stored;
        known = stored;
      }
    }
    this.#closing.signal.throwIfAborted();
    const refresh = new SharedRefresh(id, known, trigger, endpoint.turn(isAwaited), (running) =>
      this.#run(running).finally(() => this.#inFlight.delete(id)),
    );
    this.#inFlight.set(id, refresh);
    return refresh.result;
  }

  /**
   * Refreshes a grant that no request asks for. Resolves to what this process did: `ended` if the service has refused the
   * refresh token that it sent, `undefined` if it did nothing, since another process or a login was faster. Never rejects.
   */
  async keepAlive(id: string, seen: Grant): Promise<'refreshed' | 'ended' | 'failed' | undefined> {
    const result = this.refresh(id, seen, 'keep-alive');
    const refresh = this.#inFlight.get(id);
    try {
      await result;
      const isOwn = refresh?.outcome === 'refreshed' || refresh?.outcome === 'unsaved';
      return isOwn ? 'refreshed' : undefined;
    } catch (error) {
      if (!(error instanceof NotAuthorizedError)) return 'failed';
      return refresh?.current && !refresh.overtaken.aborted ? 'ended' : undefined;
    }
  }

  /** Returns a signal that aborts with the given one, and when no refresh token is sent any more. */
  untilClosed(signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
  }

  /** Returns how long the token endpoint is to be left alone, in milliseconds. */
  pauseMs(): number {
    return this.#backoff.pauseMs(this.#options.clock());
  }

  /** Forgets a grant that a login replaces or a logout deletes. @param successor Grant of the login. Its own refresh goes on. */
  forget(id: string, successor?: Grant): void {
    const refresh = this.#inFlight.get(id);
    const isOfSuccessor = successor !== undefined && refresh?.current?.version === successor.version;
    if (refresh && !isOfSuccessor) refresh.overtake();
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
    await this.settled();
  }

  /** Resolves when the refreshes that run have ended, and their grants are saved, as far as possible. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#inFlight.values()].map(({ result }) => result));
    await this.#options.unsaved.saveAll();
  }

  async #run(refresh: SharedRefresh): Promise<Grant> {
    const { id, seen } = refresh;
    const { clock, repository, isUsable, parametersOf } = this.#options;
    const isRenewable = seen.refreshToken !== undefined || parametersOf !== undefined;
    if (isRenewable && !isPastEnd(seen, clock()) && this.#backoff.error(id, clock())) {
      // Another process may have refreshed it meanwhile.
      const stored = await repository.readAnew(id).catch(() => undefined);
      if (stored && stored.accessToken !== seen.accessToken && isUsable(stored)) return stored;
      const error = this.#backoff.error(id, clock());
      if (error) throw error;
    }
    const failure = seen.refreshToken === undefined ? await this.#ask(refresh) : undefined;
    if (!failure && seen.refreshToken === undefined && !refresh.parameters) {
      // The grant of a user: nothing can replace its access token.
      if (isEmptyGrant(seen)) throw new NotAuthorizedError(NO_GRANT);
      if (refresh.trigger !== 'refused' && seen.expiresAt > clock()) return seen;
    }
    const { lockWaitMs, lostLease, reused, ...result } = failure ?? (await this.#refreshInTurn(refresh));
    refresh.outcome = result.outcome;
    const hasFailed = result.outcome === 'failed';
    const { scope } = (hasFailed ? undefined : result.grant) ?? {};
    const hasOtherScope = scope !== undefined && scope.join() !== seen.scope?.join();
    this.#options.onRefresh(id, {
      outcome: result.outcome,
      ...(hasFailed ? { reason: result.error instanceof OAuthAppError ? result.error.code : 'ERR_UNKNOWN' } : {}),
      ...(hasOtherScope ? { scope } : {}),
      trigger: refresh.trigger,
      durationMs: performance.now() - refresh.since,
      ...(lockWaitMs < MIN_LOCK_WAIT_MS ? {} : { lockWaitMs }),
      ...(lostLease ? { lostLease } : {}),
      ...(reused ? { reused } : {}),
    });
    if (hasFailed) throw result.error;
    // After a logout nothing is left to go on with.
    if (!result.grant) throw new NotAuthorizedError(NO_GRANT);
    if (result.outcome === 'refreshed' || result.outcome === 'unsaved') this.#refreshed.add(result.grant);
    return result.grant;
  }

  /** Asks for the parameters of the token request of a grant that has no refresh token. Returns the result of the refresh if that fails. */
  async #ask(refresh: SharedRefresh): Promise<RefreshResult | undefined> {
    try {
      refresh.parameters = await this.#options.parametersOf?.(refresh.id);
      return undefined;
    } catch (error) {
      return { outcome: 'failed', error, reused: false, lockWaitMs: 0, lostLease: false };
    }
  }

  /**
   * Waits for the turn at the token endpoint, and then refreshes under a lock: no lock is held, or grows old, while others are
   * ahead. Takes another lock if the first is too old, or lost, once a refresh token is to be sent. Never rejects.
   */
  async #refreshInTurn(refresh: SharedRefresh): Promise<RefreshResult> {
    try {
      await refresh.turn.wait(this.#closing.signal);
      const result = await this.#refreshUnderLock(refresh);
      const now = this.#options.clock();
      // Nothing is to be sent now: the refreshes that wait for their turn end.
      if (result.outcome === 'failed' && this.#backoff.pauseMs(now) > 0)
        for (const { id, turn } of this.#inFlight.values()) turn.giveUp(() => this.#backoff.error(id, now));
      return result;
    } catch (error) {
      return { outcome: 'failed', error, reused: false, lockWaitMs: 0, lostLease: false };
    } finally {
      refresh.turn.end();
    }
  }

  async #refreshUnderLock(refresh: SharedRefresh): Promise<RefreshResult> {
    const { repository, unsaved, endpoint } = this.#options;
    const { id } = refresh;
    let lockWaitMs = 0;
    let lostLease = false;
    const held = unsaved.heldLock(id, endpoint.timeoutMs);
    if (held) {
      const running = this.#locked.refresh(refresh, held, unsaved.byId.get(id)?.grant);
      held.holdUntil(running);
      const result = await running;
      if (result.outcome !== 'lock-lost') return { ...result, lockWaitMs, lostLease };
    }
    for (const maxAge of MAX_LOCK_AGES) {
      const askedAt = performance.now();
      try {
        const lock = await repository.access.acquire(repository.storeId(id), this.#closing.signal);
        lockWaitMs += performance.now() - askedAt;
        const result = await this.#locked.refresh(refresh, lock.limitTo(endpoint.timeoutMs, maxAge));
        await lock.release();
        if (result.outcome !== 'lock-lost') return { ...result, lockWaitMs, lostLease };
        lostLease = true;
      } catch (error) {
        return { outcome: 'failed', error, reused: false, lockWaitMs, lostLease };
      }
    }
    const message = 'The lock of the grant was too old each time before its refresh. The grant is kept.';
    const error = new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_LOCKED' });
    return { outcome: 'failed', error, reused: false, lockWaitMs, lostLease };
  }
}
