import type { GrantLostEvent } from '../events.js';
import { type Freshness, freshness, type Grant, newGrant, type RefreshWindow } from '../grants/grant.js';
import { type CacheLimits, GrantCache } from '../grants/grant-cache.js';
import type { GrantCodec } from '../grants/grant-codec.js';
import { GrantRepository } from '../grants/grant-repository.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { TokenStore } from '../stores/token-store.js';
import { BackgroundRefreshes } from './background-refreshes.js';
import { Backoffs } from './backoff.js';
import { noGrant } from './locked-refreshes.js';
import { Refresher, type RefresherOptions } from './refresher.js';

/** Parts of a {@link GrantManager}. */
export interface GrantManagerOptions extends Pick<RefresherOptions, 'endpoint' | 'clock' | 'onRefresh'> {
  /** Passport's name for the strategy. Keeps the ids of several strategies apart. */
  readonly strategyName: string;
  readonly store: TokenStore;
  readonly codec: GrantCodec;
  readonly cache: CacheLimits | undefined;
  readonly window: RefreshWindow;
  readonly onLost: (grantId: string, reason: GrantLostEvent['reason']) => void;
  /** Called once, when another process has refreshed a grant in a store without a lock. */
  readonly onUnlockedRefresh: () => void;
}

/**
 * Loads grants, decides whether they are due, and has them refreshed. Takes grant ids as the session and the
 * application know them; below this class, ids are those of the store.
 *
 * Concurrent callers may share an error object: copy it before handing it on.
 */
export class GrantManager {
  readonly #options: GrantManagerOptions;
  readonly #repository: GrantRepository;
  readonly #refresher: Refresher;
  readonly #background: BackgroundRefreshes;
  /** Grants whose new access token the API refused as well. */
  readonly #refusals = new Backoffs();
  #hasWarned = false;
  #closing: Promise<void> | undefined;

  constructor(options: GrantManagerOptions) {
    const { store, codec, clock, endpoint, cache } = options;
    this.#options = options;
    this.#background = new BackgroundRefreshes((id) => this.#startIfDue(id), clock);
    this.#repository = new GrantRepository({
      store,
      codec,
      clock,
      cache: cache && new GrantCache(cache),
      onUnreadable: (id) => options.onLost(grantIdOf(id), 'unreadable'),
      onRecovery: () => this.#refresher.saveUnsaved(),
      onUnlockedRefresh: () => this.#warnOnce(),
    });
    this.#refresher = new Refresher({
      repository: this.#repository,
      endpoint,
      clock,
      isUsable: (grant) => this.#freshness(grant) !== 'expired',
      onRefresh: (id, event) => options.onRefresh(grantIdOf(id), event),
      onLost: (id, reason) => options.onLost(grantIdOf(id), reason),
    });
  }

  /**
   * Returns the grant with a usable access token. Synchronous, and without I/O, if it is cached and not expired.
   *
   * @throws NotAuthorizedError if there is none; TokenStoreError, TokenError, TokenResponseError or
   *   ServiceUnavailableError if it cannot be loaded or refreshed now
   */
  current(grantId: string): Grant | Promise<Grant> {
    const id = this.#storeId(grantId);
    const known = this.#known(id);
    return known === undefined ? this.#load(id) : this.#freshen(id, known);
  }

  /**
   * Returns a grant with another access token than the one that the API refused, or with the same one if no other can
   * be had now.
   *
   * @throws like {@link current}
   */
  async renew(grantId: string, refused: string): Promise<Grant> {
    const id = this.#storeId(grantId);
    const known = this.#known(id) ?? (await this.#repository.read(id));
    if (!known) throw noGrant();
    if (known.accessToken !== refused) return await this.#freshen(id, known);
    // Nothing can replace it, and the API may have refused it for one request only.
    if (known.refreshToken === undefined && this.#freshness(known) !== 'expired') return known;
    if (this.#refusals.remainingMs(id, this.#options.clock()) > 0) return known;
    return await this.#refresher.refresh(id, known, 'refused');
  }

  /** Records whether the API accepted an access token of {@link renew}. A refusal starts a backoff, during which `renew` refreshes nothing. */
  reportOutcome(grantId: string, accepted: boolean): void {
    const id = this.#storeId(grantId);
    const now = this.#options.clock();
    if (accepted) this.#refusals.clear(id);
    else if (this.#refusals.remainingMs(id, now) === 0) this.#refusals.fail(id, now);
  }

  /** Saves the grant of a login in place of any other. @throws TokenStoreError if it was not saved in time; it may be saved later */
  async put(grantId: string, tokens: TokenSet): Promise<void> {
    const id = this.#storeId(grantId);
    const grant = newGrant(tokens, this.#options.clock());
    await this.#repository.create(id, grant, () => this.#forget(id, grant));
  }

  /** Deletes the grant. A refresh that runs does not bring it back. @throws TokenStoreError if it could not be deleted */
  async remove(grantId: string): Promise<void> {
    const id = this.#storeId(grantId);
    this.#forget(id);
    await this.#repository.remove(id, () => this.#forget(id));
  }

  /** Resolves when all running refreshes and saves have ended, or exceeded their time limit. Later calls join the first. */
  close(): Promise<void> {
    this.#background.close();
    this.#closing ??= this.#refresher.close().then(() => this.#repository.drain());
    return this.#closing;
  }

  #known(id: string): Grant | undefined {
    return this.#refresher.unsaved(id) ?? this.#repository.cached(id);
  }

  async #load(id: string): Promise<Grant> {
    const stored = await this.#repository.read(id);
    const grant = this.#refresher.unsaved(id) ?? stored;
    if (!grant) throw noGrant();
    return await this.#freshen(id, grant);
  }

  #freshen(id: string, grant: Grant): Grant | Promise<Grant> {
    const state = this.#freshness(grant);
    if (state === 'expired') return this.#refresher.refresh(id, grant, 'expired');
    if (state === 'due' && grant.refreshToken !== undefined && this.#refresher.isIdle(id)) this.#background.request(id);
    return grant;
  }

  /** Starts the background refresh whose turn has come, unless a request has waited for a refresh meanwhile. */
  #startIfDue(id: string): Promise<unknown> | undefined {
    if (!this.#refresher.isIdle(id)) return undefined;
    const known = this.#known(id);
    if (known) return this.#freshness(known) === 'fresh' ? undefined : this.#refresher.refresh(id, known, 'ahead');
    return this.#repository.read(id).then(async (stored) => {
      if (stored && this.#freshness(stored) !== 'fresh') await this.#refresher.refresh(id, stored, 'ahead');
    });
  }

  #warnOnce(): void {
    if (!this.#hasWarned) this.#options.onUnlockedRefresh();
    this.#hasWarned = true;
  }

  #freshness(grant: Grant): Freshness {
    return freshness(grant, this.#options.clock(), this.#options.window);
  }

  #forget(id: string, successor?: Grant): void {
    this.#refresher.forget(id, successor);
    this.#background.forget(id);
    this.#refusals.clear(id);
  }

  /**
   * Returns the id under which the store keeps the grant: printable ASCII. Ids of different strategies never collide,
   * because `encodeURIComponent` leaves no `+` in either part.
   */
  #storeId(grantId: string): string {
    return `${encodeURIComponent(this.#options.strategyName)}+${encodeURIComponent(grantId)}`;
  }
}

function grantIdOf(storeId: string): string {
  return decodeURIComponent(storeId.slice(storeId.indexOf('+') + 1));
}
