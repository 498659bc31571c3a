import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError, TokenError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import type { TokenEndpoint } from '../service/token-endpoint.js';
import type { TokenSet } from '../service/token-response.js';
import { type Grant, isOtherSubject, refreshedGrant } from './grant.js';
import type { GrantRepository } from './grant-repository.js';
import { Outages } from './outages.js';
import { UnsavedGrants } from './unsaved-grants.js';

/** What asked for a refresh. */
export type RefreshTrigger = RefreshEvent['trigger'];

/** What a refresher works with. */
export interface GrantRefresherOptions {
  readonly repository: GrantRepository;
  readonly endpoint: TokenEndpoint;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Whether a grant that somebody else has put in place is good to go on with. */
  readonly isUsable: (id: string, grant: Grant) => boolean;
  readonly onRefresh: (id: string, event: Pick<RefreshEvent, 'outcome' | 'trigger' | 'durationMs' | 'reason'>) => void;
  readonly onLost: (id: string, reason: 'refused' | 'other-subject') => void;
}

type Outcome = RefreshEvent['outcome'];
/** One refresh under way. */
interface Flight {
  readonly id: string;
  /** What the callers hold. */
  readonly seen: Grant;
  /** A login or logout came in between: the result is not to be kept in memory. */
  overtaken: boolean;
}

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

  constructor(options: GrantRefresherOptions) {
    this.#options = options;
    this.#unsaved = new UnsavedGrants(options.repository, (id, saved) => {
      options.onRefresh(id, { outcome: saved ? 'saved' : 'discarded', trigger: 'expired', durationMs: 0 });
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
    if (underWay) return underWay.result;
    const flight: Flight = { id, seen, overtaken: false };
    const result = this.#fly(flight, trigger).finally(() => this.#flights.delete(id));
    this.#flights.set(id, Object.assign(flight, { result }));
    return result;
  }

  /** Forgets what is known of a grant that a login replaces or a logout deletes. */
  forget(id: string): void {
    const flight = this.#flights.get(id);
    if (flight) flight.overtaken = true;
    this.#unsaved.drop(id);
    this.#outages.forget(id);
  }

  /** Resolves when all refreshes have ended, and everything was saved that can be. */
  async drain(): Promise<void> {
    await Promise.allSettled([...this.#flights.values()].map((flight) => flight.result));
    await this.#unsaved.flush();
  }

  async #fly(flight: Flight, trigger: RefreshTrigger): Promise<Grant> {
    const { id } = flight;
    const { clock, onRefresh } = this.#options;
    this.#outages.check(id, clock());
    const since = performance.now();
    const tell = (outcome: Outcome, reason?: string) =>
      onRefresh(id, {
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

  async #refreshLocked(flight: Flight): Promise<Refreshed> {
    const { id, seen } = flight;
    const current = this.#unsaved.get(id) ?? (await this.#options.repository.readAnew(id));
    if (!current) throw gone();
    if (current.accessToken !== seen.accessToken && this.#options.isUsable(id, current)) return ['adopted', current];
    const tokens = await this.#ask(id, current);
    if (tokens === undefined) return ['adopted', await this.#adopt(id)];
    if (isOtherSubject(current, tokens)) return await this.#lose(id, current, 'other-subject');
    return await this.#save(flight, current, refreshedGrant(current, tokens, this.#options.clock()));
  }

  /** The service's answer; `undefined` if it refused the refresh token because somebody else had used it first. */
  async #ask(id: string, grant: Grant): Promise<TokenSet | undefined> {
    if (grant.refreshToken === undefined) return await this.#lose(id, grant, 'refused');
    try {
      const tokens = await this.#options.endpoint.refresh(grant.refreshToken);
      this.#outages.answered(id);
      return tokens;
    } catch (error) {
      if (error instanceof ServiceUnavailableError) throw this.#outages.failed(id, error, this.#options.clock());
      this.#outages.answered(id);
      if (!(error instanceof TokenError && error.error === 'invalid_grant')) throw error;
    }
    const removed = await this.#options.repository.removeRefused(id, grant);
    if (removed) return this.#lost(id, 'refused');
    return undefined;
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
        this.#unsaved.keep(id, next, versions);
        return ['unsaved', next];
      }
    }
    return ['discarded', await this.#adopt(id)];
  }

  async #lose(id: string, grant: Grant, reason: 'refused' | 'other-subject'): Promise<never> {
    await this.#options.repository.removeRefused(id, grant);
    return this.#lost(id, reason);
  }

  #lost(id: string, reason: 'refused' | 'other-subject'): never {
    this.forget(id);
    this.#options.onLost(id, reason);
    throw gone();
  }
}

/** The error of a grant that is not there (any more). */
export function gone(): NotAuthorizedError {
  return new NotAuthorizedError('There is no grant (any more): the user has to log in again.');
}
