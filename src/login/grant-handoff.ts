import { OAuthAppError } from '../errors.js';
import { type LoginEvent, loginChannel } from '../events.js';
import { isRandomGrantId } from '../grants/grant.js';
import type { GrantCredentials } from '../refresh/grant-credentials.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import { type ANONYMOUS, connectionKey } from '../request/grant-reference.js';
import type { SessionLike } from '../request/session.js';

/** Reports how a login ended, once. */
export class LoginReport {
  readonly #strategy: string;
  readonly #since = performance.now();
  #isPublished = false;

  constructor(strategy: string) {
    this.#strategy = strategy;
  }

  /** Publishes the outcome on the channel `login`, unless one was published before. */
  publish(outcome: LoginEvent['outcome'], details: Pick<LoginEvent, 'reason' | 'grantId' | 'scope'> = {}): void {
    if (this.#isPublished) return;
    this.#isPublished = true;
    const durationMs = performance.now() - this.#since;
    if (loginChannel.hasSubscribers)
      loginChannel.publish({ strategy: this.#strategy, outcome, durationMs, ...details });
  }

  /** Publishes that the login ended with an error. */
  publishError(error: unknown): void {
    this.publish('error', { reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
  }
}

/** Options of a {@link GrantHandoff}. */
export interface GrantHandoffOptions {
  /** Key of the reference in the session. */
  readonly key: string;
  readonly grantId: string;
  /** False if the application finds the grant by an id of its own: the session then holds no reference. */
  readonly idIsInSession: boolean;
  /** True for `passport.authorize`: the grant is that of a connected account. */
  readonly isConnection: boolean;
  /** The scopes that the service has granted. */
  readonly scope: readonly string[];
  readonly manager: GrantManager;
  readonly report: LoginReport;
}

/** Hands the grant of a login over to the session that will refer to it. */
export class GrantHandoff {
  readonly grantId: string;
  /** True from the moment at which a session is being written: its save decides about the login. */
  isWriting = false;
  /** The source of the request's clients: ended if the login fails later on. */
  source: GrantCredentials | undefined;
  readonly #options: GrantHandoffOptions;
  readonly #connectionKey: string;

  constructor(options: GrantHandoffOptions) {
    this.grantId = options.grantId;
    this.#options = options;
    this.#connectionKey = connectionKey(options.key);
  }

  /** Announces that a session will be written: `saved` or `failed` follows. @returns the reference that it had before */
  begin(session: SessionLike | undefined): unknown {
    this.isWriting = true;
    return session?.[this.#options.key];
  }

  /**
   * Writes the reference into a session, and whether the account is connected. Where the application finds the grant by an
   * id of its own, the session learns alone that its user has logged in with this strategy.
   *
   * @param owner Who the session of a connection belongs to.
   */
  write(session: SessionLike, owner: typeof ANONYMOUS | true = true): void {
    const { key, grantId, idIsInSession, isConnection } = this.#options;
    if (idIsInSession) session[key] = grantId;
    if (idIsInSession && isConnection) session[this.#connectionKey] = owner;
    else if (idIsInSession) delete session[this.#connectionKey];
    else if (!isConnection) session[this.#connectionKey] = false;
  }

  /** Reports that the login has succeeded, unless its end was reported before. */
  reportSuccess(): void {
    const { report, grantId, scope } = this.#options;
    report.publish('success', { grantId, scope });
  }

  /** The session refers to the grant: the login has succeeded, and the grant that the session had before can go. */
  saved(former: unknown): void {
    const { manager, grantId, idIsInSession } = this.#options;
    this.reportSuccess();
    if (!idIsInSession || former === undefined || former === grantId) return;
    if (isRandomGrantId(former)) manager.discard(former).catch(() => {});
  }

  /** No session refers to the grant: the login has failed. */
  failed(error: unknown): void {
    this.#options.report.publishError(error);
    this.source?.end();
    this.discard();
  }

  /** Puts back the reference that a session had before. */
  restore(session: SessionLike, former: unknown): void {
    const { key } = this.#options;
    if (former === undefined) delete session[key];
    else session[key] = former;
  }

  /** Removes the grant, unless its id is the application's own and leads back to it. */
  discard(): void {
    if (this.#options.idIsInSession) this.withdraw();
  }

  /** Removes the grant, whatever its id. */
  withdraw(): void {
    const { manager, grantId } = this.#options;
    manager.discard(grantId).catch(() => {});
  }
}
