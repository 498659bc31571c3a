import type { Grant } from './grant.js';

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

/** How much earlier than `ahead` the refresh of a grant may start, so that grants of one moment do not refresh in one moment. */
const SPREAD = 0.2;

/** A token that a refresh has just given is left alone for this part of its life, whatever `ahead` says: no refresh loop. */
const REST = 0.1;

/** Most of a token's life that `leeway` may take: a request that waited for a refresh can use what it gave. */
const MOST_LEEWAY = 0.5;

/**
 * How fresh a grant's access token is.
 *
 * @param now Epoch milliseconds.
 * @param id The grant's id, which decides where in the spread of the grants this one stands.
 */
export function freshness(grant: Grant, now: number, { leewayMs, aheadMs }: RefreshWindow, id: string): Freshness {
  const share = Math.min(1, grant.lifetimeMs / FULL_WINDOW_LIFETIME_MS);
  const left = grant.expiresAt - now;
  if (left <= Math.min(leewayMs * share, grant.lifetimeMs * MOST_LEEWAY)) return 'expired';
  const ahead = aheadMs * share;
  if (left > ahead * (1 + SPREAD)) return 'fresh';
  return left > ahead * (1 + SPREAD * spreadOf(id)) || isResting(grant, left) ? 'fresh' : 'due';
}

function isResting({ refreshes, lifetimeMs }: Grant, left: number): boolean {
  return refreshes > 0 && left > lifetimeMs * (1 - REST);
}

/** A place from 0 to 1 that is always the same for an id, and evenly spread over ids (FNV-1a). */
function spreadOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < id.length; index++) {
    hash = Math.imul(hash ^ id.charCodeAt(index), 0x01000193);
  }
  return (hash >>> 0) / 2 ** 32;
}
