import type { Credential, CredentialSource } from '../api/credential.js';
import { cloneError, NotAuthorizedError, type OAuthAppError } from '../errors.js';
import type { GrantManager } from './grant-manager.js';

/** For how long a failure that a request has met at its start is not tried again by its calls, in milliseconds. */
const SAME_MOMENT_MS = 1_000;

/** What {@link GrantCredentials.prepare} has met. */
interface Failure {
  readonly error: unknown;
  /** On the clock of `performance`, which nobody sets. */
  readonly at: number;
}

/** The credentials of one kept grant, for one API client. */
export class GrantCredentials implements CredentialSource {
  readonly grantId: string;
  readonly #manager: GrantManager;
  #authorized = true;
  #isEnded = false;
  #last: Credential | undefined;
  #failure: Failure | undefined;

  constructor(manager: GrantManager, grantId: string) {
    this.#manager = manager;
    this.grantId = grantId;
  }

  get authorized(): boolean {
    return this.#authorized;
  }

  get organizationDomain(): string | undefined {
    return this.#last?.organizationDomain;
  }

  /** Whether a client of a grant with this manager may go on with it. */
  isAliveIn(manager: GrantManager): boolean {
    return this.#manager === manager && !this.#isEnded;
  }

  /** Tells that the user has logged out: the grant is being deleted. */
  end(): void {
    this.#isEnded = true;
    this.#authorized = false;
    this.#last = undefined;
  }

  /** Gets the first credential. Never rejects: calls do. @returns `undefined` if it was at hand. */
  prepare(): Promise<void> | undefined {
    try {
      const credential = this.#manager.current(this.grantId);
      if (!(credential instanceof Promise)) {
        this.#given(credential);
        return undefined;
      }
      return credential.then(
        (given) => void this.#given(given),
        (error: unknown) => this.#notPrepared(error),
      );
    } catch (error) {
      this.#notPrepared(error);
      return undefined;
    }
  }

  credential(): Credential | Promise<Credential> {
    if (this.#failure !== undefined && this.#isNow(this.#failure))
      return Promise.reject(cloneError(this.#failure.error));
    const credential = this.#manager.current(this.grantId);
    return credential instanceof Promise ? this.#settle(credential) : this.#given(credential);
  }

  async renew(refused: Credential): Promise<Credential> {
    const credential = await this.#settle(this.#manager.renew(this.grantId, refused.accessToken));
    return credential.accessToken === refused.accessToken ? refused : credential;
  }

  reportOutcome(_credential: Credential, accepted: boolean): void {
    this.#manager.reportOutcome(this.grantId, accepted);
  }

  async #settle(pending: Promise<Credential>): Promise<Credential> {
    try {
      return this.#given(await pending);
    } catch (error) {
      this.#failed(error);
      throw cloneError(error);
    }
  }

  #given<T extends Credential>(credential: T): T {
    // What was asked for before a logout is still given, but changes nothing.
    if (this.#isEnded) return credential;
    this.#last = credential;
    this.#failure = undefined;
    this.#authorized = true;
    return credential;
  }

  #isNow({ at }: Failure): boolean {
    return performance.now() - at < SAME_MOMENT_MS;
  }

  #notPrepared(error: unknown): void {
    this.#failure = { error, at: performance.now() };
    this.#failed(error);
  }

  #failed(error: unknown): void {
    if (error instanceof NotAuthorizedError) this.#authorized = false;
  }
}

/** The source of a request without a grant. */
export class NoGrantSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = false;
  readonly organizationDomain = undefined;

  credential(): Promise<Credential> {
    return Promise.reject(
      new NotAuthorizedError(
        'Nobody has authorized this application on behalf of this request: the user has to log in first.',
      ),
    );
  }

  renew(refused: Credential): Promise<Credential> {
    return Promise.resolve(refused);
  }

  reportOutcome(): void {}
}

/** The source of a client that cannot work, for a reason that each call tells. Not known to be unauthorized. */
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

/** The source of a login that is not finished: tokens that are kept nowhere yet and cannot be refreshed. */
export class FixedSource implements CredentialSource {
  readonly grantId = undefined;
  readonly authorized = true;
  readonly #credential: Credential;

  constructor(credential: Credential) {
    this.#credential = credential;
  }

  get organizationDomain(): string | undefined {
    return this.#credential.organizationDomain;
  }

  credential(): Credential {
    return this.#credential;
  }

  renew(refused: Credential): Promise<Credential> {
    return Promise.resolve(refused);
  }

  reportOutcome(): void {}
}
