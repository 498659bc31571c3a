import type { Credential, CredentialSource } from '../api/api-context.js';
import { cloneError, closedError, NotAuthorizedError, TokenError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { GrantManager } from './grant-manager.js';

/** How long calls get the grant or the error that the request's preparation got, instead of a new read, in milliseconds. */
const SAME_REQUEST_MS = 1_000;

/** What the preparation of a request got, and when, on the monotonic clock: its calls use it instead of a new read. */
type Prepared = { readonly at: number } & (
  | { readonly grant: Grant; readonly changes: number }
  | { readonly error: unknown }
);

/** Options of {@link GrantCredentials}. */
export interface GrantCredentialsOptions {
  /** Returns, at each use, whether the application has refused the user by now. */
  readonly isRefused?: (() => boolean) | undefined;
  /** True outside of requests: the grant may be the application's. */
  readonly mayIssue?: boolean;
}

/** Gets the credentials of one grant for one API client. */
export class GrantCredentials implements CredentialSource {
  readonly grantId: string;
  readonly #manager: GrantManager;
  readonly #isRefused: (() => boolean) | undefined;
  readonly #mayIssue: boolean;
  /** `ended` once the user logged out, `lost` while there is no grant. */
  #state: 'authorized' | 'lost' | 'ended' = 'authorized';
  /** True if the first credential was not refreshed, though it may have expired. */
  #mayBeExpired = false;
  #prepared: Prepared | undefined;
  isRefused = false;
  #last: Credential | undefined;

  constructor(manager: GrantManager, grantId: string, { isRefused, mayIssue = false }: GrantCredentialsOptions = {}) {
    this.#manager = manager;
    this.grantId = grantId;
    this.#isRefused = isRefused;
    this.#mayIssue = mayIssue;
  }

  get authorized(): boolean {
    return this.#state === 'authorized' && !this.#isRefused?.();
  }

  get organizationDomain(): string | undefined {
    return this.#state === 'ended' ? undefined : this.#last?.organizationDomain;
  }

  get enterpriseUrl(): string | undefined {
    return this.#state === 'ended' ? undefined : this.#last?.enterpriseUrl;
  }

  get scope(): readonly string[] | undefined {
    return this.#state === 'ended' ? undefined : this.#last && (this.#last.scope ?? []);
  }

  /** Returns true if these credentials come from this manager and the user has not logged out. */
  isAliveIn(manager: GrantManager): boolean {
    return this.#manager === manager && this.#state !== 'ended';
  }

  /** Marks the grant as logged out. Calls that run still get their credential, but it changes nothing here. */
  end(): void {
    this.#state = 'ended';
  }

  /** Takes the grant of a login that was just stored as the first credential. */
  take(grant: Grant): void {
    this.#mayBeExpired = false;
    this.#received(grant);
    this.#prepared = { grant, at: performance.now(), changes: this.#manager.changes };
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
      grant = mayRefresh ? this.#current() : this.#manager.stored(this.grantId);
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
    if (this.#manager.isClosed) return Promise.reject(closedError());
    if (this.#isRefused?.())
      return Promise.reject(
        new NotAuthorizedError('Passport removed the user of this request; they must log in again.'),
      );
    const prepared = this.#prepared;
    const isOfThisRequest = prepared !== undefined && performance.now() - prepared.at < SAME_REQUEST_MS;
    if (isOfThisRequest && 'error' in prepared && this.#state !== 'ended')
      return Promise.reject(cloneError(prepared.error));
    const isCurrent = isOfThisRequest && 'grant' in prepared && prepared.changes === this.#manager.changes;
    this.#prepared = undefined;
    const grant = this.#current(isCurrent ? prepared.grant : undefined);
    return grant instanceof Promise ? this.#settle(grant) : this.#received(grant);
  }

  async renew(refused: Credential, isDead?: boolean): Promise<Credential> {
    const options = { isDead, mayIssue: this.#mayIssue };
    const grant = await this.#settle(this.#manager.renew(this.grantId, refused.accessToken, options));
    return grant.accessToken === refused.accessToken ? refused : grant;
  }

  reportOutcome(renewed: Credential, accepted: boolean): void {
    this.#manager.reportOutcome(this.grantId, renewed, accepted);
  }

  #current(loaded?: Grant): Grant | Promise<Grant> {
    return this.#manager.current(this.grantId, loaded, this.#mayIssue);
  }

  async #settle(pending: Promise<Credential>): Promise<Credential> {
    try {
      return this.#received(await pending);
    } catch (error) {
      this.#failed(error);
      throw cloneError(error);
    }
  }

  async #prepareWith(pending: Promise<Grant>): Promise<void> {
    const { changes } = this.#manager;
    try {
      const grant = await pending;
      this.#received(grant);
      this.#prepared = { grant, at: performance.now(), changes };
    } catch (error) {
      this.#failed(error);
      this.#prepared = { error, at: performance.now() };
    }
  }

  #received(credential: Credential): Credential {
    if (this.#state === 'lost') this.#state = 'authorized';
    this.isRefused = false;
    this.#last = credential;
    this.#prepared = undefined;
    return credential;
  }

  #failed(error: unknown): void {
    if (error instanceof NotAuthorizedError && this.#state === 'authorized') this.#state = 'lost';
    // Of a client that the service does not know, each login would fail too.
    this.isRefused = error instanceof TokenError && error.error !== 'invalid_client';
  }
}
