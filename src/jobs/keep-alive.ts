import { number, readOptions, withDefault } from '../checks.js';
import { isUnusable } from '../grants/grant.js';
import { TEN_YEARS_S } from '../oauth/token-response.js';
import type { KeepAliveResult } from '../options.js';
import type { GrantManager } from '../refresh/grant-manager.js';
import type { Refresher } from '../refresh/refresher.js';
import { abortable, pause } from '../waiting.js';
import { abortSignal, allGrants } from './grant-list.js';

/** Maximum number of concurrent refreshes. */
const MAX_RUNNING = 32;

/** Maximum number of waits before a refresh: the clock may be behind the timer, or stand still in a test. */
const MAX_WAITS = 3;

/** The checked options. */
export interface KeepAliveSettings {
  /** Seconds. */
  readonly olderThan: number;
  readonly rate: number;
  readonly signal: AbortSignal | undefined;
}

/** Reads the options. @throws ConfigurationError that names the wrong one */
export function readKeepAliveOptions(options: unknown): KeepAliveSettings {
  return readOptions<KeepAliveSettings>('keepAlive', options, {
    olderThan: number(0, TEN_YEARS_S, 'seconds'),
    rate: withDefault(10, number(0.01, 1000, 'refreshes a second')),
    signal: abortSignal,
  });
}

/**
 * Refreshes the grants whose tokens are older than `olderThan`, evenly spaced. The lock of each grant, and the read under it, keep
 * several processes from refreshing one twice. It waits while the token endpoint is down or asks for a pause. Ended grants, and
 * grants without a refresh token, are skipped.
 *
 * @throws the signal's reason, and whatever the iteration throws; ServiceUnavailableError once the strategy is closed
 */
export async function keepAlive(
  grants: Pick<GrantManager, 'access' | 'clock' | 'endpoint' | 'repository'> & {
    readonly refresher: Pick<Refresher, 'keepAlive' | 'closed'>;
  },
  { olderThan, rate, signal: given }: KeepAliveSettings,
): Promise<KeepAliveResult> {
  const { clock, endpoint, refresher } = grants;
  const signal = given ? AbortSignal.any([refresher.closed, given]) : refresher.closed;
  const counts = { seen: 0, refreshed: 0, ended: 0, failed: 0 };
  const running = new Set<Promise<void>>();
  const startedAt = clock();
  // On the monotonic clock.
  let nextAt = 0;
  for await (const [id, grant] of allGrants(grants, signal)) {
    signal.throwIfAborted();
    if ('ended' in grant || isUnusable(grant, clock())) continue;
    counts.seen += 1;
    // The time at which the tokens were issued: records of all versions have it.
    const issuedAt = grant.expiresAt - grant.lifetimeMs;
    // Another process that keeps the grants alive may be far ahead.
    const isNew = clock() - issuedAt < olderThan * 1000 || issuedAt > startedAt;
    if (grant.refreshToken === undefined || isNew) continue;
    for (let waits = 0; waits < MAX_WAITS; waits += 1) {
      const waitMs = Math.max(nextAt - performance.now(), endpoint.pauses.beforeRequestMs());
      if (waitMs > 0) await pause(waitMs, { signal });
    }
    if (running.size >= MAX_RUNNING) await abortable(Promise.race(running), signal);
    const refresh = refresher.keepAlive(id, grant).then((outcome) => {
      if (outcome) counts[outcome] += 1;
      running.delete(refresh);
    });
    running.add(refresh);
    nextAt = performance.now() + 1000 / rate;
  }
  await abortable(Promise.all(running), signal);
  return counts;
}
