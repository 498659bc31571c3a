import type { Grant } from '../grants/grant.js';

/** When a token is refreshed, in milliseconds before it expires. */
export interface RefreshWindow {
  /** Within it a request waits for the refresh. */
  readonly leewayMs: number;
  /** Within it a refresh starts in the background. */
  readonly aheadMs: number;
}

/** `fresh`: nothing to do. `due`: good, but a refresh should start. `expired`: not to be used before a refresh. */
export type Freshness = 'fresh' | 'due' | 'expired';

/** Tokens that live shorter than this get a window that is shorter in proportion. */
const FULL_WINDOW_LIFETIME_MS = 20 * 60 * 1000;

/** A token that a refresh has just given is left alone for this part of its life, whatever `ahead` says: no refresh loop. */
const REST = 0.1;

/** Most of a token's life that `leeway` may take: a request that waited for a refresh can use what it gave. */
const MAX_LEEWAY = 0.5;

/** How fresh a grant's access token is. @param now Epoch milliseconds. */
export function freshness(grant: Grant, now: number, { leewayMs, aheadMs }: RefreshWindow): Freshness {
  const { lifetimeMs, expiresAt, refreshes } = grant;
  const share = Math.min(1, lifetimeMs / FULL_WINDOW_LIFETIME_MS);
  const left = expiresAt - now;
  if (left <= Math.min(leewayMs * share, lifetimeMs * MAX_LEEWAY)) return 'expired';
  const isResting = refreshes > 0 && left > lifetimeMs * (1 - REST);
  return left <= aheadMs * share && !isResting ? 'due' : 'fresh';
}
