import type { Credential, CredentialSource } from '../api/api-context.js';
import { cloneError, NotAuthorizedError, TokenError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { GrantManager } from './grant-manager.js';

/** How long calls get the grant or the error that the request's preparation got, instead of a new read, in milliseconds. */
const SAME_REQUEST_MS = 1_000;

/** Gets the credentials of one grant for one API client. */
export class GrantCredentials implements CredentialSource {
  readonly grantId: string;
  readonly #manager: GrantManager;
  readonly #isRefused: (() => boolean) | undefined;
  #hasEnded = false;
  /** True if the first credential was not refreshed, though it may have expired. */
  #mayBeExpired = false;
  #isAuthorized = true;
  isRefused = false;
  #last: Credential | undefined;
  /** The error of {@link prepare}, and when it came on the monotonic clock. */
  #failure: { readonly error: unknown; readonly at: number } | undefined;
  /** The grant that {@link prepare} has loaded, when, and after how many changes. The first call uses it, so that a request reads the store once, also without a cache. */
  #loaded: { readonly grant: Grant; readonly at: number; readonly changes: number } | undefined;

  /** @param isRefused Tells, at each use, whether the application has refused the user meanwhile. */
  constructor(manager: GrantManager, grantId: string, isRefused?: () => boolean) {
    this.#manager = manager;
    this.grantId = grantId;
    this.#isRefused = isRefused;
  }

  get authorized(): boolean {
    return this.#isAuthorized && !this.#hasEnded && !this.#isRefused?.();
  }

  get organizationDomain(): string | undefined {
    return this.#hasEnded ? undefined : this.#last?.organizationDomain;
  }

  get scope(): readonly string[] | undefined {
    return this.#hasEnded ? undefined : this.#last && (this.#last.scope ?? []);
  }

  /** Returns true if these credentials come from this manager and the user has not logged out. */
  isAliveIn(manager: GrantManager): boolean {
    return this.#manager === manager && !this.#hasEnded;
  }

  /** Marks the grant as logged out. Calls that run still get their credential, but it changes nothing here. */
  end(): void {
    this.#hasEnded = true;
  }

  /** Takes the grant of a login that was just stored as the first credential. */
  take(grant: Grant): void {
    this.#mayBeExpired = false;
    this.#received(grant);
    this.#loaded = { grant, at: performance.now(), changes: this.#manager.changes };
  }

  /**
   * Gets the first credential. Never rejects: calls of the client do. Returns `undefined` if it was cached.
   *
   * @param mayRefresh False: an expired credential will do, and none is refreshed before a call or {@link prepareFully}.
   */
  prepare(mayRefresh = true): Promise<void> | undefined {
    this.#mayBeExpired = !mayRefresh;
    let grant: Grant | Promise<Grant>;
    try {
      grant = mayRefresh ? this.#manager.current(this.grantId) : this.#manager.stored(this.grantId);
    } catch (error) {
      grant = Promise.reject(error);
    }
    if (grant instanceof Promise) return this.#prepareWith(grant);
    this.#received(grant);
    return undefined;
  }

  prepareFully(): Promise<void> | undefined {
    return this.#mayBeExpired && this.authorized ? this.prepare() : undefined;
  }

  credential(): Credential | Promise<Credential> {
    if (this.#isRefused?.())
      return Promise.reject(
        new NotAuthorizedError('Passport has removed the user of this request: the user has to log in again.'),
      );
    const failure = this.#failure;
    if (failure && !this.#hasEnded && performance.now() - failure.at < SAME_REQUEST_MS)
      return Promise.reject(cloneError(failure.error));
    const loaded = this.#loaded;
    this.#loaded = undefined;
    const isCurrent = loaded !== undefined && loaded.changes === this.#manager.changes;
    const isOfThisRequest = isCurrent && performance.now() - loaded.at < SAME_REQUEST_MS;
    const grant = this.#manager.current(this.grantId, isOfThisRequest ? loaded.grant : undefined);
    return grant instanceof Promise ? this.#settle(grant) : this.#received(grant);
  }

  async renew(refused: Credential, isDead?: boolean): Promise<Credential> {
    const grant = await this.#settle(this.#manager.renew(this.grantId, refused.accessToken, isDead));
    return grant.accessToken === refused.accessToken ? refused : grant;
  }

  reportOutcome(renewed: Credential, accepted: boolean): void {
    this.#manager.reportOutcome(this.grantId, renewed, accepted);
  }

  async #settle(pending: Promise<Credential>): Promise<Credential> {
    try {
      return this.#received(await pending);
    } catch (error) {
      this.#note(error);
      throw cloneError(error);
    }
  }

  async #prepareWith(pending: Promise<Grant>): Promise<void> {
    const { changes } = this.#manager;
    try {
      const grant = await pending;
      this.#received(grant);
      this.#loaded = { grant, at: performance.now(), changes };
    } catch (error) {
      this.#note(error);
      this.#failure = { error, at: performance.now() };
    }
  }

  #note(error: unknown): void {
    if (error instanceof NotAuthorizedError) this.#isAuthorized = false;
    // Of a client that the service does not know, each login would fail too.
    this.isRefused = error instanceof TokenError && error.error !== 'invalid_client';
  }

  #received(credential: Credential): Credential {
    this.#isAuthorized = true;
    this.isRefused = false;
    this.#last = credential;
    this.#failure = undefined;
    return credential;
  }
}
