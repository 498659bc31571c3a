import { setTimeout as pause } from 'node:timers/promises';
import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import { type Grant, hasSameTokens, isOtherSubject, newVersion, refreshedGrant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { Outages } from './outages.js';
import { type Flight, RefreshRequests, type RefreshTrigger } from './refresh-request.js';
import { UnsavedGrants } from './unsaved-grants.js';

/** What a refresher works with. */
export interface GrantRefresherOptions {
  readonly repository: GrantRepository;
  readonly endpoint: TokenEndpoint;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Whether a grant that somebody else has put in place is good to go on with. */
  readonly isUsable: (grant: Grant) => boolean;
  readonly onRefresh: (id: string, event: Pick<RefreshEvent, 'outcome' | 'trigger' | 'durationMs' | 'reason'>) => void;
  readonly onLost: (id: string, reason: LossReason) => void;
}

type Outcome = RefreshEvent['outcome'];
type LossReason = 'refused' | 'other-subject';

type Refreshed = readonly [outcome: Outcome, grant: Grant];

/**
 * Refreshes grants, each once at a time, however many ask: lock, read again, refresh, save.
 *
 * No refresh hangs on a request: the browser may go away, the refresh and its save go on.
 */
export class GrantRefresher {
  readonly #options: GrantRefresherOptions;
  readonly #flights = new Map<string, Flight & { readonly result: Promise<Grant> }>();
  readonly #outages = new Outages();
  readonly #unsaved: UnsavedGrants;
  readonly #requests: RefreshRequests;
  #isClosing = false;

  constructor(options: GrantRefresherOptions) {
    this.#options = options;
    this.#unsaved = new UnsavedGrants(options.repository, (id, saved, trigger) => {
      options.onRefresh(id, { outcome: saved ? 'saved' : 'discarded', trigger, durationMs: 0 });
    });
    this.#requests = new RefreshRequests({
      ...options,
      outages: this.#outages,
      onSuccessor: (...successor) => this.#keepSuccessor(...successor),
    });
  }

  /** Number of refreshes under way, of grants that wait to be saved, and of grants in a bad moment. */
  get sizes(): { readonly flights: number; readonly unsaved: number; readonly outages: number } {
    return { flights: this.#flights.size, unsaved: this.#unsaved.size, outages: this.#outages.size };
  }

  /** A rotated grant that the store has not taken yet. */
  unsaved(id: string): Grant | undefined {
    return this.#unsaved.get(id);
  }

  /** Whether a refresh that nobody waits for makes sense now. */
  isIdle(id: string): boolean {
    return !this.#flights.has(id) && this.#outages.remainingMs(id, this.#options.clock()) === 0;
  }

  /**
   * The grant after `seen`: from the service, or from whoever was faster. Callers that ask at once get the same one.
   *
   * @throws NotAuthorizedError if the grant is gone; TokenError, TokenResponseError, ServiceUnavailableError or
   *   TokenStoreError if it is kept but cannot be refreshed now. Callers share the error.
   */
  refresh(id: string, seen: Grant, trigger: RefreshTrigger): Promise<Grant> {
    const underWay = this.#flights.get(id);
    if (underWay?.overtaken) return this.#refreshAfter(underWay.result, id, seen, trigger);
    if (underWay) return underWay.result;
    if (this.#isClosing) return Promise.reject(closed());
    const flight: Flight = { id, seen, trigger, overtaken: false };
    const result = this.#fly(flight).finally(() => this.#flights.delete(id));
    this.#flights.set(id, Object.assign(flight, { result }));
    return result;
  }

  /** Forgets what is known of a grant that a login has replaced or a logout deletes. @param successor Of the login: a refresh of that one goes on */
  forget(id: string, successor?: Grant): void {
    const flight = this.#flights.get(id);
    if (flight && !(successor && flight.current?.version === successor.version)) flight.overtaken = true;
    this.#unsaved.drop(id);
    this.#outages.forget(id);
  }

  /** Saves what the store could not take while it was down. */
  storeIsBack(): void {
    void this.#unsaved.flush();
  }

  /** Resolves when all refreshes have ended, and everything was saved that can be. From now on none begins: its pair might be lost. */
  async drain(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled([...this.#flights.values()].map((flight) => flight.result));
    await this.#unsaved.saveAll();
  }

  /** What a login or logout has overtaken may end with "no grant", and says nothing about the grant of now. */
  async #refreshAfter(overtaken: Promise<Grant>, ...refresh: Parameters<GrantRefresher['refresh']>): Promise<Grant> {
    await overtaken.catch(() => undefined);
    return await this.refresh(...refresh);
  }

  async #fly(flight: Flight): Promise<Grant> {
    const { id, trigger } = flight;
    const luckier = await this.#duringOutage(flight);
    if (luckier) return luckier;
    const since = performance.now();
    const tell = (outcome: Outcome, reason?: string) =>
      this.#options.onRefresh(id, {
        outcome,
        trigger,
        durationMs: performance.now() - since,
        ...(reason === undefined ? {} : { reason }),
      });
    try {
      const [outcome, grant] = await this.#options.repository.locked(id, () => this.#refreshLocked(flight));
      tell(outcome);
      return grant;
    } catch (error) {
      tell('failed', error instanceof OAuthAppError ? error.code : 'ERR_UNKNOWN');
      throw error;
    }
  }

  /** In a bad moment of the service: what another process may have got. @throws ServiceUnavailableError if there is none */
  async #duringOutage({ id, seen }: Flight): Promise<Grant | undefined> {
    const { clock, repository, isUsable } = this.#options;
    if (this.#outages.remainingMs(id, clock()) === 0) return undefined;
    const stored = await repository.readAnew(id).catch(() => undefined);
    if (stored && stored.accessToken !== seen.accessToken && isUsable(stored)) return stored;
    this.#outages.check(id, clock());
    return undefined;
  }

  async #refreshLocked(flight: Flight): Promise<Refreshed> {
    const { id, seen } = flight;
    const current = this.#unsaved.get(id) ?? (await this.#options.repository.readAnew(id));
    if (!current) throw gone();
    if (current.accessToken !== seen.accessToken && this.#options.isUsable(current)) return ['adopted', current];
    const refreshed = await this.#exchange(flight, current);
    if (refreshed) return refreshed;
    const winner = await this.#adopt(id);
    if (this.#options.isUsable(winner)) return ['adopted', winner];
    // Whoever was faster was so long ago: its token has expired as well, and its refresh token is the one to use.
    const second = await this.#exchange(flight, winner);
    return second ?? ['adopted', await this.#adopt(id)];
  }

  /** The grant after `grant`; `undefined` if the service refused it, and the store has another one by now. */
  async #exchange(flight: Flight, grant: Grant): Promise<Refreshed | undefined> {
    flight.current = grant;
    const tokens = await this.#requests.send(flight, grant);
    if (tokens === undefined) return await this.#giveUp(flight, grant, 'refused');
    if (isOtherSubject(grant, tokens)) return await this.#giveUp(flight, grant, 'other-subject');
    return await this.#save(flight, grant, refreshedGrant(grant, tokens, this.#options.clock()));
  }

  /**
   * Keeps the refresh token of an answer that could not be used otherwise: the service has buried the one that was
   * shown. That one stays beside it, should the answer not have been the service's own.
   */
  async #keepSuccessor(flight: Flight, grant: Grant, shown: string, successor: string): Promise<void> {
    const next = { ...grant, refreshToken: successor, previousRefreshToken: shown, version: newVersion() };
    await this.#save(flight, grant, next).catch(() => undefined);
  }

  /** What the store has in place of the grant that could not be refreshed or saved. */
  async #adopt(id: string): Promise<Grant> {
    this.#unsaved.drop(id);
    const winner = await this.#options.repository.readAnew(id);
    if (!winner) throw gone();
    return winner;
  }

  async #save(flight: Flight, before: Grant, next: Grant): Promise<Refreshed> {
    const { id } = flight;
    const versions = this.#unsaved.versionsBefore(id, before);
    try {
      if (await this.#options.repository.replace(id, next, versions)) {
        this.#unsaved.drop(id);
        return ['refreshed', next];
      }
    } catch {
      if (!flight.overtaken) {
        this.#unsaved.keep(id, next, versions, flight.trigger);
        return ['unsaved', next];
      }
    }
    return ['discarded', await this.#adopt(id)];
  }

  /** Deletes a grant that is of no use any more, unless the store has another one by now. */
  async #giveUp(flight: Flight, grant: Grant, reason: LossReason): Promise<undefined> {
    const { id } = flight;
    if (reason === 'refused' && grant.refreshToken !== undefined) await this.#awaitWinner(flight, grant);
    if (!(await this.#options.repository.removeRefused(id, grant))) return undefined;
    if (flight.overtaken) throw gone();
    this.forget(id);
    this.#options.onLost(id, reason);
    throw gone();
  }

  /** A refresh token is refused as well if another process has just used it, and is about to save its pair. */
  async #awaitWinner(flight: Flight, refused: Grant): Promise<void> {
    const { repository } = this.#options;
    for (const pauseMs of repository.pausesBeforeLoss) {
      const stored = await repository.readAnew(flight.id);
      if (!stored || !hasSameTokens(stored, refused) || flight.overtaken) return;
      await pause(pauseMs);
    }
  }
}

/** The error of a refresh that is asked for after `close()`. */
function closed(): ServiceUnavailableError {
  return new ServiceUnavailableError('The strategy is closed: nothing is refreshed any more. The grant is kept.');
}

/** The error of a grant that is not there (any more). */
export function gone(): NotAuthorizedError {
  return new NotAuthorizedError('There is no grant (any more): the user has to log in again.');
}
