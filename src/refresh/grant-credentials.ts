import type { Credential, CredentialSource } from '../api/credential.js';
import { cloneError, NotAuthorizedError, type OAuthAppError } from '../errors.js';
import type { GrantManager } from './grant-manager.js';

/** How long calls get the error that the request's preparation met, instead of a new try, in milliseconds. */
const SAME_REQUEST_MS = 1_000;

/** What is known of a grant after its last use. Replaced, never changed. */
interface State {
  readonly authorized: boolean;
  readonly last?: Credential;
  /** The error of {@link GrantCredentials.prepare}, and when it came on the monotonic clock. */
  readonly failure?: { readonly error: unknown; readonly at: number };
}

/** Gets the credentials of one grant for one API client. */
export class GrantCredentials implements CredentialSource {
  readonly grantId: string;
  readonly #manager: GrantManager;
  #state: State | 'ended' = { authorized: true };

  constructor(manager: GrantManager, grantId: string) {
    this.#manager = manager;
    this.grantId = grantId;
  }

  get authorized(): boolean {
    return this.#state !== 'ended' && this.#state.authorized;
  }

  get organizationDomain(): string | undefined {
    return this.#state === 'ended' ? undefined : this.#state.last?.organizationDomain;
  }

  /** Returns true if these credentials come from this manager and the user has not logged out. */
  isAliveIn(manager: GrantManager): boolean {
    return this.#manager === manager && this.#state !== 'ended';
  }

  /** Marks the grant as logged out. Calls that run still get their credential, but it changes nothing here. */
  end(): void {
    this.#state = 'ended';
  }

  /** Gets the first credential. Never rejects: calls of the client do. Returns `undefined` if it was cached. */
  prepare(): Promise<void> | undefined {
    const failed = (error: unknown) => this.#failed(error, { error, at: performance.now() });
    try {
      const grant = this.#manager.current(this.grantId);
      if (grant instanceof Promise) return grant.then((loaded) => void this.#received(loaded), failed);
      this.#received(grant);
    } catch (error) {
      failed(error);
    }
    return undefined;
  }

  credential(): Credential | Promise<Credential> {
    const failure = this.#state === 'ended' ? undefined : this.#state.failure;
    if (failure && performance.now() - failure.at < SAME_REQUEST_MS) return Promise.reject(cloneError(failure.error));
    const grant = this.#manager.current(this.grantId);
    return grant instanceof Promise ? this.#settle(grant) : this.#received(grant);
  }

  async renew(refused: Credential): Promise<Credential> {
    const grant = await this.#settle(this.#manager.renew(this.grantId, refused.accessToken));
    return grant.accessToken === refused.accessToken ? refused : grant;
  }

  reportOutcome(_credential: Credential, accepted: boolean): void {
    this.#manager.reportOutcome(this.grantId, accepted);
  }

  async #settle(pending: Promise<Credential>): Promise<Credential> {
    try {
      return this.#received(await pending);
    } catch (error) {
      this.#failed(error);
      throw cloneError(error);
    }
  }

  #received(credential: Credential): Credential {
    if (this.#state !== 'ended') this.#state = { authorized: true, last: credential };
    return credential;
  }

  #failed(error: unknown, failure?: State['failure']): void {
    if (this.#state === 'ended') return;
    const authorized = error instanceof NotAuthorizedError ? false : this.#state.authorized;
    this.#state = { ...this.#state, authorized, ...(failure ? { failure } : {}) };
  }
}

/** The source of a request without a grant. */
export class NoGrantSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = false;
  readonly organizationDomain = undefined;

  credential(): Promise<Credential> {
    return Promise.reject(
      new NotAuthorizedError('No user has authorized this application for this request: the user has to log in first.'),
    );
  }

  renew(refused: Credential): Promise<Credential> {
    return Promise.resolve(refused);
  }

  reportOutcome(): void {}
}

/** The source of a client that cannot work: each call rejects with the error. Counts as authorized, as nothing else is known. */
export class FailedSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = true;
  readonly organizationDomain = undefined;
  readonly #error: OAuthAppError;

  constructor(error: OAuthAppError) {
    this.#error = error;
  }

  credential(): Promise<Credential> {
    return Promise.reject(cloneError(this.#error));
  }

  renew(): Promise<Credential> {
    return this.credential();
  }

  reportOutcome(): void {}
}

/** The source during a login: tokens that are not stored yet and cannot be refreshed. */
export class FixedSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = true;
  readonly organizationDomain: string | undefined;
  readonly #credential: Credential;

  constructor(credential: Credential) {
    this.#credential = credential;
    this.organizationDomain = credential.organizationDomain;
  }

  credential(): Credential {
    return this.#credential;
  }

  renew(refused: Credential): Promise<Credential> {
    return Promise.resolve(refused);
  }

  reportOutcome(): void {}
}
