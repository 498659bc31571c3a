import type { Credential, CredentialSource } from '../api/api-context.js';
import { cloneError, closedError, NotAuthorizedError, TokenError, TokenResponseError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { GrantManager } from './grant-manager.js';

/** How long calls of a request use the grant or the error of its preparation instead of a new read, in milliseconds. */
const SAME_REQUEST_MS = 1_000;

/** What is known of a grant, with the credential that was last seen. */
type KnownGrant =
  | { readonly name: 'received'; readonly last: Credential | undefined }
  /** Received while the request was prepared, at a time on the monotonic clock: its calls use it instead of a new read. */
  | { readonly name: 'prepared'; readonly last: Grant; readonly at: number; readonly changes: number }
  /** `isLost` while there is no grant; `at` if the preparation failed: calls of the request get its error. */
  | {
      readonly name: 'failed';
      readonly last: Credential | undefined;
      readonly error: unknown;
      readonly isLost: boolean;
      readonly at: number | undefined;
    }
  /** The user logged out. */
  | { readonly name: 'ended'; readonly last: undefined };

/** Options of {@link GrantCredentials}. */
export interface GrantCredentialsOptions {
  /** Returns whether the application has refused the user. Called at each use. */
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
  mayBeExpired = false;
  #state: KnownGrant = { name: 'received', last: undefined };

  constructor(manager: GrantManager, grantId: string, { isRefused, mayIssue = false }: GrantCredentialsOptions = {}) {
    this.#manager = manager;
    this.grantId = grantId;
    this.#isRefused = isRefused;
    this.#mayIssue = mayIssue;
  }

  get authorized(): boolean {
    const state = this.#state;
    return state.name !== 'ended' && !(state.name === 'failed' && state.isLost) && !this.#isRefused?.();
  }

  get isRefused(): boolean {
    const error = 'error' in this.#state ? this.#state.error : undefined;
    // If the service rejects the client, each login would fail too.
    return error instanceof TokenResponseError || (error instanceof TokenError && error.error !== 'invalid_client');
  }

  get last(): Credential | undefined {
    return this.#state.last;
  }

  /** True once the user has logged out. */
  get hasEnded(): boolean {
    return this.#state.name === 'ended';
  }

  /** Marks the grant as logged out. Running calls still get their credential, which changes nothing here. */
  end(): void {
    this.#state = { name: 'ended', last: undefined };
  }

  /** Takes the grant of a login that was just stored as the first credential. */
  take(grant: Grant): void {
    this.mayBeExpired = false;
    this.#become({ name: 'prepared', last: grant, at: performance.now(), changes: this.#manager.changes });
  }

  /**
   * Gets the first credential. Never rejects: calls of the client do. Returns `undefined` if it was cached.
   *
   * @param mayRefresh False: an expired credential is enough, until a call or {@link prepareFully} refreshes it.
   */
  prepare(mayRefresh = true): Promise<void> | undefined {
    this.mayBeExpired = !mayRefresh;
    const grant = mayRefresh ? this.#manager.current(this.grantId) : this.#manager.stored(this.grantId);
    if (grant instanceof Promise) return this.#prepareWith(grant);
    this.#become({ name: 'received', last: grant });
    return undefined;
  }

  prepareFully(): Promise<void> | undefined {
    return this.authorized ? this.prepare() : undefined;
  }

  credential(): Credential | Promise<Credential> {
    if (this.#manager.isClosed) return Promise.reject(closedError());
    if (this.#isRefused?.())
      return Promise.reject(
        new NotAuthorizedError('Passport removed the user of this request; they must log in again.'),
      );
    const state = this.#state;
    const isOfThisRequest = 'at' in state && state.at !== undefined && performance.now() - state.at < SAME_REQUEST_MS;
    if (isOfThisRequest && state.name === 'failed') return Promise.reject(cloneError(state.error));
    const isCurrent = isOfThisRequest && state.name === 'prepared' && state.changes === this.#manager.changes;
    const grant = this.#manager.current(this.grantId, isCurrent ? state.last : undefined, this.#mayIssue);
    if (grant instanceof Promise) return this.#settle(grant);
    this.#become({ name: 'received', last: grant });
    return grant;
  }

  async renew(refused: Credential, isDead?: boolean): Promise<Credential> {
    const options = { isDead, mayIssue: this.#mayIssue };
    const grant = await this.#settle(this.#manager.renew(this.grantId, refused.accessToken, options));
    return grant.accessToken === refused.accessToken ? refused : grant;
  }

  reportOutcome(renewed: Credential, accepted: boolean): void {
    this.#manager.reportOutcome(this.grantId, renewed, accepted);
  }

  async #settle(pending: Promise<Credential>): Promise<Credential> {
    try {
      const last = await pending;
      this.#become({ name: 'received', last });
      return last;
    } catch (error) {
      this.#failed(error);
      throw cloneError(error);
    }
  }

  async #prepareWith(pending: Promise<Grant>): Promise<void> {
    const { changes } = this.#manager;
    try {
      this.#become({ name: 'prepared', last: await pending, at: performance.now(), changes });
    } catch (error) {
      this.#failed(error, performance.now());
    }
  }

  #failed(error: unknown, at?: number): void {
    const { last } = this;
    const isLost = error instanceof NotAuthorizedError || (this.#state.name === 'failed' && this.#state.isLost);
    this.#become({ name: 'failed', last, error, isLost, at });
  }

  /** A logout is final: running calls change nothing. */
  #become(state: KnownGrant): void {
    if (this.#state.name !== 'ended') this.#state = state;
  }
}
