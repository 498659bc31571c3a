import type { Credential, CredentialSource } from '../api/api-context.js';
import { cloneError, closedError, NotAuthorizedError, TokenError, TokenResponseError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { GrantManager } from './grant-manager.js';

/** How long calls of a request use the grant or the error of its preparation instead of a new read, in milliseconds. */
const SAME_REQUEST_MS = 1_000;

/** What came of the last try to get the grant. */
interface Outcome {
  /** The grant as it was last seen. */
  readonly last: Grant | undefined;
  readonly error?: unknown;
  /** True while there is no grant. */
  readonly isLost?: boolean;
  /** When the request was prepared, on the monotonic clock: its calls use the grant, or the error, instead of a new read. */
  readonly preparedAt?: number | undefined;
  /** The manager's count before that. */
  readonly changes?: number;
}

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
  /** True once the user has logged out. Running calls still get their credential, which changes nothing here. */
  hasEnded = false;
  #outcome: Outcome = { last: undefined };

  constructor(manager: GrantManager, grantId: string, { isRefused, mayIssue = false }: GrantCredentialsOptions = {}) {
    this.#manager = manager;
    this.grantId = grantId;
    this.#isRefused = isRefused;
    this.#mayIssue = mayIssue;
  }

  get authorized(): boolean {
    return !this.hasEnded && !this.#outcome.isLost && !this.#isRefused?.();
  }

  get isRefused(): boolean {
    const { error } = this.#outcome;
    // If the service rejects the client, each login would fail too.
    return error instanceof TokenResponseError || (error instanceof TokenError && error.error !== 'invalid_client');
  }

  get last(): Credential | undefined {
    return this.#outcome.last;
  }

  /** Marks the grant as logged out. */
  end(): void {
    this.hasEnded = true;
    this.#outcome = { last: undefined };
  }

  /** Takes the grant of a login that was just stored as the first credential. */
  take(grant: Grant): void {
    this.mayBeExpired = false;
    this.#become({ last: grant, preparedAt: performance.now(), changes: this.#manager.changes });
  }

  /**
   * Gets the first credential. Never rejects: calls of the client do. Returns `undefined` if it was cached.
   *
   * @param mayRefresh False: an expired credential is enough, until a call or {@link prepareFully} refreshes it.
   */
  prepare(mayRefresh = true): Promise<void> | undefined {
    this.mayBeExpired = !mayRefresh;
    const grant = mayRefresh ? this.#manager.current(this.grantId) : this.#manager.stored(this.grantId);
    if (grant instanceof Promise) return this.#settle(grant, true).then(ignore, ignore);
    this.#become({ last: grant });
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
    const { last, error, preparedAt, changes } = this.#outcome;
    const isOfThisRequest = preparedAt !== undefined && performance.now() - preparedAt < SAME_REQUEST_MS;
    if (isOfThisRequest && error !== undefined) return Promise.reject(cloneError(error));
    const isCurrent = isOfThisRequest && changes === this.#manager.changes;
    const grant = this.#manager.current(this.grantId, isCurrent ? last : undefined, this.#mayIssue);
    if (grant instanceof Promise) return this.#settle(grant);
    this.#become({ last: grant });
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

  async #settle(pending: Promise<Grant>, isPreparation = false): Promise<Grant> {
    const { changes } = this.#manager;
    try {
      const last = await pending;
      this.#become({ last, preparedAt: isPreparation ? performance.now() : undefined, changes });
      return last;
    } catch (error) {
      const { last, isLost } = this.#outcome;
      const preparedAt = isPreparation ? performance.now() : undefined;
      this.#become({ last, error, isLost: isLost || error instanceof NotAuthorizedError, preparedAt });
      throw cloneError(error);
    }
  }

  #become(outcome: Outcome): void {
    if (!this.hasEnded) this.#outcome = outcome;
  }
}

function ignore(): void {}
