import { OAuthAppError } from '../errors.js';
import { type LoginEvent, publishLogin } from '../events.js';

/** Tells how a login ended: once, whatever comes afterwards. */
export class LoginReport {
  /** Whether the session is being written. */
  awaitsSession = false;
  readonly #strategy: string;
  readonly #since = performance.now();
  #isTold = false;

  constructor(strategy: string) {
    this.#strategy = strategy;
  }

  tell({ outcome, reason, grantId }: Pick<LoginEvent, 'outcome' | 'reason'> & { grantId?: string | undefined }): void {
    if (this.#isTold) return;
    this.#isTold = true;
    publishLogin({
      strategy: this.#strategy,
      outcome,
      durationMs: performance.now() - this.#since,
      ...(reason === undefined ? {} : { reason }),
      ...(grantId === undefined ? {} : { grantId }),
    });
  }

  failed(error: unknown): void {
    this.tell({ outcome: 'error', reason: error instanceof OAuthAppError ? error.code : 'ERR_APPLICATION' });
  }
}
