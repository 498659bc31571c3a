import { setMaxListeners } from 'node:events';
import { ServiceUnavailableError, TokenStoreError } from '../errors.js';
import type { Grant } from '../grants/grant.js';
import type { Revoking, WhetherToRevoke } from '../refresh/grant-manager.js';
import { KeyedQueue, pause, withTimeout } from '../waiting.js';
import { RevocationEndpoint, type RevocationEndpointOptions } from './revocation-endpoint.js';

/** How many revocations run at once: logins and refreshes need the endpoint more. */
const REVOCATIONS_AT_ONCE = 8;

/** Maximum number of pending revocations. Further ones fail. */
const MAX_REVOCATIONS = 10_000;

/** Pauses before the further tries of a revocation, in milliseconds. `Retry-After` makes one longer, up to the maximum. */
const RETRY_PAUSES_MS = [250, 1_000, 4_000];
const MAX_PAUSE_MS = 30_000;

/** How often revocations check, in milliseconds, whether token requests still wait for a slot. */
const BUSY_MS = 100;

/** How long `close` waits for revocations, in milliseconds. */
const GRACE_MS = 5_000;

type Report = 'revoked' | 'revocation-failed';

/** Options of {@link Revocations}. */
export interface RevocationsOptions {
  readonly endpoint: RevocationEndpointOptions;
  /** Returns true while token requests wait for a slot: they go first. */
  readonly isBusy: () => boolean;
  /** Called when a revocation is done. */
  readonly onRevoked: (grantId: string, action: Report) => void;
}

/** A revocation that runs, waits or pauses. */
interface Revocation {
  readonly grantId: string;
  done: Promise<void> | undefined;
}

/**
 * Revokes tokens of grants that are deleted here already. No request waits for it: a service that is down delays no logout.
 *
 * @see RFC 7009
 */
export class Revocations implements Revoking {
  readonly #options: RevocationsOptions;
  readonly #endpoint: RevocationEndpoint;
  readonly #pending = new Set<Revocation>();
  readonly #lanes = new KeyedQueue();
  #lane = 0;
  readonly #closing = new AbortController();

  constructor(options: RevocationsOptions) {
    this.#options = options;
    this.#endpoint = new RevocationEndpoint(options.endpoint);
    // Each revocation that pauses listens to it.
    setMaxListeners(0, this.#closing.signal);
  }

  start(grantId: string, grant: Grant, decide?: () => Promise<WhetherToRevoke>): void {
    const revocation: Revocation = { grantId, done: undefined };
    const isFull = this.#pending.size >= MAX_REVOCATIONS;
    this.#pending.add(revocation);
    if (isFull) this.#end(revocation, 'revocation-failed');
    else revocation.done = this.#revoke(grant, decide).then((action) => this.#end(revocation, action));
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const done = Promise.all([...this.#pending].map((revocation) => revocation.done));
    await withTimeout(done, GRACE_MS, () => new Error('Revocations still run')).catch(() => undefined);
    for (const revocation of this.#pending) this.#end(revocation, 'revocation-failed');
  }

  /** Returns what to report, if anything. Never rejects. */
  async #revoke(grant: Grant, decide?: () => Promise<WhetherToRevoke>): Promise<Report | undefined> {
    let decision: WhetherToRevoke = decide ? 'ask again' : 'revoke';
    for (let tries = 0; ; tries++) {
      let failure: Report | undefined;
      let pauseMs = RETRY_PAUSES_MS[tries];
      try {
        this.#lane = (this.#lane + 1) % REVOCATIONS_AT_ONCE;
        await this.#lanes.run(`${this.#lane}`, async () => {
          while (!this.#closing.signal.aborted && this.#options.isBusy()) await this.#pause(BUSY_MS);
          if (decide && decision === 'ask again') decision = await decide();
          if (decision === 'revoke') await this.#endpoint.revoke(grant);
        });
        if (decision !== 'ask again') return decision === 'revoke' ? 'revoked' : undefined;
      } catch (error) {
        failure = 'revocation-failed';
        const isOutage = error instanceof ServiceUnavailableError;
        if (!isOutage && !(error instanceof TokenStoreError)) return failure;
        const askedMs = isOutage ? (error.retryAfter ?? 0) * 1000 : 0;
        if (pauseMs !== undefined) pauseMs = Math.min(Math.max(pauseMs, askedMs), MAX_PAUSE_MS);
      }
      if (pauseMs === undefined) return failure;
      await this.#pause(pauseMs);
    }
  }

  /** Ends at once when the strategy is closed. */
  async #pause(ms: number): Promise<void> {
    await pause(ms, { signal: this.#closing.signal, unref: true }).catch(() => undefined);
  }

  #end(revocation: Revocation, action: Report | undefined): void {
    if (this.#pending.delete(revocation) && action) this.#options.onRevoked(revocation.grantId, action);
  }
}
