import { setMaxListeners } from 'node:events';
import type { Age } from '../clock.js';
import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import { type Grant, hasSameTokens, isEmptyGrant, isPastEnd } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import { TransportError } from '../http/transport-error.js';
import type { Turn } from '../oauth/request-queue.js';
import type { TokenEndpoint, TokenParameters } from '../oauth/token-endpoint.js';
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
  /** Resolves the parameters of a grant of the application; `undefined` without the option `applicationGrant`. */
  readonly parametersOf?: ((id: string) => Promise<TokenParameters | undefined>) | undefined;
}

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

/** What a refresh came to that took a lock, or failed before. */
type SentResult = Exclude<LockedResult, { outcome: 'lock-lost' }> & {
  /** How long it waited for the lock, in milliseconds. */
  readonly lockWaitMs: number;
  /** True if a lock was found to be too old, or lost. */
  readonly lostLease: boolean;
};

/** What a refresh came to. `unsent`: no token request is needed, or none is possible now. */
type RefreshResult =
  | SentResult
  | { readonly outcome: 'unsent'; readonly grant: Grant }
  | { readonly outcome: 'unsent'; readonly error: unknown };

/** A refresh, and its slot at the token endpoint. */
interface Refresh extends RefreshInFlight {
  readonly turn: Turn;
  readonly overtaking: AbortController;
}

/** A refresh that callers can join. */
interface SharedRefresh {
  readonly refresh: Refresh;
  readonly result: Promise<RefreshResult>;
}

/**
 * Largest number of refreshes that run or wait, each with its tokens in memory. Beyond it none starts in the background: a later
 * request of the grant asks again.
 */
const MAX_IN_FLIGHT = 64;

/** Largest number of refreshes that are to be repeated by themselves. */
const MAX_RETRIES = 1_000;

/** Shortest wait for the lock that an event mentions, in milliseconds. */
const MIN_LOCK_WAIT_MS = 100;

/** A failure before the lock was asked for. */
function failedEarly(error: unknown): SentResult {
  return { outcome: 'failed', error, reused: false, sent: false, lockWaitMs: 0, lostLease: false };
}

/**
 * Refreshes grants: lock, read again, refresh, save. Each grant once at a time, however many callers ask.
 *
 * A refresh belongs to no request: when the browser disconnects, the refresh and its save go on.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #inFlight = new Map<string, SharedRefresh>();
  readonly #locked: LockedRefreshes;
  readonly #closing = new AbortController();
  /** Timers of refreshes whose answer was lost. */
  readonly #retries = new Map<string, NodeJS.Timeout>();

  constructor(options: RefresherOptions) {
    this.#options = options;
    const { signal } = this.#closing;
    // Each refresh that waits for a lock listens to it.
    setMaxListeners(0, signal);
    this.#locked = new LockedRefreshes({ ...options, signal });
  }

  /** Returns true while a token request of the application runs for the grant. */
  isOfApplication(id: string): boolean {
    return this.#inFlight.get(id)?.refresh.parameters !== undefined;
  }

  /** Returns true if a background refresh makes sense now: none runs, nothing pauses it, and the strategy is not closed. */
  isIdle(id: string): boolean {
    if (this.#inFlight.has(id) || this.#inFlight.size >= MAX_IN_FLIGHT || this.#closing.signal.aborted) return false;
    const { pauses } = this.#options.endpoint;
    return pauses.beforeRequestMs(id) === 0 && pauses.remainingMs('ahead', id) === 0;
  }

  /**
   * Returns the grant after `seen`, refreshed by this process or another one. Concurrent callers get the same result.
   *
   * @throws NotAuthorizedError if the grant is gone; TokenError, TokenResponseError, ServiceUnavailableError or
   *   TokenStoreError if it is kept but cannot be refreshed now. Concurrent callers share the error object.
   */
  async refresh(id: string, seen: Grant, trigger: RefreshEvent['trigger']): Promise<Grant> {
    const { repository, isUsable } = this.#options;
    const isAwaited = trigger === 'expired' || trigger === 'refused';
    let known = seen;
    for (let other = this.#inFlight.get(id); other; other = this.#inFlight.get(id)) {
      const { turn, overtaken } = other.refresh;
      if (isAwaited) turn.prioritize();
      const { aborted: isOvertaken } = overtaken;
      const result = await other.result;
      // A refresh that a login or a logout has overtaken says nothing about the new grant.
      if (isOvertaken) continue;
      // "No grant" says nothing about a login of another process that came after its read.
      const isGone = 'error' in result && result.error instanceof NotAuthorizedError;
      const stored = isGone ? await repository.read(id) : undefined;
      if (!stored) return grantOf(result);
      if (!hasSameTokens(stored, seen) && isUsable(stored)) return stored;
      known = stored;
    }
    this.#closing.signal.throwIfAborted();
    return grantOf(await this.#start(id, known, trigger, isAwaited).result);
  }

  /**
   * Refreshes a grant that no request asks for. Resolves to what this process did: `ended` if the service refused the
   * refresh token that it sent, `undefined` if it did nothing, since another process or a login was faster. Never rejects.
   */
  async keepAlive(id: string, seen: Grant): Promise<'refreshed' | 'ended' | 'failed' | undefined> {
    const isPaused = this.#options.endpoint.pauses.remainingMs('ahead', id) > 0;
    if (isPaused || this.#closing.signal.aborted) return 'failed';
    const { refresh, result } = this.#inFlight.get(id) ?? this.#start(id, seen, 'keep-alive', false);
    const settled = await result;
    if (settled.outcome === 'refreshed' || settled.outcome === 'unsaved') return 'refreshed';
    if (!('error' in settled)) return undefined;
    if (!(settled.error instanceof NotAuthorizedError)) return 'failed';
    return settled.outcome === 'failed' && settled.sent && !refresh.overtaken.aborted ? 'ended' : undefined;
  }

  /** Returns a signal that aborts with the given one, and once refresh tokens are no longer sent. */
  untilClosed(signal: AbortSignal | undefined): AbortSignal {
    return AbortSignal.any([this.#closing.signal, ...(signal ? [signal] : [])]);
  }

  /** Returns how long the token endpoint is to be left alone, in milliseconds. */
  pauseMs(): number {
    return this.#options.endpoint.pauses.forAllMs;
  }

  /** Forgets a grant that a login replaces or a logout deletes. @param successor Grant of the login. Its own refresh goes on. */
  forget(id: string, successor?: Grant): void {
    const refresh = this.#inFlight.get(id)?.refresh;
    const isOfSuccessor = successor !== undefined && refresh?.current?.version === successor.version;
    if (refresh && !isOfSuccessor) refresh.overtaking.abort();
    this.#options.unsaved.drop(id);
    this.#options.endpoint.pauses.forget(id);
    this.#endRetry(id);
  }

  /**
   * Resolves when all refreshes are done and all grants are saved, as far as possible. From now on no refresh token is
   * sent, because the answer might be lost: refreshes that wait for the lock end with an error.
   */
  async close(): Promise<void> {
    const closed = 'The strategy is closed: it refreshes no more grants. The grant is kept.';
    this.#closing.abort(new ServiceUnavailableError(closed));
    for (const id of this.#retries.keys()) this.#endRetry(id);
    await this.settled();
  }

  /** Resolves when the running refreshes are done and their grants are saved, as far as possible. */
  async settled(): Promise<void> {
    await Promise.allSettled([...this.#inFlight.values()].map(({ result }) => result));
    await this.#options.unsaved.saveAll();
  }

  #start(id: string, seen: Grant, trigger: RefreshEvent['trigger'], isAwaited: boolean): SharedRefresh {
    const overtaking = new AbortController();
    const turn = this.#options.endpoint.turn(isAwaited);
    const refresh: Refresh = { id, seen, trigger, turn, overtaking, overtaken: overtaking.signal };
    const result = this.#run(refresh).finally(() => this.#inFlight.delete(id));
    const shared = { refresh, result };
    this.#inFlight.set(id, shared);
    return shared;
  }

  /** Never rejects. */
  async #run(refresh: Refresh): Promise<RefreshResult> {
    const since = performance.now();
    const { id, seen, trigger } = refresh;
    const unsent = (await this.#duringPause(id, seen)) ?? (await this.#withoutRefreshToken(refresh));
    if (unsent?.outcome === 'unsent') return unsent;
    const result = unsent ?? (await this.#refreshInTurn(refresh));
    const durationMs = performance.now() - since;
    this.#options.onRefresh(id, { ...eventOf(result, seen), trigger, durationMs });
    if (result.outcome === 'failed' && !refresh.overtaken.aborted) this.#pauseOrRetry(refresh, result.error);
    return result;
  }

  /** Lets a refresh that nothing waits for rest after a failure, and repeats one whose answer was lost. */
  #pauseOrRetry({ id, seen, trigger }: Refresh, error: unknown): void {
    if (error instanceof NotAuthorizedError || this.#closing.signal.aborted) return;
    const { pauses } = this.#options.endpoint;
    if (trigger === 'ahead' && pauses.remainingMs('ahead', id) === 0) pauses.begin('ahead', id);
    const isLost =
      error instanceof ServiceUnavailableError && error.cause instanceof TransportError && error.cause.sent;
    if (!isLost || trigger === 'retry' || this.#retries.size >= MAX_RETRIES) return;
    // The service may have replaced the refresh token, and accept the former one for some seconds more. Waiting for the
    // next request of the user could take longer.
    this.#endRetry(id);
    const retry = () => {
      this.#retries.delete(id);
      if (!this.#inFlight.has(id)) void this.#start(id, seen, 'retry', false);
    };
    this.#retries.set(id, setTimeout(retry, pauses.beforeRequestMs(id)).unref());
  }

  #endRetry(id: string): void {
    clearTimeout(this.#retries.get(id));
    this.#retries.delete(id);
  }

  /** Returns the grant of another process, which may have refreshed it by now, or the error of a pause. */
  async #duringPause(id: string, seen: Grant): Promise<RefreshResult | undefined> {
    const { repository, isUsable, endpoint, clock, parametersOf } = this.#options;
    const endsUnasked =
      (isPastEnd(seen, clock()) && seen.obtainedBy === endpoint.id) ||
      (seen.refreshToken === undefined && !parametersOf);
    if (endsUnasked || !endpoint.pauses.error(id)) return undefined;
    const stored = await repository.readAnew(id).catch(() => undefined);
    if (stored && stored.accessToken !== seen.accessToken && isUsable(stored))
      return { outcome: 'unsent', grant: stored };
    const error = endpoint.pauses.error(id);
    return error && { outcome: 'unsent', error };
  }

  /** Resolves the parameters for a grant of the application. Returns the result if nothing can replace the access token. */
  async #withoutRefreshToken(refresh: Refresh): Promise<RefreshResult | undefined> {
    const { id, seen } = refresh;
    if (seen.refreshToken !== undefined) return undefined;
    try {
      refresh.parameters = await this.#options.parametersOf?.(id);
    } catch (error) {
      return failedEarly(error);
    }
    if (refresh.parameters) return undefined;
    if (isEmptyGrant(seen)) return { outcome: 'unsent', error: new NotAuthorizedError(NO_GRANT) };
    const serves = refresh.trigger !== 'refused' && seen.expiresAt > this.#options.clock();
    return serves ? { outcome: 'unsent', grant: seen } : undefined;
  }

  /**
   * Waits for a slot at the token endpoint, and then refreshes under a lock: no lock is held, or grows old, while others are
   * ahead. Takes another lock if the first is too old, or lost, once a refresh token is to be sent. Never rejects.
   */
  async #refreshInTurn(refresh: Refresh): Promise<SentResult> {
    const { pauses } = this.#options.endpoint;
    try {
      // A request of the application takes no slot: one that hangs must not hold up the refreshes of users.
      if (!refresh.parameters) await refresh.turn.wait(this.#closing.signal);
      const result = await this.#refreshUnderLock(refresh);
      // Nothing is sent for now: the refreshes that wait for a slot end.
      if (result.outcome === 'failed' && pauses.forAllMs > 0)
        for (const { refresh: other } of this.#inFlight.values()) other.turn.giveUp(() => pauses.error(other.id));
      return result;
    } catch (error) {
      return failedEarly(error);
    } finally {
      refresh.turn.end();
    }
  }

  async #refreshUnderLock(refresh: Refresh): Promise<SentResult> {
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
        return { ...failedEarly(error), lockWaitMs, lostLease };
      }
    }
    const message = "Lost the grant's lock three times before refreshing. The grant is kept.";
    const error = new TokenStoreError(message, { code: 'ERR_TOKEN_STORE_LOCKED' });
    return { ...failedEarly(error), lockWaitMs, lostLease };
  }
}

/** Returns the grant of a result. @throws the error of the result; NotAuthorizedError if a logout left nothing */
function grantOf(result: RefreshResult): Grant {
  if ('error' in result) throw result.error;
  if (!result.grant) throw new NotAuthorizedError(NO_GRANT);
  return result.grant;
}

/** Returns what an event says of a result. @param seen The grant that the callers had. */
function eventOf(
  result: SentResult,
  seen: Grant,
): Omit<RefreshEvent, 'strategy' | 'grantId' | 'trigger' | 'durationMs'> {
  const { outcome, lockWaitMs, lostLease, reused } = result;
  const facts = {
    outcome,
    ...(lockWaitMs < MIN_LOCK_WAIT_MS ? {} : { lockWaitMs }),
    ...(lostLease ? { lostLease } : {}),
    ...(reused ? { reused } : {}),
  };
  if (outcome === 'failed')
    return { ...facts, reason: result.error instanceof OAuthAppError ? result.error.code : 'ERR_UNKNOWN' };
  const { scope } = result.grant ?? {};
  return scope !== undefined && scope.join() !== seen.scope?.join() ? { ...facts, scope } : facts;
}
