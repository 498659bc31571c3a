import { ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { RevocableTokens, RevocationEndpoint } from '../oauth/revocation-endpoint.js';
import { withTimeout } from '../waiting.js';

/** How many revocations run at once: logins and refreshes need the endpoint more. */
const REVOCATIONS_AT_ONCE = 8;

/** Largest number of revocations that are still to be made. Beyond it further ones fail. */
const MAX_REVOCATIONS = 10_000;

/** Pauses before the further tries of a revocation, in milliseconds. `Retry-After` makes one longer, up to the maximum. */
const RETRY_PAUSES_MS = [250, 1_000, 4_000];
const MAX_PAUSE_MS = 30_000;

/** How long revocations wait for the requests that pages and refreshes wait for, in milliseconds, before they look again. */
const BUSY_MS = 100;

/** How long `close` waits for revocations, in milliseconds. */
const GRACE_MS = 5_000;

/** Whether the tokens of a grant shall be revoked. `ask again`: the grant may be deleted in a moment. */
type Decision = 'revoke' | 'keep' | 'ask again';

/** Tokens to revoke. */
interface Revocation {
  readonly grantId: string;
  readonly tokens: RevocableTokens;
  readonly decide: () => Promise<Decision>;
  decision: Decision;
  failures: number;
  /** Runs out before the next try. */
  pause: NodeJS.Timeout | undefined;
}

/** Options of {@link Revocations}. */
export interface RevocationsOptions {
  readonly endpoint: RevocationEndpoint;
  /** Returns true while token requests wait for a slot: they go first. */
  readonly isBusy: () => boolean;
  /** Called when a revocation is done. */
  readonly onRevoked: (grantId: string, action: 'revoked' | 'revocation-failed') => void;
}

/**
 * Revokes tokens of grants that are deleted here already. No request waits for it: a service that is down delays no logout.
 *
 * @see RFC 7009
 */
export class Revocations {
  readonly #options: RevocationsOptions;
  /** Those that run, wait or pause. */
  readonly #pending = new Set<Revocation>();
  readonly #waiting = new Set<Revocation>();
  #running = 0;
  #busy: NodeJS.Timeout | undefined;
  /** Called when the last one is done, once the strategy is closed. */
  #onEmpty: (() => void) | undefined;

  constructor(options: RevocationsOptions) {
    this.#options = options;
  }

  /**
   * Starts to revoke the tokens of a grant. Never throws.
   *
   * @param decide Called before each try until it has decided. It may throw a TokenStoreError, which counts as `ask again`.
   */
  start(grantId: string, tokens: RevocableTokens, decide: () => Promise<Decision> = async () => 'revoke'): void {
    if (this.#pending.size >= MAX_REVOCATIONS) {
      this.#options.onRevoked(grantId, 'revocation-failed');
      return;
    }
    const revocation: Revocation = { grantId, tokens, decide, decision: 'ask again', failures: 0, pause: undefined };
    this.#pending.add(revocation);
    this.#enqueue(revocation);
  }

  /** Waits for the revocations for some seconds, without pauses between their tries. Those that are left then fail. */
  async close(): Promise<void> {
    const emptied = new Promise<void>((resolve) => {
      this.#onEmpty = resolve;
    });
    for (const revocation of this.#pending) if (revocation.pause) this.#enqueue(revocation);
    this.#next();
    if (this.#pending.size > 0)
      await withTimeout(emptied, GRACE_MS, () => new Error('Revocations still run')).catch(() => undefined);
    for (const revocation of this.#pending) this.#end(revocation, 'revocation-failed');
  }

  #enqueue(revocation: Revocation): void {
    clearTimeout(revocation.pause);
    revocation.pause = undefined;
    this.#waiting.add(revocation);
    this.#next();
  }

  #next(): void {
    clearTimeout(this.#busy);
    for (const revocation of this.#waiting) {
      if (this.#running >= REVOCATIONS_AT_ONCE) return;
      if (!this.#onEmpty && this.#options.isBusy()) {
        this.#busy = setTimeout(() => this.#next(), BUSY_MS).unref();
        return;
      }
      this.#waiting.delete(revocation);
      this.#running += 1;
      void this.#try(revocation).finally(() => {
        this.#running -= 1;
        this.#next();
      });
    }
  }

  async #try(revocation: Revocation): Promise<void> {
    try {
      if (revocation.decision === 'ask again') revocation.decision = await revocation.decide();
      if (revocation.decision === 'revoke') await this.#options.endpoint.revoke(revocation.tokens);
      if (revocation.decision === 'ask again') this.#retry(revocation, undefined);
      else this.#end(revocation, revocation.decision === 'revoke' ? 'revoked' : undefined);
    } catch (error) {
      if (error instanceof ServiceUnavailableError) this.#retry(revocation, 'revocation-failed', error.retryAfter);
      else if (error instanceof TokenStoreError) this.#retry(revocation, 'revocation-failed');
      else this.#end(revocation, 'revocation-failed');
    }
  }

  /** @param outcome What becomes of it if this was the last try. */
  #retry(revocation: Revocation, outcome: 'revocation-failed' | undefined, retryAfter = 0): void {
    const pauseMs = RETRY_PAUSES_MS[revocation.failures];
    revocation.failures += 1;
    if (pauseMs === undefined) {
      this.#end(revocation, outcome);
      return;
    }
    const ms = this.#onEmpty ? 0 : Math.min(Math.max(pauseMs, retryAfter * 1000), MAX_PAUSE_MS);
    revocation.pause = setTimeout(() => this.#enqueue(revocation), ms).unref();
  }

  #end(revocation: Revocation, action: 'revoked' | 'revocation-failed' | undefined): void {
    clearTimeout(revocation.pause);
    this.#waiting.delete(revocation);
    if (!this.#pending.delete(revocation)) return;
    if (action) this.#options.onRevoked(revocation.grantId, action);
    if (this.#pending.size === 0) this.#onEmpty?.();
  }
}
