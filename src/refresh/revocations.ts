import { ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { RevocableTokens, RevocationEndpoint } from '../oauth/revocation-endpoint.js';
import { pause, withTimeout } from '../waiting.js';

/** Pauses before the further tries of a revocation, in milliseconds. `Retry-After` makes one longer, up to the maximum. */
const PAUSES_MS = [250, 1_000, 4_000];
const MAX_PAUSE_MS = 30_000;

/** How long `close` waits for revocations, in milliseconds. */
const GRACE_MS = 5_000;

/** Whether the tokens of a grant shall be revoked. `ask again`: the grant may be deleted in a moment. */
type Decision = 'revoke' | 'keep' | 'ask again';

/** Called when a revocation has ended. */
type OnRevoked = (grantId: string, action: 'revoked' | 'revocation-failed') => void;

/**
 * Revokes tokens of grants that are deleted here already. Nobody waits for it: a service that is down delays no logout.
 *
 * @see RFC 7009
 */
export class Revocations {
  readonly #endpoint: RevocationEndpoint;
  readonly #onRevoked: OnRevoked;
  readonly #running = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();

  constructor(endpoint: RevocationEndpoint, onRevoked: OnRevoked) {
    this.#endpoint = endpoint;
    this.#onRevoked = onRevoked;
  }

  /**
   * Starts to revoke the tokens of a grant. Never throws.
   *
   * @param decide Called before each try until it has decided. It may throw a TokenStoreError, which counts as `ask again`.
   */
  start(grantId: string, tokens: RevocableTokens, decide: () => Promise<Decision> = async () => 'revoke'): void {
    const running: Promise<unknown> = this.#revoke(tokens, decide).then(
      (isRevoked) => isRevoked && this.#onRevoked(grantId, 'revoked'),
      () => this.#onRevoked(grantId, 'revocation-failed'),
    );
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /** Waits for the revocations that run, for some seconds. A pause before a further try ends at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    const ended = Promise.allSettled(this.#running);
    await withTimeout(ended, GRACE_MS, () => new Error('Revocations still run')).catch(() => undefined);
  }

  /** Returns whether they were revoked. */
  async #revoke(tokens: RevocableTokens, decide: () => Promise<Decision>): Promise<boolean> {
    let decision: Decision = 'ask again';
    const attempt = async () => {
      if (decision === 'ask again') decision = await decide();
      if (decision === 'revoke') await this.#endpoint.revoke(tokens);
      return decision;
    };
    for (const pauseMs of PAUSES_MS) {
      let retryAfter: number | undefined;
      try {
        const made = await attempt();
        if (made !== 'ask again') return made === 'revoke';
      } catch (error) {
        if (!(error instanceof ServiceUnavailableError || error instanceof TokenStoreError)) throw error;
        if (error instanceof ServiceUnavailableError) retryAfter = error.retryAfter;
      }
      const ms = Math.min(Math.max(pauseMs, (retryAfter ?? 0) * 1000), MAX_PAUSE_MS);
      // Once the strategy is closed, the last tries follow at once. One that waits must not keep the process alive.
      const { signal } = this.#closing;
      if (!signal.aborted) await pause(ms, { signal, unref: true }).catch(() => undefined);
    }
    return (await attempt()) === 'revoke';
  }
}
