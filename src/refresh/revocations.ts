import { ServiceUnavailableError } from '../errors.js';
import type { RevocableTokens, RevocationEndpoint } from '../oauth/revocation-endpoint.js';

/** Pauses before the further tries of a revocation, in milliseconds. `Retry-After` makes one longer, up to the maximum. */
const PAUSES_MS = [250, 1_000, 4_000];
const MAX_PAUSE_MS = 30_000;

/** How long `close` waits for revocations, in milliseconds. */
const GRACE_MS = 5_000;

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
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  constructor(endpoint: RevocationEndpoint, onRevoked: OnRevoked) {
    this.#endpoint = endpoint;
    this.#onRevoked = onRevoked;
  }

  /** Starts to revoke the tokens of a grant. Never throws. */
  start(grantId: string, tokens: RevocableTokens): void {
    const running = this.#revoke(tokens).then(
      () => this.#onRevoked(grantId, 'revoked'),
      () => this.#onRevoked(grantId, 'revocation-failed'),
    );
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  /** Waits for the revocations that run, for some seconds. A pause before a further try ends at once. */
  async close(): Promise<void> {
    this.#closing.abort();
    const { setTimeout: pause } = await import('node:timers/promises');
    const grace = new AbortController();
    const expired = pause(GRACE_MS, undefined, { signal: grace.signal }).catch(() => undefined);
    await Promise.race([Promise.allSettled(this.#running), expired]);
    grace.abort();
  }

  async #revoke(tokens: RevocableTokens): Promise<void> {
    for (const pauseMs of PAUSES_MS) {
      try {
        return await this.#endpoint.revoke(tokens);
      } catch (error) {
        if (!(error instanceof ServiceUnavailableError)) throw error;
        await this.#pause(Math.min(Math.max(pauseMs, (error.retryAfter ?? 0) * 1000), MAX_PAUSE_MS));
      }
    }
    return await this.#endpoint.revoke(tokens);
  }

  /** Waits before a further try. Not once the strategy is closed: the last tries follow at once. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closing;
    if (signal.aborted) return;
    const { setTimeout: pause } = await import('node:timers/promises');
    // A revocation that waits must not keep the process alive.
    await pause(ms, undefined, { signal, ref: false }).catch(() => undefined);
  }
}
