import { setMaxListeners } from 'node:events';
import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import { type Grant, hasSameTokens, isPastEnd, NO_TOKEN } from '../grants/grant.js';
import { TransportError } from '../http/transport-error.js';
import type { TokenParameters } from '../oauth/token-endpoint.js';
import {
  LockedRefreshes,
  type LockedRefreshesOptions,
  type LockedResult,
  NO_GRANT,
  type RefreshInFlight,
} from './locked-refreshes.js';

/** Options of a {@link Refresher}. */
export interface RefresherOptions extends Omit<LockedRefreshesOptions, 'signal'> {
  readonly onRefresh: (id: string, event: Omit<RefreshEvent, 'strategy' | 'grantId'>) => void;
  /** Resolves the parameters of a grant of the application; `undefined` without the option `applicationGrant`. */
  readonly parametersOf?: ((id: string) => Promise<TokenParameters | undefined>) | undefined;
}

/** The outcome of a refresh. `unsent`: no token request is needed, or none is possible now. */
type RefreshResult =
  | LockedResult
  | { readonly outcome: 'failed'; readonly error: unknown }
  | { readonly outcome: 'unsent'; readonly grant: Grant }
  | { readonly outcome: 'unsent'; readonly error: unknown };

/** A refresh that callers can join. */
interface SharedRefresh extends RefreshInFlight {
  readonly result: Promise<RefreshResult>;
}

/** Largest number of refreshes that run or wait. Beyond it none starts in the background: a later request tries again. */
const MAX_IN_FLIGHT = 64;

/** Largest number of refreshes that wait to be repeated. */
const MAX_RETRIES = 1_000;

/** Shortest wait for the lock that an event has, in milliseconds. */
const MIN_LOCK_WAIT_MS = 100;

/**
 * Refreshes grants: lock, read again, refresh, save. Concurrent callers share one refresh of a grant, which belongs to no request:
 * when the browser disconnects, the refresh and its save go on.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #inFlight = new Map<string, SharedRefresh>();
  readonly #locked: LockedRefreshes;
  readonly #closing = new AbortController();
  /** Aborts when the strategy is closed: from then on no refresh token is sent. */
  readonly closed: AbortSignal = this.#closing.signal;
  /** Timers of refreshes whose response was lost. */
  readonly #retries = new Map<string, NodeJS.Timeout>();

  constructor(options: RefresherOptions) {
    this.#options = options;
    // Each refresh that waits for a lock listens to it.
    setMaxListeners(0, this.closed);
    this.#locked = new LockedRefreshes({ ...options, signal: this.closed });
  }

  /** Returns true while a token request of the application runs for the grant. */
  isOfApplication(id: string): boolean {
    return this.#inFlight.get(id)?.parameters !== undefined;
  }

  /** Returns true if a background refresh makes sense now: none runs, nothing pauses it, and the strategy is not closed. */
  isIdle(id: string): boolean {
    if (this.#inFlight.has(id) || this.#inFlight.size >= MAX_IN_FLIGHT || this.closed.aborted) return false;
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
    const { repository, isUsable, endpoint } = this.#options;
    const isAwaited = trigger === 'expired' || trigger === 'refused';
    let known = seen;
    for (let other = this.#inFlight.get(id); other; other = this.#inFlight.get(id)) {
      if (isAwaited) endpoint.queue.prioritize(other.turn);
      const { isOvertaken } = other;
      const result = await other.result;
      // A refresh that a login or a logout has overtaken says nothing about the new grant.
      if (isOvertaken) continue;
      // Another process may have logged the user in since that read found no grant.
      const isGone = 'error' in result && result.error instanceof NotAuthorizedError;
      const stored = isGone ? await repository.read(id) : undefined;
      if (!stored) return grantOf(result);
      if (!hasSameTokens(stored, seen) && isUsable(stored)) return stored;
      known = stored;
    }
    this.closed.throwIfAborted();
    return grantOf(await this.#start(id, known, trigger, isAwaited).result);
  }

  /**
   * Refreshes a grant that no request needs. Resolves to what this process did: `ended` if the service refused the refresh token,
   * `undefined` if another process or a login was faster. Never rejects.
   */
  async keepAlive(id: string, seen: Grant): Promise<'refreshed' | 'ended' | 'failed' | undefined> {
    const isPaused = this.#options.endpoint.pauses.remainingMs('ahead', id) > 0;
    if (isPaused || this.closed.aborted) return 'failed';
    const refresh = this.#inFlight.get(id) ?? this.#start(id, seen, 'keep-alive', false);
    const result = await refresh.result;
    if (result.outcome === 'refreshed' || result.outcome === 'unsaved') return 'refreshed';
    if (!('error' in result)) return undefined;
    if (!(result.error instanceof NotAuthorizedError)) return 'failed';
    return result.outcome === 'failed' && refresh.current && !refresh.isOvertaken ? 'ended' : undefined;
  }

  /** Forgets a grant that a login replaces or a logout deletes. @param successor Grant of the login. Its own refresh goes on. */
  forget(id: string, successor?: Grant): void {
    const refresh = this.#inFlight.get(id);
    const isOfSuccessor = successor !== undefined && refresh?.current?.version === successor.version;
    if (refresh && !isOfSuccessor) refresh.isOvertaken = true;
    this.#options.unsaved.drop(id);
    this.#options.endpoint.pauses.forget(id);
    this.#endRetry(id);
  }

  /** Like {@link settled}. From now on no refresh token is sent, since the response might be lost: waiting refreshes fail. */
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
    const unknown = { parameters: undefined, current: undefined, reused: false, lockWaitMs: 0, lostLease: false };
    const refresh: RefreshInFlight = { id, seen, trigger, turn: { isAwaited }, isOvertaken: false, ...unknown };
    const result = this.#run(refresh).finally(() => this.#inFlight.delete(id));
    const shared = Object.assign(refresh, { result });
    this.#inFlight.set(id, shared);
    return shared;
  }

  /** Waits for a slot at the token endpoint before it takes the lock, so that no lock grows old. Never rejects. */
  async #run(refresh: RefreshInFlight): Promise<RefreshResult> {
    const { id, seen, trigger, turn } = refresh;
    const { endpoint, onRefresh } = this.#options;
    const { pauses, queue } = endpoint;
    const since = performance.now();
    let result: RefreshResult;
    try {
      const maySend = seen.refreshToken !== undefined && !pauses.error(id);
      const unsent = maySend ? undefined : await this.#withoutRequest(refresh);
      // A request of the application takes no slot: one that hangs must not hold up the refreshes of users.
      if (!unsent && !refresh.parameters) await queue.wait(turn, this.closed);
      result = unsent ?? (await this.#locked.refresh(refresh));
    } catch (error) {
      result = { outcome: 'failed', error };
      // Nothing is sent for now: refreshes that wait for a slot fail.
      if (pauses.beforeRequestMs() > 0) {
        for (const other of this.#inFlight.values()) {
          const paused = pauses.error(other.id);
          if (paused) other.turn.leave?.(paused);
        }
      }
    } finally {
      queue.end(turn);
    }
    if (result.outcome !== 'unsent') {
      const { lockWaitMs, lostLease, reused } = refresh;
      const scope = 'error' in result ? undefined : result.grant?.scope;
      onRefresh(id, {
        outcome: result.outcome,
        trigger,
        durationMs: performance.now() - since,
        ...(lockWaitMs >= MIN_LOCK_WAIT_MS && { lockWaitMs }),
        ...(lostLease && { lostLease }),
        ...(reused && { reused }),
        ...('error' in result && { reason: result.error instanceof OAuthAppError ? result.error.code : 'ERR_UNKNOWN' }),
        ...(scope !== undefined && scope.join() !== seen.scope?.join() && { scope }),
      });
      if ('error' in result && !refresh.isOvertaken) this.#pauseOrRetry(refresh, result.error);
    }
    return result;
  }

  /** Pauses background refreshes after a failure, and repeats a refresh whose response was lost. */
  #pauseOrRetry({ id, seen, trigger }: RefreshInFlight, error: unknown): void {
    if (error instanceof NotAuthorizedError || this.closed.aborted) return;
    const { pauses } = this.#options.endpoint;
    if (trigger === 'ahead' && pauses.remainingMs('ahead', id) === 0) pauses.begin('ahead', id);
    const isLost =
      error instanceof ServiceUnavailableError && error.cause instanceof TransportError && error.cause.sent;
    if (!isLost || trigger === 'retry' || this.#retries.size >= MAX_RETRIES) return;
    // The service may accept the former refresh token for some seconds more. The user's next request may come later.
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

  /** Returns the result if no token request is needed or possible now. Else gets the parameters of one without a refresh token. */
  async #withoutRequest(refresh: RefreshInFlight): Promise<RefreshResult | undefined> {
    const { repository, isUsable, endpoint, clock, parametersOf } = this.#options;
    const { id, seen, trigger } = refresh;
    const isEnded = isPastEnd(seen, clock()) && seen.obtainedBy === endpoint.id;
    const isReplaceable = seen.refreshToken !== undefined || parametersOf;
    if (isReplaceable && !isEnded && endpoint.pauses.error(id)) {
      // Another process may have refreshed it by now.
      const stored = await repository.readAnew(id).catch(() => undefined);
      if (stored && stored.accessToken !== seen.accessToken && isUsable(stored))
        return { outcome: 'unsent', grant: stored };
      const error = endpoint.pauses.error(id);
      if (error) return { outcome: 'unsent', error };
    }
    if (seen.refreshToken !== undefined) return undefined;
    refresh.parameters = await parametersOf?.(id);
    if (refresh.parameters) return undefined;
    if (seen.accessToken === NO_TOKEN) return { outcome: 'unsent', error: new NotAuthorizedError(NO_GRANT) };
    return trigger !== 'refused' && seen.expiresAt > clock() ? { outcome: 'unsent', grant: seen } : undefined;
  }
}

/** Returns the grant of a result. @throws the error of the result; NotAuthorizedError if a logout left nothing */
function grantOf(result: RefreshResult): Grant {
  if ('error' in result) throw result.error;
  if (!result.grant) throw new NotAuthorizedError(NO_GRANT);
  return result.grant;
}
