import { setTimeout as pause } from 'node:timers/promises';
import { NotAuthorizedError, OAuthAppError, ServiceUnavailableError } from '../errors.js';
import type { RefreshEvent } from '../events.js';
import { type Grant, hasSameTokens, isOtherSubject, newVersion, refreshedGrant } from '../grants/grant.js';
import type { GrantRepository } from '../grants/grant-repository.js';
import type { TokenEndpoint } from '../oauth/token-endpoint.js';
import { EndpointBackoff } from './backoff.js';
import { type RefreshInFlight, RefreshRequests, type RefreshTrigger } from './refresh-request.js';
import { UnsavedGrants } from './unsaved-grants.js';

/** Parts of a {@link Refresher}. */
export interface RefresherOptions {
  readonly repository: GrantRepository;
  readonly endpoint: TokenEndpoint;
  /** Epoch milliseconds. */
  readonly clock: () => number;
  /** Returns true if a grant that another process has saved can be used without a refresh. */
  readonly isUsable: (grant: Grant) => boolean;
  readonly onRefresh: (id: string, event: Pick<RefreshEvent, 'outcome' | 'trigger' | 'durationMs' | 'reason'>) => void;
  readonly onLost: (id: string, reason: LossReason) => void;
}

type LossReason = 'refused' | 'other-subject';

interface Refreshed {
  readonly outcome: RefreshEvent['outcome'];
  readonly grant: Grant;
}

/**
 * Pauses before a refused grant is given up, in milliseconds: another process may have refreshed it and not saved it
 * yet. A user who has revoked the grant waits for them once.
 */
const PAUSES_MS = [50, 150, 300];
/** The same if the store has failed within the last minute, perhaps in the other process too. */
const PAUSES_AFTER_FAILURE_MS = [...PAUSES_MS, 500, 1_000];

/**
 * Refreshes grants: lock, read again, refresh, save. Each grant once at a time, however many callers ask.
 *
 * A refresh belongs to no request: when the browser disconnects, the refresh and its save go on.
 */
export class Refresher {
  readonly #options: RefresherOptions;
  readonly #inFlight = new Map<string, RefreshInFlight & { readonly result: Promise<Grant> }>();
  readonly #backoff = new EndpointBackoff();
  readonly #unsaved: UnsavedGrants;
  readonly #requests: RefreshRequests;
  #isClosing = false;

  constructor(options: RefresherOptions) {
    this.#options = options;
    this.#unsaved = new UnsavedGrants(options.repository, (id, saved, trigger) => {
      options.onRefresh(id, { outcome: saved ? 'saved' : 'discarded', trigger, durationMs: 0 });
    });
    this.#requests = new RefreshRequests({
      endpoint: options.endpoint,
      backoff: this.#backoff,
      clock: options.clock,
      onRotated: (refresh, sent, rotated) => this.#saveRotated(refresh, sent, rotated),
    });
  }

  /** Returns a refreshed grant that the store could not save yet. */
  unsaved(id: string): Grant | undefined {
    return this.#unsaved.get(id);
  }

  /** Returns true if a background refresh makes sense now: none runs, and the endpoint is not in backoff. */
  isIdle(id: string): boolean {
    return !this.#inFlight.has(id) && this.#backoff.remainingMs(id, this.#options.clock()) === 0;
  }

  /**
   * Returns the grant after `seen`, refreshed by this process or another one. Concurrent callers get the same result.
   *
   * @throws NotAuthorizedError if the grant is gone; TokenError, TokenResponseError, ServiceUnavailableError or
   *   TokenStoreError if it is kept but cannot be refreshed now. Concurrent callers share the error object.
   */
  async refresh(id: string, seen: Grant, trigger: RefreshTrigger): Promise<Grant> {
    // A refresh that a login or logout has overtaken may end with "no grant", which says nothing about the new grant.
    for (let other = this.#inFlight.get(id); other; other = this.#inFlight.get(id)) {
      if (!other.isOvertaken) return await other.result;
      await other.result.catch(() => undefined);
    }
    if (this.#isClosing)
      throw new ServiceUnavailableError('The strategy is closed: it refreshes no more grants. The grant is kept.');
    const refresh: RefreshInFlight = { id, seen, trigger, isOvertaken: false };
    const result = this.#run(refresh).finally(() => this.#inFlight.delete(id));
    this.#inFlight.set(id, Object.assign(refresh, { result }));
    return await result;
  }

  /** Forgets a grant that a login replaces or a logout deletes. @param successor Grant of the login. Its own refresh goes on. */
  forget(id: string, successor?: Grant): void {
    const refresh = this.#inFlight.get(id);
    const isOfSuccessor = successor !== undefined && refresh?.current?.version === successor.version;
    if (refresh && !isOfSuccessor) refresh.isOvertaken = true;
    this.#unsaved.drop(id);
    this.#backoff.clear(id);
  }

  /** Saves the grants that the store could not save while it was down. */
  saveUnsaved(): void {
    void this.#unsaved.flush();
  }

  /** Resolves when all refreshes have ended and all grants are saved, as far as possible. No refresh starts from now on: its tokens might be lost. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await Promise.allSettled([...this.#inFlight.values()].map(({ result }) => result));
    await this.#unsaved.saveAll();
  }

  async #run(refresh: RefreshInFlight): Promise<Grant> {
    const { id, trigger } = refresh;
    const adopted = await this.#adoptDuringBackoff(refresh);
    if (adopted) return adopted;
    const startedAt = performance.now();
    const event = () => ({ trigger, durationMs: performance.now() - startedAt });
    try {
      const { outcome, grant } = await this.#options.repository.locked(id, () => this.#refreshLocked(refresh));
      this.#options.onRefresh(id, { outcome, ...event() });
      return grant;
    } catch (error) {
      const reason = error instanceof OAuthAppError ? error.code : 'ERR_UNKNOWN';
      this.#options.onRefresh(id, { outcome: 'failed', reason, ...event() });
      throw error;
    }
  }

  /** During a backoff, returns a grant that another process has refreshed. @throws ServiceUnavailableError if there is none */
  async #adoptDuringBackoff({ id, seen }: RefreshInFlight): Promise<Grant | undefined> {
    const { clock, repository, isUsable } = this.#options;
    if (this.#backoff.remainingMs(id, clock()) === 0) return undefined;
    const stored = await repository.readAnew(id).catch(() => undefined);
    if (stored && stored.accessToken !== seen.accessToken && isUsable(stored)) return stored;
    const leftMs = this.#backoff.remainingMs(id, clock());
    if (leftMs === 0) return undefined;
    throw new ServiceUnavailableError(
      'The token endpoint has just failed; it is tried again later. The grant is kept.',
      {
        retryAfter: Math.ceil(leftMs / 1000),
      },
    );
  }

  async #refreshLocked(refresh: RefreshInFlight): Promise<Refreshed> {
    const { id, seen } = refresh;
    const stored = this.#unsaved.get(id) ?? (await this.#options.repository.readAnew(id));
    if (!stored) throw noGrant();
    if (stored.accessToken !== seen.accessToken && this.#options.isUsable(stored))
      return { outcome: 'adopted', grant: stored };
    const refreshed = await this.#exchange(refresh, stored);
    if (refreshed) return refreshed;
    const adopted = await this.#adopt(id);
    if (this.#options.isUsable(adopted)) return { outcome: 'adopted', grant: adopted };
    // Another process refreshed long ago: its access token has expired as well, but its refresh token is the valid one.
    return (await this.#exchange(refresh, adopted)) ?? { outcome: 'adopted', grant: await this.#adopt(id) };
  }

  /** Returns the grant after `grant`, or `undefined` if the service refused it and the store has another one. */
  async #exchange(refresh: RefreshInFlight, grant: Grant): Promise<Refreshed | undefined> {
    refresh.current = grant;
    const tokens = await this.#requests.send(refresh, grant);
    if (tokens && !isOtherSubject(grant, tokens))
      return await this.#save(refresh, grant, refreshedGrant(grant, tokens, this.#options.clock()));
    if (!tokens && grant.refreshToken !== undefined) await this.#waitForOtherProcess(refresh, grant);
    if (!(await this.#options.repository.removeRefused(refresh.id, grant))) return undefined;
    if (!refresh.isOvertaken) {
      this.forget(refresh.id);
      this.#options.onLost(refresh.id, tokens ? 'other-subject' : 'refused');
    }
    throw noGrant();
  }

  /** Waits for the save of another process: a refresh token is refused as well if another process has just used it. */
  async #waitForOtherProcess(refresh: RefreshInFlight, refused: Grant): Promise<void> {
    const { repository } = this.#options;
    for (const pauseMs of repository.hasFailedRecently ? PAUSES_AFTER_FAILURE_MS : PAUSES_MS) {
      const stored = await repository.readAnew(refresh.id);
      if (!stored || !hasSameTokens(stored, refused) || refresh.isOvertaken) return;
      await pause(pauseMs);
    }
  }

  async #save(refresh: RefreshInFlight, before: Grant, next: Grant): Promise<Refreshed> {
    const { id, trigger } = refresh;
    const versions = this.#unsaved.replaceableVersions(id, before);
    try {
      if (await this.#options.repository.replace(id, next, versions)) {
        this.#unsaved.drop(id);
        return { outcome: 'refreshed', grant: next };
      }
    } catch {
      if (!refresh.isOvertaken) {
        this.#unsaved.keep(id, next, versions, trigger);
        return { outcome: 'unsaved', grant: next };
      }
    }
    return { outcome: 'discarded', grant: await this.#adopt(id) };
  }

  /**
   * Saves the refresh token of a token response that is otherwise unusable: the service has invalidated the one that
   * was sent. Keeps that one too, in case the response did not come from the service.
   */
  async #saveRotated(refresh: RefreshInFlight, sent: Grant, rotated: string): Promise<void> {
    const next = { ...sent, refreshToken: rotated, previousRefreshToken: sent.refreshToken, version: newVersion() };
    await this.#save(refresh, sent, next).catch(() => undefined);
  }

  /** Returns the stored grant in place of one that could not be refreshed or saved. @throws NotAuthorizedError if there is none */
  async #adopt(id: string): Promise<Grant> {
    this.#unsaved.drop(id);
    const stored = await this.#options.repository.readAnew(id);
    if (!stored) throw noGrant();
    return stored;
  }
}

/** Returns the error for a grant that does not exist (any more). */
export function noGrant(): NotAuthorizedError {
  return new NotAuthorizedError('There is no grant (any more): the user has to log in again.');
}
