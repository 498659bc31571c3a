import { OAuthAppError, publicName } from '../errors.js';
import { type LoginEvent, loginChannel } from '../events.js';

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
      loginChannel.publish({ ...publicName(this.#strategy), outcome, durationMs, ...details });
  }

  /** Publishes that the login ended with an error. */
  publishError(error: unknown): void {
    this.publish('error', { reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
  }
}
