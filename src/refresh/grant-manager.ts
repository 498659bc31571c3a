import type { GrantLostEvent } from '../events.js';
import { type Grant, newGrant } from '../grants/grant.js';
import { type CacheLimits, GrantCache } from '../grants/grant-cache.js';
import type { GrantCodec } from '../grants/grant-codec.js';
import { storeId } from '../grants/grant-id.js';
import { GrantRepository } from '../grants/grant-repository.js';
import type { TokenSet } from '../oauth/token-response.js';
import type { TokenStore } from '../stores/token-store.js';
import { BackgroundRefreshes } from './background-refreshes.js';
import { Backoffs } from './backoff.js';
import { freshness, type RefreshWindow } from './freshness.js';
import { GrantRefresher, type GrantRefresherOptions, gone } from './refresher.js';

/** What a manager works with. */
export interface GrantManagerOptions extends Pick<GrantRefresherOptions, 'endpoint' | 'clock' | 'onRefresh'> {
  /** Passport's name for the strategy: keeps ids of several strategies apart. */
  readonly strategyName: string;
  readonly store: TokenStore;
  readonly codec: GrantCodec;
  readonly cache: CacheLimits | undefined;
  readonly window: RefreshWindow;
  readonly onLost: (id: string, reason: GrantLostEvent['reason']) => void;
}

/**
 * Keeps grants fresh: load, decide, refresh. Takes grant ids as the session and the application know them.
 *
 * Errors are shared by callers that ask at once: whoever hands them on copies them.
 */
export class GrantManager {
  readonly #options: GrantManagerOptions;
  readonly #repository: GrantRepository;
  readonly #refresher: GrantRefresher;
  /** Grants whose new token the API refused as well. */
  readonly #coolDowns = new Backoffs();
  readonly #ahead: BackgroundRefreshes;
  #closing: Promise<void> | undefined;

  constructor(options: GrantManagerOptions) {
    const { store, codec, clock, endpoint, cache } = options;
    this.#options = options;
    this.#ahead = new BackgroundRefreshes(clock);
    this.#repository = new GrantRepository({
      store,
      codec,
      clock,
      cache: cache && new GrantCache(cache),
      onUnreadable: (id) => options.onLost(this.#grantId(id), 'unreadable'),
      onRecovery: () => this.#refresher.storeIsBack(),
    });
    this.#refresher = new GrantRefresher({
      repository: this.#repository,
      endpoint,
      clock,
      isUsable: (grant) => this.#freshness(grant) !== 'expired',
      onRefresh: (id, event) => options.onRefresh(this.#grantId(id), event),
      onLost: (id, reason) => options.onLost(this.#grantId(id), reason),
    });
  }

  /** Sizes of everything that is kept by id, the cache left out. All are 0 when nothing is under way and nothing is wrong. */
  get sizes(): Readonly<Record<string, number>> {
    return {
      ...this.#refresher.sizes,
      repository: this.#repository.pending,
      coolDowns: this.#coolDowns.size,
      ahead: this.#ahead.size,
    };
  }

  /**
   * The grant, good to be used now. Synchronous, and without any I/O, when it is cached and not expired.
   *
   * @throws NotAuthorizedError if there is none; TokenStoreError, TokenError, TokenResponseError or ServiceUnavailableError
   *   if it cannot be had now
   */
  current(grantId: string): Grant | Promise<Grant> {
    const id = this.#storeId(grantId);
    const known = this.#refresher.unsaved(id) ?? this.#repository.cached(id);
    return known === undefined ? this.#load(id) : this.#freshen(id, known);
  }

  /** A grant with another access token than `refused`; the grant with the same one while none is to be had. @throws like {@link current} */
  async renew(grantId: string, refused: string): Promise<Grant> {
    const id = this.#storeId(grantId);
    const known = await this.#find(id);
    if (!known) throw gone();
    if (known.accessToken !== refused) return await this.#freshen(id, known);
    // Nothing can be got in its place, and the API may have refused it for one thing alone.
    if (known.refreshToken === undefined && this.#freshness(known) !== 'expired') return known;
    if (this.#coolDowns.remainingMs(id, this.#options.clock()) > 0) return known;
    return await this.#refresher.refresh(id, known, 'refused');
  }

  /** Tells whether the API took a token that {@link renew} gave. One that it refused at once starts a cool-down. */
  reportOutcome(grantId: string, accepted: boolean): void {
    const id = this.#storeId(grantId);
    if (accepted) this.#coolDowns.clear(id);
    else if (this.#coolDowns.remainingMs(id, this.#options.clock()) === 0)
      this.#coolDowns.lengthen(id, this.#options.clock());
  }

  /** Keeps the grant of a login, in place of a former one. @throws TokenStoreError if it could not be saved in time; it may be there a while later */
  async put(grantId: string, tokens: TokenSet): Promise<void> {
    const id = this.#storeId(grantId);
    const grant = newGrant(tokens, this.#options.clock());
    // What began while the store was still at it may have the former grant in hand; what begins afterwards has the new one.
    await this.#repository.create(id, grant, () => this.#forget(id, grant));
  }

  /** Deletes the grant. A refresh that is under way does not bring it back. @throws TokenStoreError if it could not be deleted */
  async remove(grantId: string): Promise<void> {
    const id = this.#storeId(grantId);
    this.#forget(id);
    await this.#repository.remove(id, () => this.#forget(id));
  }

  /** Resolves when all refreshes and saves that are under way have ended, or have had their time. Calls after the first one join it. */
  close(): Promise<void> {
    this.#ahead.close();
    this.#closing ??= this.#refresher.drain().then(() => this.#repository.drain());
    return this.#closing;
  }

  async #load(id: string): Promise<Grant> {
    const grant = await this.#find(id);
    if (!grant) throw gone();
    return await this.#freshen(id, grant);
  }

  async #find(id: string): Promise<Grant | undefined> {
    return this.#refresher.unsaved(id) ?? this.#repository.cached(id) ?? (await this.#repository.read(id));
  }

  #freshen(id: string, grant: Grant): Grant | Promise<Grant> {
    switch (this.#freshness(grant)) {
      case 'fresh':
        return grant;
      case 'due':
        this.#refreshAhead(id, grant);
        return grant;
      case 'expired':
        return this.#refresher.refresh(id, grant, 'expired');
    }
  }

  #refreshAhead(id: string, grant: Grant): void {
    if (grant.refreshToken === undefined || !this.#refresher.isIdle(id)) return;
    this.#ahead.request(id, () => {
      // Where its turn comes late, somebody may have waited for a refresh, or it may be long over.
      const isDue = this.#refresher.isIdle(id) && this.#freshness(grant) !== 'fresh';
      return isDue ? this.#refresher.refresh(id, grant, 'ahead') : undefined;
    });
  }

  #freshness(grant: Grant): ReturnType<typeof freshness> {
    return freshness(grant, this.#options.clock(), this.#options.window);
  }

  #forget(id: string, successor?: Grant): void {
    this.#refresher.forget(id, successor);
    this.#ahead.forget(id);
    this.#coolDowns.clear(id);
  }

  #storeId(grantId: string): string {
    return storeId(this.#options.strategyName, grantId);
  }

  #grantId(id: string): string {
    return decodeURIComponent(id.slice(id.indexOf('+') + 1));
  }
}
